"""One HTML file with the results of a reproduction of the paper: it opens offline and makes no requests.

Verdict and figures come first, what was run and the words last. Pictures are inlined, with their numbers, rules, seeds
and versions; the verdict is computed from the numbers.
"""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from .. import plots
from ..plots import pages
from ..policies import UCB
from ..studies.store import write_whole
from .agreement import to_json
from .explained import notes, words
from .pictures import paper_figures
from .reproduction import Reproduction
from .tables import csv_files, tables

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_RULES: Final = {
    "published": (
        "The published rules do what the author's code does: a relay also goes back to its sender, and an origin does "
        "not know its own message when it comes back, so it counts its own rewards twice. Regret is lower and "
        "transmissions are more than under the sound rules."
    ),
    "sound": (
        "The sound rules follow the paper's text and theory: a relay goes to all neighbours but its sender, and no "
        "reward is counted twice. The published figures were made under other rules, so their values are not "
        "expected here."
    ),
}
_TITLES: Final = {
    "3": "Figure 3: regret and transmissions on static networks",
    "4": "Figure 4: the load of a link",
    "5": "Figure 5: a dynamic network",
    "6": "Figure 6: regret against delta",
}


def write_paper(reproductions: Sequence[Reproduction], out: str | PathLike[str], command: str = "") -> list[Path]:
    """Write report.html, results.json, and the figures as CSV, PNG and SVG.

    Parameters
    ----------
    reproductions : sequence of Reproduction
        One for each rule set.
    out : str or path
        The folder; files of several rule sets differ by a suffix.
    command : str
        The command line, for the report.

    Returns
    -------
    list of Path
        The files written, the report first.

    Examples
    --------
    >>> import tempfile, banditmesh as bm
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = write_paper([bm.reproduce("5", horizon=3, replicates=1)], folder)
    ...     [path.name for path in files[:2]]
    ['report.html', 'results.json']
    """
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    outcomes = [to_json(one) for one in reproductions]
    written: list[Path] = []
    sections: dict[str, tuple[str, str]] = {}
    for one, values in zip(reproductions, outcomes, strict=True):
        suffix = f"-{one.rules}" if len(reproductions) > 1 else ""
        figures = paper_figures(one)
        for name, content in csv_files(values, one).items():
            stem, _, kind = name.partition(".")
            written.append(folder / f"{stem}{suffix}.{kind}")
            write_whole(written[-1], content.encode())
        for name, (_, figure) in figures.items():
            written += plots.save(figure, folder / f"{name}{suffix}")
        sections |= _sections(one, values, figures)
    results = (
        outcomes[0] if len(outcomes) == 1 else {"rules": "both", **{values["rules"]: values for values in outcomes}}
    )
    write_whole(folder / "results.json", (json.dumps(results, indent=1) + "\n").encode())
    write_whole(folder / "report.html", _page(outcomes, sections, command).encode())
    return [folder / "report.html", folder / "results.json", *written]


def _page(outcomes: Sequence[Mapping[str, Any]], figures: Mapping[str, tuple[str, str]], command: str) -> str:
    rules = " and ".join(values["rules"] for values in outcomes)
    question = (
        "Do the experiments of Lee, Schmid and Yun, <em>Flooding with Absorption: An Efficient Protocol for "
        "Heterogeneous Bandits over Complex Networks</em> (OPODIS 2023), come out as published? They were simulated by "
        "banditmesh."
    )
    lines = [line for values in outcomes for line in summary_lines(values)]
    sections = {
        "verdict": ("Verdict", pages.listed(lines)),
        **figures,
        "claims": ("The paper's claims, one by one", _claims(outcomes)),
    }
    title = f"Flooding with Absorption, run again by the {rules} rules"
    return pages.report(title, question, sections, _about(outcomes, command), words(outcomes[0]))


def _about(outcomes: Sequence[Mapping[str, Any]], command: str) -> str:
    first = outcomes[0]
    last = first["seed"] + first["instances"] - 1
    if first["instances"] == 1:
        seeds = f"{last}; it draws arms, rewards and networks"
    else:
        seeds = f"{first['seed']} to {last}, one for each arm instance; they draw arms, rewards and networks"
    rows = {
        "Rules": ", ".join(values["rules"] for values in outcomes),
        "Horizon": f"{first['horizon']:,} rounds",
        "Arm instances": f"{first['instances']}, with {first['replicates']} replicates each",
        "±": f"one standard deviation over {first['sd_over']}",
        "Seeds": seeds,
        "Policy": f"every agent pulls the arm with the highest upper confidence bound (UCB, alpha {UCB().alpha:g})",
        "Engine": f"{first['engine']}; the reference and the compiled engine give the same numbers",
        "Versions": ", ".join(f"{name} {version}" for name, version in first["versions"].items()),
    }
    if command:
        rows["Command"] = command
    notes = "".join(f"<p>{_RULES[values['rules']]}</p>" for values in outcomes)
    if not first["comparable"]:
        notes += (
            f"<p><strong>The published values are for 1000 rounds, these runs have {first['horizon']}: "
            "they cannot be compared.</strong></p>"
        )
    return pages.settings_table(rows) + notes


def _claims(outcomes: Sequence[Mapping[str, Any]]) -> str:
    heads = "".join(f"<th>by the {values['rules']} rules</th>" for values in outcomes)
    rows = [f"<tr><th>figure</th><th>claim</th>{heads}</tr>"]
    for figure, claim in dict.fromkeys((one["figure"], one["claim"]) for one in outcomes[0]["claims"]):
        cells = "".join(f"<td>{_judged(values['claims'], figure, claim)}</td>" for values in outcomes)
        rows.append(f"<tr><td>{figure}</td><td>{html.escape(claim)}</td>{cells}</tr>")
    meaning = (
        "A claim that one protocol has more than another holds or fails if the difference, taken pair by pair on the "
        "same rewards, says so with 95 % confidence, and is open otherwise. “About” means within 5 percentage points, "
        "“at par” and “matches” within 10 %, “similar” within 25 %, “high” at least 0.9, and a peak is half as high "
        "again. Figures and claims are the paper's; after each verdict are the network, or the protocol, that it is "
        "about, and the numbers it rests on."
    )
    return f'<p class="note">{meaning}</p><table class="claims">{"".join(rows)}</table>'


def _judged(claims: Sequence[Mapping[str, str]], figure: str, claim: str) -> str:
    """Where a claim was judged, how, and from which numbers."""
    return "".join(
        f'<div><span class="verdict {one["verdict"]}">{one["verdict"]}</span>'
        f"<span>{one['where']}: {html.escape(one['evidence'])}</span></div>"
        for one in claims
        if (one["figure"], one["claim"]) == (figure, claim)
    )


def summary_lines(values: Mapping[str, Any]) -> list[str]:
    """The verdict in a few lines."""
    verdicts = [claim["verdict"] for claim in values["claims"]]
    words = {"holds": "hold", "fails": "do not", "open": "remain open"}
    counts = [f"{verdicts.count(key)} {word}" for key, word in words.items() if key in verdicts]
    lines = [f"By the {values['rules']} rules, of {len(verdicts)} claims {', '.join(counts)}."]
    exact = values["exact_counts_agree"]
    if exact is not None:
        lines.append(
            "The counts that depend on the network alone agree with the published ones to the last digit."
            if exact
            else "Counts that depend on the network alone differ from the published ones."
        )
    if "figure6" in values and values["comparable"] and values["rules"] == "published":
        lines.append(_nearer_fit(values["figure6"]))
    if "within_three_sd" in values:
        within, order = values["within_three_sd"], values["order_agrees"]
        n_values = within["inside"] + len(within["outside"])
        lines.append(
            f"{within['inside']} of {n_values} published values that depend on the arms lie within three standard "
            f"deviations over arm instances of our mean"
            + (f"; outside: {', '.join(within['outside'])}." if within["outside"] else ".")
        )
        n_agree = order["pairs"] - len(order["against"])
        lines.append(
            f"{n_agree} of {order['pairs']} pairs of protocols stand in the published order of regret"
            + (f"; against it: {', '.join(order['against'])}." if order["against"] else ".")
        )
    return lines


def _nearer_fit(fits: Mapping[str, Any]) -> str:
    """Whether the published R² are nearer to our fits, or to those with the two protocols' regrets exchanged."""
    far = {
        key: sum(abs(fits[short]["greedy"][key] - fits[short]["published"]) for short in ("flooding", "fwa"))
        for key in ("r_squared", "r_squared_exchanged")
    }
    if far["r_squared_exchanged"] < far["r_squared"]:
        which = "those with the regrets of the two protocols exchanged, as the author's script stores them"
    else:
        which = "those of each protocol's own regret"
    return f"Of our fits of regret against delta, {which}, are nearer to the published R²."


def _sections(
    reproduction: Reproduction, values: Mapping[str, Any], figures: Mapping[str, tuple[str, Figure]]
) -> dict[str, tuple[str, str]]:
    """The sections of one rule set: anchor -> heading and content."""
    sections = {}
    found = tables(values)
    for number in reproduction.figures:
        parts = [pages.picture(*drawn) for name, drawn in figures.items() if name.startswith(f"figure{number}")]
        parts += [f'<p class="note">{html.escape(line)}</p>' for line in notes(values, number)]
        own = {title: rows for title, rows in found.items() if title.startswith(f"Figure {number}")}
        parts.append(f'<div class="tables">{"".join(_table(title, rows) for title, rows in own.items())}</div>')
        heading = f"{_TITLES[number]}, {reproduction.rules} rules"
        sections[f"figure{number}-{reproduction.rules}"] = heading, "\n".join(parts)
    return sections


def _table(title: str, rows: Sequence[Sequence[str]]) -> str:
    return pages.table(title.partition(": ")[2] or title, rows)
