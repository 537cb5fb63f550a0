"""Downloads of a run: data, pictures, a spec, the lines of a node.toml, lines of Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from nicegui import ui

from ..errors import InputError
from .choices import to_tables, to_toml

_LABELS: Final = {
    "csv": "Data (CSV)",
    "png": "Picture (PNG)",
    "svg": "Picture (SVG)",
    "toml": "Spec (TOML)",
    "python": "Lines of Python",
}
_HEADER: Final = """\
# Made by the page of banditmesh serve. Run it with:   banditmesh run study.toml --out results
# `banditmesh compare study.toml` gives the numbers of the page; `run` draws seeds of its own for the replicates.
"""


def spec_of(chosen: Mapping[str, str]) -> str:
    """The spec of what is chosen, as `banditmesh run` takes it; uploaded files belong beside it."""
    return f"{_HEADER}\n{to_toml(chosen, own_names=True)}"


def node_toml(protocol: str, chosen: Mapping[str, str]) -> str:
    """The lines of a node.toml that run a protocol live, with the policy that is chosen."""
    from ..live.template import protocol_lines
    from ..protocols.notation import labels, read, split
    from ..settings.parts import build_policy

    policy = {key: text for key, text in chosen.items() if key.startswith("policy.")}
    tables = to_tables({**policy, "protocols": "none"})
    known = labels([read(one, 4) for one in split(chosen["protocols"]) if one])
    return protocol_lines(known.get(protocol) or read(protocol, 4), build_policy(tables))


def download_buttons(
    takes: Mapping[str, Callable[[], Any]],
    protocols: Callable[[], Sequence[str]],
    chosen: Callable[[], Mapping[str, str]],
) -> None:
    """A card of buttons, each with what it does: `csv`, `png`, `svg`, `toml` and `python`; and one for a node.toml."""
    with ui.element("div").classes("bm-card"):
        ui.html("<h2>Downloads</h2>", sanitize=False)
        with ui.element("div").classes("bm-buttons"):
            for kind, take in takes.items():
                ui.button(_LABELS[kind], on_click=take).props(f'flat dense data-bm="take-{kind}"')
            _node_button(protocols, chosen)


def hand_over(name: str, make: Callable[[], str]) -> None:
    """Download a text; if it cannot be made, say why."""
    try:
        ui.download.content(make(), name)
    except InputError as error:
        ui.notify(str(error), type="negative", position="bottom")


def _node_button(protocols: Callable[[], Sequence[str]], chosen: Callable[[], Mapping[str, str]]) -> None:
    """A button with a menu: the lines of a node.toml for one of the protocols."""
    with ui.button("node.toml", on_click=lambda: fill()).props('flat dense data-bm="take-node"'):
        menu = ui.menu().props("no-parent-event")

        def fill() -> None:
            menu.clear()
            with menu:
                for protocol in protocols():
                    ui.menu_item(protocol, on_click=partial(take, protocol))
                if not protocols():
                    ui.menu_item("run something first").props("disable")
            menu.open()

        def take(protocol: str) -> None:
            hand_over("protocol.node.toml", lambda: node_toml(protocol, chosen()))
