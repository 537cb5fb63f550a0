"""The figures of docs/benchmarks.md: written from results.json, never by hand."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import goals
from tables import Section, markdown

NOT_YET = [{"missing": "this section has not been run"}]


def render(results: Mapping[str, Any], sections: Mapping[str, Section], document: Path) -> None:
    """Fill the places of a document that are marked `<!-- figures: NAME -->` ... `<!-- end -->`."""
    figures = {"machine": "\n".join(f"- {key}: {value}" for key, value in results["machine"].items())}
    for name, section in sections.items():
        figures[name] = f"{section.note}\n\n{markdown(section, results['sections'].get(name, NOT_YET))}"
    unknown = f"Not measured: {NOT_YET[0]['missing']}."
    figures["goals"] = markdown(goals.SECTION, goals.rows_of(results["sections"]))

    def filled(match: re.Match[str]) -> str:
        return f"{match[1]}\n\n{figures.get(match[2], unknown)}\n\n<!-- end -->"

    marked = re.compile(r"(<!-- figures: (\w+) -->)\n.*?<!-- end -->", re.DOTALL)
    document.write_text(marked.sub(filled, document.read_text()))
