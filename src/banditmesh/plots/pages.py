"""HTML pages that open offline and make no requests: style and pictures are inlined."""

from __future__ import annotations

import base64
import html
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from .style import as_bytes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STYLE: Final = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #222; background: #fff; max-width: 68rem; margin: 2rem auto;
  padding: 0 1.2rem; }
h1 { font-size: 1.6rem; line-height: 1.2; } h2 { font-size: 1.25rem; margin-top: 2.4rem; border-top: 1px solid #ddd;
  padding-top: 1.2rem; }
figure { margin: 1.2rem 0; } figure img { width: 100%; height: auto; display: block; }
figure.narrow img { max-width: 30rem; }
figcaption { font-size: .9rem; color: #555; margin-top: .3rem; }
.tables { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(30rem, 100%), 1fr)); gap: .4rem 2rem;
  align-items: start; overflow-x: auto; }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; width: 100%; }
caption { text-align: left; font-weight: 600; padding: .6rem 0 .2rem; }
th, td { padding: .18rem .5rem; text-align: right; border-bottom: 1px solid #eee; white-space: nowrap; }
th { border-bottom: 1px solid #999; font-weight: 600; } th:first-child, td:first-child { text-align: left; }
.claims td, .claims th { text-align: left; white-space: normal; vertical-align: top; }
.claims div { margin: .1rem 0; display: grid; grid-template-columns: 4.6em 1fr; gap: .5em; align-items: start; }
.claims td:nth-child(2) { width: 18rem; }
.verdict { display: inline-block; min-width: 3.6em; text-align: center; border-radius: .3em; padding: 0 .5em;
  color: #fff; font-weight: 600; }
.holds { background: #00694b; } .fails { background: #a33b00; } .open { background: #666; }
.about { width: auto; } .about td { text-align: left; white-space: normal; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; } dd { margin: 0; }
dt { font-weight: 600; } .note { font-size: .9rem; color: #444; max-width: 60rem; }
pre { background: #f5f5f5; padding: .6rem .8rem; overflow-x: auto; }
@media print { body { max-width: none; margin: 0; font-size: 10pt; } h2 { break-after: avoid; }
  figure { break-inside: avoid; } }
"""


def page(title: str, parts: Sequence[str]) -> str:
    """A whole page, from its parts as HTML.

    Examples
    --------
    >>> page("1 < 2", ["<p>Indeed.</p>"]).splitlines()[-2:]
    ['<p>Indeed.</p>', '</body></html>']
    """
    lines = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{html.escape(title)}</title>",
        f"<style>{_STYLE}</style></head><body>",
        *parts,
        "</body></html>",
    ]
    return "\n".join(lines) + "\n"


def picture(caption: str, figure: Figure) -> str:
    """A figure with its caption, inlined as SVG that is the same for the same figure."""
    data = base64.b64encode(as_bytes(figure, "svg")).decode()
    narrow = ' class="narrow"' if figure.get_figwidth() < 4 else ""
    caption = html.escape(caption)
    image = f'<img alt="{caption}" src="data:image/svg+xml;base64,{data}">'
    return f"<figure{narrow}>{image}<figcaption>{caption}</figcaption></figure>"


def table(title: str, rows: Sequence[Sequence[str]], kind: str = "") -> str:
    """A table with a caption; the first row is its headings, and all text is escaped. "claims" have longer texts.

    Examples
    --------
    >>> table("a & b", [["arm"], ["1"]])
    '<table><caption>a &amp; b</caption><tr><th>arm</th></tr><tr><td>1</td></tr></table>'
    """
    head = "".join(f"<th>{html.escape(cell)}</th>" for cell in rows[0])
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows[1:])
    kind = kind and f' class="{kind}"'
    return f"<table{kind}><caption>{html.escape(title)}</caption><tr>{head}</tr>{body}</table>"
