"""Downloads of a run: data, pictures, a spec, the lines of a node.toml, lines of Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from nicegui import ui

from ..errors import InputError
from .choices import listed, to_tables, to_toml

if TYPE_CHECKING:
    from ..policies import Policy
    from ..protocols import AnyProtocol

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


def node_toml(label: str, chosen: Mapping[str, str]) -> str:
    """The lines of a node.toml that run live what a comparison of what is chosen calls by a label."""
    from ..comparisons.entries import read_entries, read_policies
    from ..protocols.notation import read

    policies = read_policies(listed(chosen, "policies") or None)
    protocols = [read(one, 4) for one in listed(chosen, "protocols")]
    known = read_entries(protocols, policies if len(policies) > 1 else ())
    if label not in known:
        return node_lines(read(label, 4), None, chosen)
    return node_lines(known[label].protocol, known[label].settings.get("policy"), chosen)


def node_lines(protocol: AnyProtocol, policy: Policy | None, chosen: Mapping[str, str]) -> str:
    """The lines of a node.toml that run a protocol live, with a policy or, without one, that which is chosen."""
    from ..live.template import protocol_lines
    from ..settings.parts import as_policy, build_policy

    if policy is None:
        one = {key: text for key, text in chosen.items() if key.partition(".")[0] in ("policy", "memory")}
        named = listed(chosen, "policies")
        policy = as_policy(named[0]) if named else build_policy(to_tables({**one, "protocols": "none"}))
    return protocol_lines(protocol, policy)


def download_buttons(
    takes: Mapping[str, Callable[[], Any]],
    protocols: Callable[[], Sequence[str]],
    make_node: Callable[[str], str],
) -> None:
    """A card of buttons, each with what it does: `csv`, `png`, `svg`, `toml` and `python`; and one for a node.toml."""
    with ui.element("div").classes("bm-card"):
        ui.html("<h2>Downloads</h2>", sanitize=False)
        with ui.element("div").classes("bm-buttons"):
            for kind, take in takes.items():
                ui.button(_LABELS[kind], on_click=take).props(f'flat dense data-bm="take-{kind}"')
            _node_button(protocols, make_node)


def hand_over(name: str, make: Callable[[], str]) -> None:
    """Download a text; if it cannot be made, say why."""
    try:
        ui.download.content(make(), name)
    except InputError as error:
        ui.notify(str(error), type="negative", position="bottom")


def _node_button(protocols: Callable[[], Sequence[str]], make: Callable[[str], str]) -> None:
    """A button with a menu: the lines of a node.toml for one of the protocols, which are made by its name."""
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
            hand_over("protocol.node.toml", lambda: make(protocol))
