"""A study as one HTML file: it opens offline and makes no requests. What came out is first, the words are last."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ..errors import InputError, StudyError
from ..lookup import registry
from ..plots import pages
from ..plots.words import words_of
from ..protocols import AnyProtocol
from ..settings import toml_text
from ..text_tables import decimals, spread
from .lines import as_text, varied
from .pictures import figures_of
from .shards import point_columns
from .spec import Settings
from .store import write_whole
from .summary import summary_rows

if TYPE_CHECKING:
    import pandas as pd

    from .store import Study

#: What is chosen; regrets are compared only where everything else is equal.
_CHOSEN: Final = ("protocol", "emission", "policy", "memory")
#: How many lines a verdict has, and how many points a table.
MAX_VERDICTS: Final = 12
MAX_ROWS: Final = 500
_CAPTIONS: Final = {
    "tradeoff": "Group regret against transmissions, both at the last round",
    "over-time": "Group regret and transmissions over the rounds",
}


def write_study(study: Study, path: Path, command: str = "") -> None:
    """Write the report of a study; see `Study.report`."""
    table = study.table(partial=True)
    table = table[table["error"].isna()]
    if table.empty:
        raise StudyError(f"{study.path} holds no run that succeeded; see the column error of its table")
    manifest = study.manifest
    spec = manifest["spec"]
    swept = ", ".join(spec["sweep"]) or "nothing"
    question = f"What do group regret and transmissions depend on? The study {spec['name']!r} sweeps over {swept}."
    lines = verdict_lines(table, point_columns(manifest["columns"]))
    if len(table) < manifest["n_runs"]:
        lines.append(f"{len(table)} of {manifest['n_runs']} runs are there; the others are missing or failed.")
    try:
        figures = figures_of(study)
        pictures = "".join(
            pages.picture(_CAPTIONS.get(stem, f"Group regret and transmissions {stem.replace('-', ' ', 1)}"), figure)
            for stem, figure in figures.items()
        )
    except InputError as error:  # too many lines for a picture
        pictures = f"<p>{html.escape(str(error))}</p>"
    rows, hidden = summary_rows(table, MAX_ROWS)
    columns = {
        "group regret": "at the last round, summed over all agents; lower is better; mean over replicates",
        "transmissions": "all messages that crossed a link until the last round, mean over replicates",
        "sd": "the standard deviation over replicates of what is on its left",
    }
    told = {name: f"the spec's {name}" for name in rows[0] if name not in columns}
    tables = pages.explained(pages.table("Points of the study", rows), told | columns)
    if hidden:
        tables += f'<p class="note">... and {hidden} more points</p>'
    settings = {
        "Horizon": f"{spec['horizon']:,} rounds, unless it is swept",
        "Replicates": str(spec["replicates"]),
        "Seed": f"{spec['seed']}; the first replicates have {', '.join(map(str, manifest['seeds'][:5]))}",
        "Rules": f"{spec['rules']}, unless they are swept",
        "Versions": ", ".join(f"{name} {version}" for name, version in manifest["versions"].items()),
        "Digest": manifest["digest"],
        **({"Command": command} if command else {}),
    }
    about = pages.settings_table(settings) + f"<p>The spec:</p><pre>{html.escape(spec_text(spec))}</pre>"
    sections = {
        "verdict": ("Verdict", pages.listed(lines)),
        "figures": ("Figures", pictures),
        "tables": ("Tables", tables),
    }
    words = words_of([str(one) for one in table["protocol"].unique()], registry.by_name(AnyProtocol))
    write_whole(path, pages.report(f"Study {spec['name']}", html.escape(question), sections, about, words).encode())


def verdict_lines(table: pd.DataFrame, keys: list[str]) -> list[str]:
    """The point with the least regret among those that differ only in what is chosen, for each such group.

    Parameters
    ----------
    table : DataFrame
        The runs that succeeded.
    keys : list of str
        The columns of the study's keys.
    """
    several = varied(table, keys)
    chosen = [key for key in several if key.partition(".")[0] in _CHOSEN]
    given = [key for key in several if key not in chosen]
    groups = [((), table)] if not given else list(table.groupby(given, sort=False, dropna=False))
    lines = []
    for values, group in groups[:MAX_VERDICTS]:
        means = group.groupby("point")["regret"].mean()
        best = group[group["point"] == means.idxmin()]
        row = best.iloc[0]
        where = ", ".join(f"{key} {as_text(value)}" for key, value in zip(given, values, strict=True))
        named = ", ".join(f"{key} {as_text(row[key])}" for key in (chosen or ["protocol"]) if row[key] == row[key])
        regret = spread(best["regret"].mean(), best["regret"].std(), decimals(means))
        start = f"With {where}: least" if where else "Least"
        lines.append(f"{start} group regret {regret} ({named}), {best['messages'].mean():,.0f} transmissions.")
    if len(groups) > MAX_VERDICTS:
        lines.append(f"... and {len(groups) - MAX_VERDICTS} more; the table has every point.")
    return lines


def spec_text(spec: Mapping[str, Any]) -> str:
    """The spec as TOML without its defaults, or as JSON where it sweeps over whole tables."""
    usual = msgspec.to_builtins(Settings())
    said = {key: value for key, value in spec.items() if key not in usual or value != usual[key]}
    if any(isinstance(value, dict | list) for values in spec["sweep"].values() for value in values):
        return json.dumps(said, indent=1)
    return toml_text.write(said)
