"""HTML pages that open offline and make no requests: style and pictures are inlined."""

from __future__ import annotations

import base64
import html
from collections.abc import Mapping, Sequence
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
.tables.wide { display: block; } .take { font-size: 1.1rem; font-weight: 600; }
.about { width: auto; } .about td { text-align: left; white-space: normal; }
nav.brief ol { display: flex; flex-wrap: wrap; gap: .1rem 1.2rem; padding: 0; list-style: none; font-size: .9rem; }
dl { display: grid; grid-template-columns: minmax(4rem, max-content) 1fr; gap: .15rem 1rem; } dd { margin: 0; }
dt { font-weight: 600; } .note { font-size: .9rem; color: #444; max-width: 60rem; }
pre { background: #f5f5f5; padding: .6rem .8rem; overflow-x: auto; }
@media (max-width: 40rem) { figure { overflow-x: auto; } figure:not(.narrow) img { width: 40rem; }
  dl { display: block; } dd { margin: 0 0 .4rem; } }
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


def report(
    title: str, question: str, sections: Mapping[str, tuple[str, str]], settings: str, words: Mapping[str, str]
) -> str:
    """A whole report: the question, links to all sections, the sections, what to repeat it with, and its words last.

    Parameters
    ----------
    title : str
        Its title, as text.
    question : str
        What is asked, as HTML.
    sections : mapping from str to (str, str)
        Anchor -> heading as text and content as HTML; the first one is the answer.
    settings : str
        What is needed to repeat it, as HTML.
    words : mapping from str to str
        Word -> meaning.

    Examples
    --------
    >>> text = report("Arms", "Which?", {"answer": ("Answer", "<p>This.</p>")}, "<p>seed 0</p>", {"arm": "pays"})
    >>> [text.index(one) for one in ("Which?", "This.", "seed 0", "pays")] == sorted(
    ...     text.index(one) for one in ("Which?", "This.", "seed 0", "pays")
    ... )
    True
    """
    meanings = "".join(f"<dt>{html.escape(word)}</dt><dd>{html.escape(text)}</dd>" for word, text in words.items())
    every = {**sections, "runs": ("What was run", settings), "words": ("Words", f"<dl>{meanings}</dl>")}
    links = "".join(f'<li><a href="#{at}">{html.escape(heading)}</a></li>' for at, (heading, _) in every.items())
    parts = [f'<h2 id="{at}">{html.escape(heading)}</h2>\n{content}' for at, (heading, content) in every.items()]
    start = [f"<h1>{html.escape(title)}</h1>", f"<p>{question}</p>", f'<nav class="brief"><ol>{links}</ol></nav>']
    return page(title, [*start, *parts])


def settings_table(rows: Mapping[str, str]) -> str:
    """Settings and their values, as text.

    Examples
    --------
    >>> settings_table({"Seed": "0"})
    '<table class="about"><tr><td>Seed</td><td>0</td></tr></table>'
    """
    cells = "".join(f"<tr><td>{html.escape(key)}</td><td>{html.escape(text)}</td></tr>" for key, text in rows.items())
    return f'<table class="about">{cells}</table>'


def listed(lines: Sequence[str]) -> str:
    """Lines of text as a list.

    Examples
    --------
    >>> listed(["a < b"])
    '<ul><li>a &lt; b</li></ul>'
    """
    return f"<ul>{''.join(f'<li>{html.escape(line)}</li>' for line in lines)}</ul>"


def explained(rows: str, columns: Mapping[str, str]) -> str:
    """A table, and below it what each of its columns means.

    Examples
    --------
    >>> explained("<table></table>", {"ours": "a mean"}).partition("</div>")[2]
    '<dl class="note"><dt>ours</dt><dd>a mean</dd></dl>'
    """
    meanings = "".join(f"<dt>{html.escape(name)}</dt><dd>{html.escape(text)}</dd>" for name, text in columns.items())
    return f'{wide(rows)}<dl class="note">{meanings}</dl>'


def wide(rows: str) -> str:
    """A table that has a scroll bar of its own where the window is too narrow for it.

    Examples
    --------
    >>> wide("<table></table>")
    '<div class="tables wide"><table></table></div>'
    """
    return f'<div class="tables wide">{rows}</div>'


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
