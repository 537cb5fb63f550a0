"""The compiled engine's kernels: loops over arrays, compiled by numba.

    scalars    the rules that the reference engine calls as Python, compiled unchanged
    layout     the arrays that kernels share, by name
    pulls      every agent chooses, pulls and counts its reward
    lanes      loops over arms in steps of vector instructions
    choices    the highest index where an index takes long; klucb and thompson say between which numbers it lies
    spread     the whole fate of one message, known when it is made
    rounds     rounds whose messages' fates are known: the sound rules on any network
    walk       rounds in which every copy is walked: the published rules, whose memory forgets
    tapes      rewards of laws that only Python can draw from
    link_rows  the links of a dynamic network, round by round
    merge      rounds in which agents sum up along a tree
    emissions  what agents send of their pulls
    faults     who is up, what is lost
    special    the same kernels, bound to other rules
    compiling, identity, cache   how all of them are compiled, named and kept

Kernels use numba, numpy and math only, never raise, and return a status where something may not fit. Their arguments
come in the order topology, parameters, draws, workspace, outputs.
"""
