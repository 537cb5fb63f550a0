"""Small simulations whose results are stored in `stored_results.json`, so that no change of the code changes a number.

A case is one level of each factor below. The cases are two covering arrays: in the first any two levels of two factors
meet in some case; in the second the same holds for the levels that run compiled, so that both engines are covered.
Only public names are used: the inside may change, the numbers may not.

    python tests/stored_results.py            replay all cases on both engines, and list what differs
    python tests/stored_results.py --write    store what the code gives now, if the engines agree

A change that gives other numbers on purpose does not rewrite the file: it says in `EXPLAINED` which fields of which
cases differ, and why. Counts must be equal, floats to 1e-12 of themselves. As everywhere, equal numbers are promised
for the same libraries on the same kind of machine.
"""

import dataclasses
import hashlib
import json
import math
import random
import sys
from collections.abc import Callable
from fnmatch import fnmatch
from itertools import combinations, product
from pathlib import Path
from typing import NamedTuple

import networkx as nx
import numpy as np

import banditmesh as bm

FILE = Path(__file__).with_name("stored_results.json")
TOLERANCE = 1e-12


class Explained(NamedTuple):
    """Fields (a pattern such as "trace.*") that may differ, in which cases, and why."""

    fields: str
    applies: Callable[[dict], bool]
    reason: str


#: What differs on purpose from what is stored.
EXPLAINED: tuple[Explained, ...] = (
    Explained(
        "*.learned",
        lambda case: case["emission"].startswith("growth"),
        "a count and sum that changes nothing is not learned",
    ),
    Explained(
        "*",
        lambda case: case["protocol"].startswith("tree") and case["faults"] == "loss, outages, no memory",
        "an agent of a tree that restarts goes on numbering its messages, so that they meet losses of their own",
    ),
    Explained(
        "trace.sequence",
        lambda case: case["protocol"].startswith("tree") and "no memory" in case["faults"],
        "an agent of a tree that restarts goes on numbering its messages",
    ),
    Explained(
        "trace.order",
        lambda case: case["protocol"].startswith("tree"),
        "a tree's messages are logged by arm and neighbour also where two neighbours are told the same",
    ),
    Explained(
        "*",
        lambda case: (
            case["policy"] == "ucb-v" and case["emission"].startswith("growth") and "no memory" in case["faults"]
        ),
        "the variance knows when an origin has begun another life",
    ),
)


# The factors. What is random is drawn from the case's seed, or is arithmetic: no library's generator but networkx's.

PROTOCOLS = {
    "none": lambda ttl, emission: bm.NoCooperation(emission=emission),
    "centralised": lambda ttl, emission: bm.Centralised(),
    "irs": lambda ttl, emission: bm.IRS(emission=emission),
    "flooding": lambda ttl, emission: bm.Flooding(ttl, emission=emission),
    "fwa": lambda ttl, emission: bm.FwA(ttl, emission=emission),
    "probabilistic(0.3)": lambda ttl, emission: bm.ProbabilisticFlooding(ttl, stop=0.3, emission=emission),
    "gossip(1)": lambda ttl, emission: bm.Gossip(ttl, fanout=1, emission=emission),
    "gossip(2)": lambda ttl, emission: bm.Gossip(ttl, fanout=2, emission=emission),
    "tree": lambda ttl, emission: bm.TreeAggregation(),
    # The ttl, which a tree does not have, varies the pause.
    "tree(pause)": lambda ttl, emission: bm.TreeAggregation(pause=ttl, emission=emission),
}
EMISSIONS = {
    "every pull": bm.EveryPull(),
    "contested": bm.Contested(),
    "growth(0)": bm.Growth(0.0),
    "growth(0.25)": bm.Growth(0.25),
    "growth(1)": bm.Growth(1.0),
    "growth(0.5, 1 echo)": bm.Growth(0.5, echoes=1),
    "growth(0.25, 3 echoes)": bm.Growth(0.25, echoes=3),
}
POLICIES = {
    "ucb": lambda n: bm.UCB(),
    "ucb, several alpha": lambda n: [bm.UCB(alpha=1.0 + v) for v in range(n)],
    "klucb": lambda n: bm.KLUCB(),
    "klucb(c=3)": lambda n: bm.KLUCB(c=3.0),
    "thompson": lambda n: bm.ThompsonSampling(),
    "ucb-v": lambda n: bm.UCBV(),
    "moss": lambda n: bm.MOSS(),
    "epsilon-greedy": lambda n: bm.EpsilonGreedy(0.2),
    "epsilon-greedy, decay": lambda n: bm.EpsilonGreedy(decay=5.0),
    "mixed": lambda n: [[bm.UCB(), bm.KLUCB(), bm.ThompsonSampling(), bm.UCBV(), bm.MOSS()][v % 5] for v in range(n)],
}
FAULTS = {
    "none": None,
    "loss": bm.Faults(loss=0.3),
    "outages": bm.Faults(outages=bm.Outages(down=0.1, up=0.4)),
    "outages, no memory": bm.Faults(outages=bm.Outages(down=0.1, up=0.4, memory=False)),
    "loss, outages, no memory": bm.Faults(loss=0.2, outages=bm.Outages(down=0.05, up=0.5, memory=False)),
    "delay": bm.Faults(delay=2),
    "jitter": bm.Faults(jitter=1.5),
    "gaussian": bm.Faults(corruption=bm.Corruption("gaussian", 0.4)),
    "zero": bm.Faults(corruption=bm.Corruption("zero", 0.3)),
    "heavy": bm.Faults(corruption=bm.Corruption("heavy", 0.2, scale=0.5)),
    "link cap": bm.Faults(link_cap=1),
    "outages, no memory, delay": bm.Faults(delay=1, outages=bm.Outages(down=0.1, up=0.4, memory=False)),
    "all": bm.Faults(
        loss=0.1,
        delay=1,
        jitter=0.5,
        corruption=bm.Corruption("gaussian", 0.2),
        outages=bm.Outages(down=0.05, up=0.5),
        link_cap=2,
    ),
}
STATIC = {
    "er": lambda n, horizon: bm.networks.er(n, 0.4, seed=n),
    "ba": lambda n, horizon: bm.networks.ba(n, 2, seed=n),
    "path": lambda n, horizon: bm.networks.path(n),
    "star": lambda n, horizon: bm.networks.star(n),
    "complete": lambda n, horizon: bm.networks.complete(n),
    "grid": lambda n, horizon: bm.networks.grid(2, (n + 1) // 2),
    "two parts": lambda n, horizon: nx.disjoint_union(bm.networks.complete(n // 2), bm.networks.path(n - n // 2)),
    "one agent": lambda n, horizon: bm.networks.path(1),
}
DYNAMIC = {
    "edge-markovian": lambda n, horizon: bm.networks.EdgeMarkovian(bm.networks.path(n), 0.1, 0.3),
    "sequence": lambda n, horizon: bm.networks.GraphSequence([bm.networks.er(n, 0.5, seed=t) for t in range(horizon)]),
    "contacts": lambda n, horizon: bm.networks.ContactTrace(contacts(n, horizon), n_rounds=horizon),
    "link failures": lambda n, horizon: bm.networks.LinkFailures(bm.networks.ba(n, 2, seed=n), 0.3),
    "churn": lambda n, horizon: bm.networks.Churn(bm.networks.complete(n), 0.2, 0.4),
}
ARM_SETS = {
    "same": lambda n: [[0, 1, 2]] * n,
    "overlapping": lambda n: [[(v + k) % 5 for k in range(3)] for v in range(n)],
    "own": lambda n: [sorted({v, (v + 1) % n}, reverse=True) for v in range(n)],
    "one or three": lambda n: [[0] if v % 3 == 0 else [2, 0, 1] for v in range(n)],
}
LAWS = {
    "gaussian": lambda k: bm.arms.Gaussian(0.25 * k, 1.0),
    "bernoulli": lambda k: bm.arms.Bernoulli(0.9 / (1.0 + 0.5 * k)),
    "uniform": lambda k: bm.arms.Uniform(0.0, 2.0 / (2.0 + k)),
    "beta": lambda k: bm.arms.Beta(1.0 + k, 2.0),
    "empirical": lambda k: bm.arms.Empirical([0.0, 0.25, 0.25, 1.0, 0.1 * k]),
    "mixed": lambda k: [LAWS[name](k) for name in list(LAWS)[:5]][k % 5],
}
REWARDS = {
    "drawn": lambda *shape: None,
    "tape": lambda *shape: tape(shape[1:], 1000),
    # Rewards that repeat are one message by the published rules.
    "coarse tape a replicate": lambda *shape: tape(shape, 4),
}
EVERY = {"1": lambda n: None, "3": lambda n: 3, "1 to 3": lambda n: [1 + v % 3 for v in range(n)]}

FACTORS = {
    "protocol": list(PROTOCOLS),
    "ttl": [1, 2, 3, 4, 5],
    "rules": ["sound", "published"],
    "emission": list(EMISSIONS),
    "policy": list(POLICIES),
    "faults": list(FAULTS),
    "network": [*STATIC, *DYNAMIC],
    "n": [3, 4, 5, 7, 12],
    "arm_sets": list(ARM_SETS),
    "laws": list(LAWS),
    "rewards": list(REWARDS),
    "every": list(EVERY),
    "horizon": [20, 24, 30, 60],
    "replicates": [1, 2],
    "record_every": [1, 4, 7],
    "link_traffic": [False, True],
    "trace": [False, True],
}
#: The levels of which most combinations run compiled.
COMPILED = FACTORS | {
    "policy": list(POLICIES)[:5],
    "faults": list(FAULTS)[:5],
    "network": ["er", "star", "two parts", "edge-markovian", "sequence"],
    "n": [3, 5, 8],
    "horizon": [20, 30],
    "trace": [False],
}


def contacts(n, horizon):
    """A third of the agents meet somebody in a round, except in every n-th."""
    names = "abcdefghijkl"
    return [
        (t, names[v], names[(v + t) % n]) for t in range(1, horizon + 1) for v in range(n) if t % n and (v + t) % 3 == 0
    ]


def tape(shape, levels):
    """Rewards k / levels. Python promises the numbers of `random()` for all its versions."""
    source = random.Random(0)
    values = [int(source.random() * (levels + 1)) / levels for _ in range(math.prod(shape))]
    return np.array(values).reshape(shape)


# Which cases there are.

#: Levels in whose presence other factors do little or nothing: what meets there is not covered by it.
MUTES = {
    ("protocol", "none"): {"ttl", "emission", "faults", "network", "link_traffic", "trace"},
    ("protocol", "centralised"): {"ttl", "emission", "faults", "network", "link_traffic", "trace"},
    ("protocol", "irs"): {"ttl"},
    ("protocol", "tree"): {"ttl", "emission"},
    ("network", "one agent"): {"n", "protocol", "ttl", "emission", "faults", "link_traffic", "trace"},
}


def allowed(case):
    """Whether the levels go together: a tree needs a static network, and no case may take long."""
    changes = case.get("network") in DYNAMIC and case.get("protocol") in ("tree", "tree(pause)")
    takes_long = case.get("n") == 12 and case.get("horizon") == 60
    return not changes and not takes_long


def pairs(factors):
    """All pairs of (factor, level) that have to meet."""
    choices = [[(factor, level) for level in levels] for factor, levels in factors.items()]
    met = (pair for one, other in combinations(choices, 2) for pair in product(one, other))
    return [pair for pair in met if allowed(dict(pair))]


def covered(case):
    """The pairs that meet in a case, or in a part of one, with effect: unless a third level mutes one of the two."""
    choices = [(factor, case[factor]) for factor in FACTORS if factor in case]
    mutes = [choice for choice in choices if choice in MUTES]
    return [
        pair
        for pair in combinations(choices, 2)
        if not any(mute not in pair and (pair[0][0] in MUTES[mute] or pair[1][0] in MUTES[mute]) for mute in mutes)
    ]


def covering_array(factors, seed):
    """Cases that cover all pairs, made greedily: each is the best of some, begun with a pair that is missing."""
    source = random.Random(seed)
    missing = dict.fromkeys(pairs(factors))

    def gain(case):
        return sum(pair in missing for pair in covered(case)) if allowed(case) else -1

    def grown(case):
        rest = [factor for factor in factors if factor not in case]
        for factor in source.sample(rest, len(rest)):
            gains = {level: gain({**case, factor: level}) for level in factors[factor]}
            case[factor] = source.choice([level for level in gains if gains[level] == max(gains.values())])
        return case

    cases = []
    while missing:
        best = max((grown(dict(source.choice(list(missing)))) for _ in range(10)), key=gain)
        cases.append({factor: best[factor] for factor in factors})
        for pair in covered(best):
            missing.pop(pair, None)
    return cases


def make_cases():
    rows = covering_array(FACTORS, seed=1) + covering_array(COMPILED, seed=2)
    return [{"seed": seed, **row} for seed, row in enumerate(rows)]


# Running a case, and what is stored of it.


def name(case):
    return f"case {case['seed']} ({case['protocol']}, {case['rules']}, {case['network']}, {case['faults']})"


def run(case, engine):
    """The case's result. The compiled engine keeps no event log, so it is not asked for one."""
    horizon, replicates = case["horizon"], case["replicates"]
    network = (STATIC | DYNAMIC)[case["network"]](case["n"], horizon)
    n = network.n_agents if case["network"] in DYNAMIC else len(network)
    arm_sets = ARM_SETS[case["arm_sets"]](n)
    held = sorted(set().union(*arm_sets))
    problem = bm.Problem(
        network,
        [["ABCDEFGHIJKL"[k] for k in arm_set] for arm_set in arm_sets],
        {"ABCDEFGHIJKL"[k]: LAWS[case["laws"]](k) for k in held},
    )
    return bm.simulate(
        problem,
        PROTOCOLS[case["protocol"]](case["ttl"], EMISSIONS[case["emission"]]),
        policy=POLICIES[case["policy"]](n),
        horizon=horizon,
        replicates=replicates,
        seed=case["seed"],
        rules=case["rules"],
        engine=engine,
        link_traffic=case["link_traffic"],
        rewards=REWARDS[case["rewards"]](replicates, horizon, n, len(held)),
        every=EVERY[case["every"]](n),
        faults=FAULTS[case["faults"]],
        record_every=case["record_every"],
        threads=1,
        trace=case["trace"] and engine == "reference",
    )


def facts(result):
    """What is stored of a result: fields of counts, floats, and digests of many counts."""
    last = len(result.rounds) - 1
    some = sorted({last // 3, 2 * last // 3, last})
    found = {
        "rounds": result.rounds[some].tolist(),
        "regret": result.regret[:, some].tolist(),
        "mean_regret": result.regret.mean(axis=1).tolist(),
        "agent_regret": result.agent_regret.tolist(),
        "messages": result.transmissions[:, some].tolist(),
        "all_messages": digest(result.transmissions.tolist()),
        "pulls": digest(result.pulls.tolist()),
    }
    found["traffic"] = {key: totals.tolist() for key, totals in result.traffic.items()}
    if result.link_traffic is not None:
        found["links"] = digest(result.links)
        found["link_traffic"] = digest(result.link_traffic.tolist())
    if result.trace:
        found["trace"] = trace_facts(result.trace)
    return found


def trace_facts(trace):
    """Each field of an event log apart, whatever the order of events, and that order.

    A copy is known by its `where`. Every other field is stored as the sorted list of (where, value), so that a change
    of one field changes nothing else.
    """
    where = [(e.replicate, e.round, str(e.sender), str(e.receiver), str(e.arm), e.ttl) for e in trace]
    rewards = [reward for _, reward in sorted(zip(where, (float(e.reward) for e in trace), strict=True))]
    found = {"events": len(trace), "where": digest(sorted(where)), "order": digest(where)}
    for key in ("replicate", "round", "sender", "receiver", "arm", "ttl"):
        found[key] = digest(sorted(str(getattr(event, key)) for event in trace))
    for key in ("fate", "arrival", "origin", "sequence", "learned"):
        values = [str(getattr(event, key)) for event in trace]
        found[key] = digest(sorted(zip(where, values, strict=True)))
    # Sums of numbers of one sign: nothing cancels, so that they are as exact as the rewards are.
    found["reward"] = [
        math.fsum(max(reward, 0.0) for reward in rewards),
        math.fsum(max(-reward, 0.0) for reward in rewards),
        math.fsum(place * abs(reward) for place, reward in enumerate(rewards)),
    ]
    return found


def digest(counts):
    return hashlib.sha256(repr(counts).encode()).hexdigest()[:10]


def differences(case, result, explained=EXPLAINED):
    """One line for each field of a result that is not as stored, apart from those that are explained."""
    was, now = flat(case["stored"]), flat(facts(result))
    if result.engine == "compiled":
        was = {field: value for field, value in was.items() if not field.startswith("trace.")}
    return [
        f"{name(case)}: {field} was {was.get(field)}, is {now.get(field)} ({result.engine})"
        for field in {**was, **now}
        if not agree(was.get(field), now.get(field))
        and not any(fnmatch(field, one.fields) and one.applies(case) for one in explained)
    ]


def flat(facts):
    """Fields of fields with names such as "traffic.sent"."""
    return {
        ".".join(path): value
        for key, entry in facts.items()
        for path, value in ([((key, k), v) for k, v in entry.items()] if isinstance(entry, dict) else [((key,), entry)])
    }


def agree(was, now):
    if isinstance(was, list) and isinstance(now, list):
        return len(was) == len(now) and all(map(agree, was, now))
    if isinstance(was, float) or isinstance(now, float):
        return was is not None and now is not None and math.isclose(was, now, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return was == now


# The file: a case a line.


def read():
    return [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]


def write(cases):
    FILE.write_text("".join(json.dumps(_short(case)) + "\n" for case in cases), encoding="utf-8")


def _short(value):
    """The same with floats of 14 digits, which is more than is compared."""
    if isinstance(value, dict):
        return {key: _short(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_short(entry) for entry in value]
    return float(f"{value:.14g}") if isinstance(value, float) else value


def run_compiled(case):
    """The compiled engine's result, or None if it does not run the case."""
    try:
        return run(case, "compiled")
    except bm.errors.UnsupportedError:
        return None


def store(case):
    """The case with its results, and what is wrong with them: they may not depend on engine, log or repetition."""
    result = run(case, "reference")
    plain, compiled = run(case | {"trace": False}, "reference"), run_compiled(case)
    wrong = []
    if run(case, "reference") != result:
        wrong.append(f"{name(case)}: two runs differ")
    if dataclasses.replace(result, trace=[]) != plain:
        wrong.append(f"{name(case)}: the event log changes the result")
    if compiled is not None and compiled != plain:
        wrong.append(f"{name(case)}: the engines differ")
    return {**case, "compiled": compiled is not None, "stored": facts(result)}, wrong


def replay(case):
    """What differs from what is stored, on either engine."""
    results = [run(case, "reference"), run_compiled(case)]
    lost = [f"{name(case)}: no longer runs compiled"] if case["compiled"] and results[1] is None else []
    return lost + [line for result in results if result is not None for line in differences(case, result)]


def main():
    if sys.argv[1:] == ["--write"]:
        cases, wrong = zip(*map(store, make_cases()), strict=True)
        wrong = [line for lines in wrong for line in lines]
        if not wrong:
            write(cases)
    elif not sys.argv[1:]:
        cases = read()
        wrong = [line for case in cases for line in replay(case)]
    else:
        sys.exit("usage: python tests/stored_results.py [--write]")
    print(*wrong, f"{len(cases)} cases, {sum(case['compiled'] for case in cases)} compiled", sep="\n")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
