"""Comparisons and frontiers as one HTML file: it opens offline and makes no requests.

The answer comes first, computed from the numbers; then figures, tables with what each column means, what is needed to
repeat it, and the words last.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..files import atomic
from ..lookup import registry
from ..plots import pages
from ..plots.words import words_of
from ..protocols import AnyProtocol
from ..text_tables import decimals, spread
from ..version import __version__
from .configurations import COSTS
from .shown import MARKS, comparison_rows, difference_rows, front_note, frontier_rows

if TYPE_CHECKING:
    from .compare import Comparison
    from .configurations import Frontier

#: How much more regret than the least something may have that is recommended because it sends less.
TOLERANCE: Final = 0.05
_COLUMNS: Final = {
    "protocol": "how messages travel: its name, with its number of hops and its emission where they differ",
    "configuration": "a protocol with its parameters, and after + when agents send; its policy, if there are several",
    "group regret": "at the last round, summed over all agents; lower is better",
    "transmissions": "all messages that crossed a link until the last round, each link and direction for itself",
    "first pulls": "how much of the regret comes from pulling each arm once before the policy chooses",
    "transmissions/round": "the same, divided by the number of rounds",
    "busiest link": "transmissions per round over the one link and direction that carries most, mean over all rounds",
    "peak": "the same in the busiest fiftieth of the run",
    "bytes/round": "payload of all transmissions, divided by the number of rounds",
}


def write_comparison(comparison: Comparison, path: str | PathLike[str], about: str = "", command: str = "") -> None:
    """Write the report of a comparison; see `Comparison.report`."""
    first = next(iter(comparison.results.values()))
    about = about.removeprefix("Problem(").removesuffix(")")
    where = f" on {about}" if about else ""
    question = f"Which of {_joined(comparison.results)} learns best together{where}, and what does each one send?"
    pictures = [pages.picture("Group regret and transmissions over the rounds", comparison.plot())]
    if any(one.transmissions[:, -1].any() for one in comparison.results.values()):
        pictures.append(
            pages.picture("Group regret against transmissions, both at the last round", comparison.plot("tradeoff"))
        )
    rows = comparison_rows(comparison)
    tables = pages.explained(pages.table("At the last round", rows), _meanings(rows[0]))
    if first.replicates > 1:
        tables += '<p class="note">±: one standard deviation over replicates</p>'
    tables += "".join(f'<p class="note">{html.escape(note)}</p>' for note in comparison.notes)
    best = least_regret(comparison)
    if len(comparison.results) > 1:
        tables += pages.wide(pages.table(f"Paired differences from {best}", difference_rows(comparison, best)))
        if first.replicates > 1:
            tables += '<p class="note">In brackets: 95 % confidence intervals of the mean difference</p>'
    policies = dict.fromkeys(str(one.settings["policy"]) for one in comparison.results.values())
    settings = {
        **({"Problem": about} if about else {}),
        "Protocols": "; ".join(f"{name}: {one.settings['protocol']}" for name, one in comparison.results.items()),
        "Policy": "; ".join(policies),
        "Faults": _unless_none(first.faults),
        **_lengths(first.horizon, first.replicates, first.seed, first.rules),
    }
    sections = {
        "verdict": ("Verdict", pages.listed(verdict_lines(comparison))),
        "figures": ("Figures", "".join(pictures)),
        "tables": ("Tables", tables),
    }
    used = [one.settings["protocol_text"] for one in comparison.results.values()]
    n = len(comparison.results)
    title = f"Comparison of {_joined(comparison.results) if n < 4 else f'{n} protocols'}"
    _write(path, title, question, sections, settings, command, used)


def write_frontier(found: Frontier, path: str | PathLike[str], command: str = "", node_toml: str = "") -> None:
    """Write the report of a frontier; see `Frontier.report`."""
    problem = found.problem.removeprefix("Problem(").removesuffix(")")
    budget = " and ".join(f"at most {limit:,g} {COSTS[cost]}" for cost, limit in found.limits.items())
    question = f"Which protocol should {problem} use{f' with {budget}' if budget else ''}?"
    rows = [[*row[:-1], row[-1].replace("<- ", "")] for row in frontier_rows(found, True)]
    marks = "which fronts it is on: nothing else has less regret for as few " + ", ".join(
        f"{COSTS[cost]} ({mark})" for cost, mark in MARKS.items()
    )
    meanings = _meanings(rows[0])
    meanings["front"] = marks
    last = "take: recommended; over: beyond the budget; nearest: nearest to the budget"
    tables = pages.explained(pages.table("Every configuration", rows), {**meanings, "last column": last})
    if found.replicates > 1:
        tables += f'<p class="note">±: {found.confidence:.0%} confidence</p>'
    if found.left_out:
        tables += f'<p class="note">{html.escape(front_note(found).splitlines()[-1])}</p>'
        left = [["configuration", "because"], *map(list, found.left_out.items())]
        tables += pages.table("Left out early", left, "claims")
    advice, *more = found.advice.splitlines()
    verdict = f'<p class="take">{html.escape(advice)}</p>' + (pages.listed(more) if more else "")
    if node_toml:
        verdict += f"<p>In node.toml:</p><pre>{html.escape(node_toml)}</pre>"
    settings = {
        "Problem": problem,
        "Policy": found.policy or "one for each configuration, see the table",
        "Faults": _unless_none(found.faults),
        **_lengths(found.horizon, found.replicates, found.seed, found.rules),
        "Recommended": f"fewest transmissions among regrets at most {found.tolerance:.0%} above the least",
    }
    sections = {"verdict": ("Recommendation", verdict)}
    if any(one.sends for one in found.configurations):
        picture = pages.picture("Group regret against what it costs; lines: the fronts", found.plot())
        sections["figures"] = ("Figures", picture)
    sections["tables"] = ("Tables", tables)
    used = [one.name for one in found.configurations]
    _write(path, "Regret against traffic", question, sections, settings, command, used)


def verdict_lines(comparison: Comparison) -> list[str]:
    """What a comparison says: the least regret, what is not told apart from it, and what sends less for little more.

    Examples
    --------
    >>> import banditmesh as bm
    >>> problem = bm.Problem.random(bm.networks.ring(8), n_arms=6, per_agent=3, seed=0)
    >>> comparison = bm.compare(problem, ["none", "flooding(4)"], horizon=200, replicates=5, seed=0)
    >>> [line.partition(":")[0] for line in verdict_lines(comparison)]
    ['flooding has the least group regret', 'More regret than flooding, with 95 % confidence']
    """
    found = comparison.to_json()
    regret = {name: row["regret"]["mean"] for name, row in found.items()}
    sent = {name: row["messages"]["mean"] for name, row in found.items()}
    best = least_regret(comparison)
    spread_of_best = spread(regret[best], found[best]["regret"]["sd"], decimals(regret.values()))
    lines = [f"{best} has the least group regret: {spread_of_best}, with {sent[best]:,.0f} transmissions."]
    if found[best]["regret"]["sd"] is None:
        lines += ["With one replicate nothing can be said about chance; run more."] * (len(found) > 1)
    else:
        lows = comparison.differences(best)["regret_low"].to_dict() if len(found) > 1 else {}
        more, equal = ([str(name) for name, low in lows.items() if (low > 0) is above] for above in (True, False))
        lines += [f"More regret than {best}, with 95 % confidence: {', '.join(more)}."] if more else []
        lines += [f"Not told apart from {best} by these replicates: {', '.join(equal)}."] if equal else []
    near = [name for name in found if regret[name] <= regret[best] * (1 + TOLERANCE)]
    fewest = min(near, key=sent.__getitem__)
    if sent[fewest] < sent[best]:
        lines.append(
            f"Of those with at most {TOLERANCE:.0%} more regret, {fewest} sends the fewest: {sent[fewest]:,.0f} "
            f"transmissions, {sent[fewest] / sent[best]:.1%} of what {best} sends."
        )
    return lines


def least_regret(comparison: Comparison) -> str:
    """The one with the least mean group regret, the first of equals."""
    return str(comparison.table()["regret"].idxmin())


def _meanings(heads: Iterable[str]) -> dict[str, str]:
    return {head: _COLUMNS[head] for head in heads if head in _COLUMNS}


def _joined(names: Iterable[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def _unless_none(faults: str) -> str:
    return "none" if faults in ("", "None") else faults


def _lengths(horizon: int, replicates: int, seed: int, rules: str) -> dict[str, str]:
    return {
        "Rules": rules,
        "Horizon": f"{horizon:,} rounds",
        "Replicates": str(replicates),
        "Seed": f"{seed}; the same seed gives the same numbers on every machine",
    }


def _write(
    path: str | PathLike[str],
    title: str,
    question: str,
    sections: Mapping[str, tuple[str, str]],
    settings: Mapping[str, str],
    command: str,
    used: Iterable[str],
) -> None:
    rows = {**settings, "Version": f"banditmesh {__version__}", **({"Command": command} if command else {})}
    text = pages.report(
        title,
        html.escape(question),
        sections,
        pages.settings_table(rows),
        words_of(used, registry.by_name(AnyProtocol)),
    )
    atomic.write(Path(path), text.encode())
