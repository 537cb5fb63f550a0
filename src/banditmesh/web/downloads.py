"""Downloads of a run: data, pictures, a spec, the lines of a node.toml, lines of Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from nicegui import ui

from ..errors import InputError
from .choices import listed, to_python, to_tables, to_toml
from .shell import Shell
from .workers import Worker

if TYPE_CHECKING:
    from ..policies import Policy
    from ..protocols import AnyProtocol

_HEADER = """\
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
    known = read_entries([read(one, 4) for one in listed(chosen, "protocols")], policies)
    if label not in known:
        return node_lines(read(label, 4), None, chosen)
    return node_lines(known[label].protocol, known[label].settings.get("policy"), chosen)


def node_lines(protocol: AnyProtocol, policy: Policy | None, chosen: Mapping[str, str]) -> str:
    """The lines of a node.toml that run a protocol live, with a policy or, without one, that which is chosen."""
    from ..live.template import protocol_lines
    from ..settings.parts import build_policy

    if policy is None:
        one = {key: text for key, text in chosen.items() if key.partition(".")[0] in ("policy", "memory")}
        policy = build_policy(to_tables({**one, "protocols": "none"}))
    return protocol_lines(protocol, policy)


def download_buttons(
    shell: Shell, worker: Worker, chosen: Callable[[], Mapping[str, str]], protocols: Callable[[], Sequence[str]]
) -> None:
    """Buttons for all of it."""

    def text(make: Callable[[], str], name: str) -> Callable[[], None]:
        def hand_over() -> None:
            try:
                ui.download.content(make(), name)
            except InputError as error:
                ui.notify(str(error), type="negative", position="bottom")

        return hand_over

    with ui.element("div").classes("bm-card"):
        ui.html("<h2>Downloads</h2>", sanitize=False)
        with ui.element("div").classes("bm-buttons"):
            for label, question, name, given in (
                ("Data (CSV)", "curves_csv", "curves.csv", ()),
                ("Picture (PNG)", "curves_picture", "curves.png", ("png",)),
                ("Picture (SVG)", "curves_picture", "curves.svg", ("svg",)),
            ):

                async def take(question: str = question, name: str = name, given: tuple[str, ...] = given) -> None:
                    await shell.download(worker, question, name, *given)

                ui.button(label, on_click=take).props(f'flat dense data-bm="take-{name}"')
            spec = text(lambda: spec_of(chosen()), "study.toml")
            ui.button("Spec (TOML)", on_click=spec).props('flat dense data-bm="take-toml"')
            lines = text(lambda: to_python(chosen()), "run.py")
            ui.button("Lines of Python", on_click=lines).props('flat dense data-bm="take-python"')
            node_button(protocols, lambda label: node_toml(label, chosen()))


def node_button(protocols: Callable[[], Sequence[str]], make: Callable[[str], str]) -> None:
    """A button with a menu: the lines of a node.toml for one of the protocols, which are made by its name."""
    with ui.button("node.toml", on_click=lambda: fill()).props('flat dense data-bm="take-node"'):
        menu = ui.menu().props("no-parent-event")

        def fill() -> None:
            menu.clear()
            with menu:
                for protocol in protocols():
                    ui.menu_item(protocol, on_click=lambda protocol=protocol: hand_over(protocol))
                if not protocols():
                    ui.menu_item("run something first").props("disable")
            menu.open()

        def hand_over(protocol: str) -> None:
            try:
                ui.download.content(make(protocol), "protocol.node.toml")
            except InputError as error:
                ui.notify(str(error), type="negative", position="bottom")
