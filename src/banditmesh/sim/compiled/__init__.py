"""The compiled engine: equal to the reference, bit for bit, wherever it runs.

engine       runs replicates side by side, chunk by chunk
packing      a run as arrays, and its traits: what decides how it is delivered
plans        where every possible message of a static network goes
hearing      by a plan, when agents first hear of each holder of an arm
replicates   what all ways of delivery share; spreading, walking, merging and quiet are the four
repeats      which rewards of a run are equal, for the published rules
timeline, outages   the networks, and who is up, in the rounds that a chunk needs
linkcounts, bitsets, distances   transmissions by link; sets of neighbours; how far messages get
warmup       compiles kernels and checks them against the reference before they are used
planning_beside   the kernels of plans, compiled by another process meanwhile
crew         threads, and a way to stop them
kernels/     the loops over arrays
"""
