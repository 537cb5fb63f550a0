"""Measure how fast banditmesh is: prints tables, writes results.json and the figures of docs/benchmarks.md.

    python benchmarks/run.py                    everything but the very long part
    python benchmarks/run.py --only c,threads   some sections; the others keep what results.json has
    python benchmarks/run.py --million          the sections scale and worlds also with a million agents
    python benchmarks/run.py --quick            tiny sizes, to see that everything runs; writes only what --out names
    python benchmarks/run.py --before ../older/src    also in turns with an older checkout
    python benchmarks/run.py --render           only the document, from results.json

Close other programs first: figures are the least of several repeats, but a busy machine still shows.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import against
import agent
import animations
import c_loop
import choice
import document
import engines
import goals
import growth
import memories
import page
import scale
import startup
import stepper
import threads
import users
import worlds
from tables import Row, Section, show
from timing import machine

import live

RESULTS = Path(__file__).with_name("results.json")
DOCUMENT = Path(__file__).parent.parent / "docs" / "benchmarks.md"


def all_sections() -> dict[str, Section]:
    """The sections by name, in the order in which they run; theory if its file is there."""
    known = [
        engines,
        stepper,
        c_loop,
        choice,
        scale,
        growth,
        worlds,
        memories,
        threads,
        startup,
        users,
        agent,
        animations,
        live,
        page,
    ]
    sections = [module.SECTION for module in known]
    if importlib.util.find_spec("theory") is not None:
        theory = importlib.import_module("theory")
        sections.append(
            getattr(theory, "SECTION", None) or Section("theory", "Theory", theory.__doc__ or "", (), theory.rows)
        )
    return {section.name: section for section in sections}


def main(arguments: Sequence[str]) -> None:
    """Run what the command line asks for."""
    sections = all_sections()
    options = parse(arguments, list(sections))
    if options.quick and options.out and options.out.resolve() == RESULTS.resolve():
        raise SystemExit("a quick run must not overwrite the results, got --out results.json; name another file")
    out = options.out or (None if options.quick else RESULTS)
    results = read(out)
    if options.quick:
        print("Tiny sizes, to see that everything runs: the notes below do not hold, and the figures mean nothing.")
    if not options.render:
        for name in options.only:
            began = time.perf_counter()
            rows = measure(sections[name], options.quick, options.million)
            show(sections[name], rows)
            print(f"({time.perf_counter() - began:.0f} s)", flush=True)
            results["sections"][name] = rows
            if out is not None:
                # After every section: a run that is stopped keeps what it has.
                out.write_text(json.dumps(results, indent=1) + "\n")
        if options.before is not None:
            results["sections"]["before"] = against.rows_before(options.before)
            show(against.SECTION, results["sections"]["before"])
            if out is not None:
                out.write_text(json.dumps(results, indent=1) + "\n")
        if not options.quick:
            show(goals.SECTION, goals.rows_of(results["sections"]))
    if out == RESULTS:
        document.render(results, {**sections, "before": against.SECTION}, DOCUMENT)


def measure(section: Section, quick: bool, million: bool) -> list[Row]:
    rows = section.measure(quick)
    longer = {"scale": scale.measure_million, "worlds": worlds.measure_million}
    return rows + longer[section.name]() if million and section.name in longer else rows


def parse(arguments: Sequence[str], names: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Measure how fast banditmesh is.", epilog=f"sections: {', '.join(names)}"
    )
    parser.add_argument("--only", default=",".join(names), metavar="A,B", help="run these sections (default: all)")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that everything runs")
    parser.add_argument("--million", action="store_true", help="also a million agents, and 100,000 on a BA network")
    parser.add_argument("--before", type=Path, metavar="SRC", help="also compare with the src folder of a checkout")
    parser.add_argument("--render", action="store_true", help="measure nothing, write the document again")
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="where the results go (default: benchmarks/results.json)"
    )
    options = parser.parse_args(arguments)
    if options.before is not None and not (options.before / "banditmesh").is_dir():
        parser.error(f"--before takes a folder that holds banditmesh, got {options.before}")
    options.only = [name for name in options.only.split(",") if name]
    unknown = [name for name in options.only if name not in names]
    if unknown:
        parser.error(f"--only takes sections from {', '.join(names)}, got {unknown[0]!r}")
    return options


def read(path: Path | None) -> dict[str, Any]:
    """Earlier results of this machine, to be brought up to date, or none."""
    results: dict[str, Any] = {"machine": machine(), "sections": {}}
    if path is not None and path.exists():
        earlier = json.loads(path.read_text())
        if earlier["machine"] == results["machine"]:
            return dict(earlier)
        print(f"{path} is of another machine or other versions; it is written anew", file=sys.stderr)
    return results


if __name__ == "__main__":
    main(sys.argv[1:])
