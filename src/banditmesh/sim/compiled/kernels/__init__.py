"""The compiled engine's kernels: loops over arrays, compiled by numba.

    scalars    the rules that the reference engine calls as Python, compiled unchanged
    layout     the arrays that kernels share, by name; fate, the places of their counts
    structs, addresses   how kernels are handed many arrays at once
    pulls      every agent chooses, pulls and counts its reward
    lanes      loops over arms in steps of vector instructions
    choices    the highest index where an index takes long; klucb and thompson say between which numbers it lies
    spread     the whole fate of one message, known when it is made; on dense networks with sets of agents, see sets
    single     the fates of messages of which there is one copy at a time
    planning, planned   plans of where every message goes; rounds in which who hears what is looked up in them
    ways       which links planned messages take
    rounds     rounds whose messages' fates are known: the sound rules on any network
    quiet      rounds in which nothing is sent
    walk       rounds in which every copy is walked: the published rules, whose memory forgets
    forgetting  what a memory changes in a round
    worlds     the means of arms that change at random
    replaying  rewards of a log, each used once by an agent
    tapes      rewards of laws that only Python can draw from; ahead draws the others, several rounds at a time
    link_rows  the links of a dynamic network, round by round
    merge      rounds in which agents sum up along a tree
    emissions  what agents send of their pulls
    faults     who is up, what is lost
    special    the same kernels, bound to other rules
    stopping   how kernels are stopped from outside
    compiling, identity, cache   how all of them are compiled, named and kept
    trust, turns   which folders they are read from; how processes take turns at compiling them

Kernels use numba, numpy and math only, never raise, and return a status where something may not fit. Their arguments
come in the order topology, parameters, draws, workspace, outputs.
"""
