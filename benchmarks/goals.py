"""What engine, live mesh and page set out to reach, beside what was measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tables import Column, Row, Section

Rows = Sequence[Row]


def one(rows: Rows, key: str, **labels: Any) -> float | None:
    """A value of the row with these labels; None if it was not measured."""
    for row in rows:
        if all(row.get(name) == label for name, label in labels.items()):
            value: float | None = row.get(key)
            return value
    return None


def over(rows: Rows, key: str, wanted: Mapping[str, Any], beside: Mapping[str, Any]) -> float | None:
    """A value of one row by that of another."""
    above, below = one(rows, key, **wanted), one(rows, key, **beside)
    return above / below if above is not None and below else None


def first(rows: Rows, beginning: str) -> float | None:
    """The seconds of the row that begins so."""
    return next((row["seconds"] for row in rows if str(row.get("what", "")).startswith(beginning)), None)


MILLION, BA = {"network": "er", "n_agents": 1_000_000}, {"network": "ba", "n_agents": 100_000}
# What, the section it comes from, the bound, whether the value must be at most or at least that, and the value.
GOALS: tuple[tuple[str, str, float, str, Callable[[Rows], float | None]], ...] = (
    ("FwA on ER: engine loop by C loop", "c", 1.5, "at most", lambda rows: one(rows, "ratio", protocol="fwa")),
    (
        "Flooding on ER: engine loop by C loop",
        "c",
        1.5,
        "at most",
        lambda rows: one(rows, "ratio", protocol="flooding"),
    ),
    (
        "FwA on ER: engine loop by a C loop with fast-math and free rewards (2.2 to 2.7 before)",
        "c",
        1.8,
        "at most",
        lambda rows: one(rows, "free_ratio", protocol="fwa"),
    ),
    (
        "Flooding on ER: the same (1.6 to 1.9 before)",
        "c",
        1.4,
        "at most",
        lambda rows: one(rows, "free_ratio", protocol="flooding"),
    ),
    *(
        (
            f"{policy} by UCB, FwA on ER, {laws}",
            "choice",
            3.0,
            "at most",
            lambda rows, name=f"FwA on ER, {laws}, {policy}": one(rows, "by", what=name),
        )
        for laws in ("Gaussian arms", "coins")
        for policy in ("klucb", "thompson")
    ),
    *(
        (
            f"thompson by its floor, {protocol}, 3,000 agents, rare coins",
            "choice",
            1.3,
            "at most",
            lambda rows, protocol=protocol: one(
                rows, "by", what=f"{protocol}, 3,000 agents, rare coins, thompson by its floor"
            ),
        )
        for protocol in ("none", "irs")
    ),
    (
        "FwA on dynamic ER, ns a pull (2,800 before)",
        "choice",
        1000.0,
        "at most",
        lambda rows: one(rows, "ns", what="fwa on dynamic ER"),
    ),
    (
        "Flooding on dynamic ER, ns a pull (3,300 before)",
        "choice",
        1200.0,
        "at most",
        lambda rows: one(rows, "ns", what="flooding on dynamic ER"),
    ),
    *(
        (
            f"{protocol} on {network}, {rules} rules, ns a pull ({before:,} before)",
            "engines",
            bound,
            "at most",
            lambda rows, rules=rules, network=network, protocol=protocol: one(
                rows, "compiled_ns", rules=rules, network=network, protocol=protocol
            ),
        )
        for rules, network, protocol, before, bound in (
            ("sound", "dynamic-er", "fwa", 808, 500.0),
            ("sound", "dynamic-er", "flooding", 1002, 700.0),
            ("sound", "dynamic-er", "irs", 462, 250.0),
            ("sound", "dynamic-er", "gossip", 686, 400.0),
            ("sound", "er", "probabilistic", 795, 400.0),
            ("sound", "ba", "probabilistic", 1773, 900.0),
            ("published", "er", "fwa", 493, 250.0),
            ("published", "dynamic-er", "fwa", 3789, 2500.0),
        )
    ),
    (
        "One agent, ns a pull (588 before)",
        "choice",
        120.0,
        "at most",
        lambda rows: one(rows, "ns", what="one agent, 1,000 replicates"),
    ),
    (
        "One agent, 1,000 replicates, by plain numpy (7 before)",
        "choice",
        1.0,
        "at most",
        lambda rows: one(rows, "by", what="one agent, 1,000 replicates"),
    ),
    *(
        (
            f"Means that change in every round by fixed ones, {protocol} on ER, {world}",
            "worlds",
            1.5,
            "at most",
            lambda rows, protocol=protocol, world=world: one(rows, "ratio", protocol=protocol, world=world, agents=100),
        )
        for protocol in ("none", "fwa")
        for world in ("wandering(0.01)", "seasonal(0.3, 500)")
    ),
    *(
        (
            f"Discount by no forgetting, UCB, {protocol} on ER",
            "memories",
            1.25,
            "at most",
            lambda rows, protocol=protocol: one(
                rows, "ratio", policy="ucb", protocol=protocol, memory="discount(0.995)"
            ),
        )
        for protocol in ("none", "fwa", "flooding+growth")
    ),
    (
        "Gossip on ER, now by before",
        "before",
        0.71,
        "at most",
        lambda rows: one(rows, "by", case="gossip"),
    ),
    (
        "The slowest of all cases, now by before",
        "before",
        1.05,
        "at most",
        lambda rows: max((row["by"] for row in rows), default=None),
    ),
    (
        "Six protocols, four networks, ten replicates, T = 1000, two threads, sound rules, s",
        "threads",
        20.0,
        "at most",
        lambda rows: one(rows, "two_s", rules="sound", network="all"),
    ),
    (
        "The same by the published rules, s",
        "threads",
        20.0,
        "at most",
        lambda rows: one(rows, "two_s", rules="published", network="all"),
    ),
    (
        "Two threads by one, sound rules",
        "threads",
        1.7,
        "at least",
        lambda rows: one(rows, "speed_up", rules="sound", network="all"),
    ),
    (
        "Two threads by one, published rules",
        "threads",
        1.7,
        "at least",
        lambda rows: one(rows, "speed_up", rules="published", network="all"),
    ),
    (
        "Cost of a pull, a million agents by 10,000 (whole)",
        "scale",
        5.0,
        "at most",
        lambda rows: over(rows, "whole_ns", MILLION, {"network": "er", "n_agents": 10_000}),
    ),
    (
        "A million agents, rounds, ns a pull (579 before)",
        "scale",
        350.0,
        "at most",
        lambda rows: one(rows, "rounds_ns", **MILLION),
    ),
    (
        "A million agents, bytes an agent (4,673 before)",
        "scale",
        3500.0,
        "at most",
        lambda rows: one(rows, "agent_bytes", **MILLION),
    ),
    (
        "ER of 100,000 agents, T = 100, set-up, ns a pull (457 before)",
        "scale",
        152.0,
        "at most",
        lambda rows: one(rows, "setup_ns", network="er", n_agents=100_000),
    ),
    (
        "One replicate of 100,000 agents, two threads by one (1.0 before)",
        "scale",
        1.6,
        "at least",
        lambda rows: one(rows, "speed_up", network="er", n_agents=100_000),
    ),
    (
        "BA of 100,000 agents, rounds, ns a pull (42,103 before)",
        "scale",
        3000.0,
        "at most",
        lambda rows: one(rows, "rounds_ns", **BA),
    ),
    (
        "BA of 100,000 agents, T = 100, whole, s (421 before)",
        "scale",
        105.0,
        "at most",
        lambda rows: one(rows, "seconds", **BA),
    ),
    ("A million agents, T = 100, peak GiB", "scale", 8.0, "at most", lambda rows: one(rows, "peak_gib", **MILLION)),
    ("BA of 100,000 agents, T = 100, peak GiB", "scale", 8.0, "at most", lambda rows: one(rows, "peak_gib", **BA)),
    ("import banditmesh over bare Python, s", "startup", 0.2, "at most", lambda rows: first(rows, "import")),
    ("banditmesh --help, s", "startup", 0.4, "at most", lambda rows: first(rows, "banditmesh --help")),
    (
        "First simulation, empty cache, s (12 to 13 before)",
        "startup",
        4.0,
        "at most",
        lambda rows: first(rows, "first simulation"),
    ),
    ("Script with a warm cache, s (1.21 before)", "startup", 0.95, "at most", lambda rows: first(rows, "script")),
    (
        "Two live nodes over TLS by encoding and TLS alone",
        "live",
        0.25,
        "at least",
        lambda rows: one(rows, "share", what="two nodes over mutual TLS"),
    ),
    (
        "choose() of a live node, 20 arms, a CPU second",
        "live",
        50_000.0,
        "at least",
        lambda rows: one(rows, "value", what="choose in Python, 20 arms"),
    ),
    *(
        (
            f"{what} over HTTP, {n}, ms of CPU of the sidecar ({before})",
            "live",
            bound,
            "at most",
            lambda rows, name=f"{what} over HTTP, {n}": one(rows, "value", what=name),
        )
        for what, n, bound, before in (
            ("choose and observe", "1 connection", 0.65, "0.88 to 0.93 before"),
            ("choose and observe", "8 connections", 0.35, "0.60 to 0.64 before"),
            ("step", "1 connection", 0.5, "new"),
        )
    ),
    *(
        (
            f"{what} ({before})",
            "live",
            bound,
            "at most",
            lambda rows, name=name, key=key: one(rows, key, what=name),
        )
        for what, name, key, bound, before in (
            (
                "Join with 100,000 entries, signed, CPU s of one core",
                "join with 100,000 entries, signed",
                "value",
                30.0,
                "new",
            ),
            (
                "Its longest step, signed, ms of CPU",
                "its longest step, signed",
                "value",
                50.0,
                "69 before, under load",
            ),
            (
                "Its longest step, unsigned, ms of CPU",
                "its longest step, unsigned",
                "value",
                50.0,
                "55 before, under load",
            ),
            (
                "Longest step in a flood of bad signatures, ms of CPU",
                "longest step in a flood of bad signatures",
                "value",
                50.0,
                "not measured before",
            ),
            ("observe with keys by without", "observe, with keys", "share", 1.3, "1.35 to 1.45 before"),
            (
                "Memory of a process with a node and its sidecar, bytes",
                "memory of a process with a node and its sidecar",
                "value",
                40e6,
                "71e6 before",
            ),
        )
    ),
    *(
        (
            f"Replaying a log by unreplayed, thompson, {protocol} (over 40 before)",
            "users",
            2.0,
            "at most",
            lambda rows, name=f"replay a log, thompson, {protocol}: a replicate": one(rows, "by", what=name),
        )
        for protocol in ("none", "irs", "fwa(4)", "flooding(4)")
    ),
    (
        "Frontier of 203 coins, 111 agents, s of CPU (61 before, and 169 on another machine)",
        "users",
        90.0,
        "at most",
        lambda rows: first(rows, "frontier"),
    ),
    (
        "The page's slowest answer while 1,000 agents run, s",
        "page",
        0.2,
        "at most",
        lambda rows: one(rows, "answer_most", case="1,000 agents, 3,000 links"),
    ),
    (
        "A run of 1,000 agents is cancelled within, s",
        "page",
        1.0,
        "at most",
        lambda rows: one(rows, "cancelled", case="1,000 agents, 3,000 links"),
    ),
    (
        "Event-loop lag with a stopped neighbour, ms",
        "live",
        100.0,
        "at most",
        lambda rows: one(rows, "value", what="event-loop lag, a neighbour stopped, the most"),
    ),
)


def rows_of(sections: Mapping[str, Rows]) -> list[Row]:
    """The goals whose sections were measured."""
    found: list[Row] = []
    for what, name, bound, side, value_of in GOALS:
        value = value_of(sections.get(name, ()))
        if value is not None:
            met = value <= bound if side == "at most" else value >= bound
            found.append({"what": what, "side": side, "bound": bound, "value": value, "met": met})
    return found or [{"missing": "none of the sections that have goals was run"}]


SECTION = Section(
    name="goals",
    title="Goals",
    note="What engine and live mesh are to reach on two cores, and what was measured.",
    columns=(
        Column("what", "goal"),
        Column("side", ""),
        Column("bound", "bound", "g"),
        Column("value", "measured", ".3g"),
        Column("met", "met"),
    ),
    measure=lambda quick: [],
)
