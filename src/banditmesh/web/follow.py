"""Follow a message: hop by hop, under two protocols side by side."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from functools import partial
from typing import Any, Final

from nicegui import ui

from .. import checks
from ..animations import GALLERY, as_json
from . import choices
from .choices import DEFAULTS, FOLLOWED, to_query
from .shell import Notice, Shell
from .workers import Latest, StoppedError, WorkError

#: The case that is the lab's own problem.
OWN: Final = "own"
_PROTOCOLS: Final = ("left", "right")
_WANTED: Final = ("agent", "arm", *_PROTOCOLS)


class Follow:
    """The message that one browser tab follows."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self._worker = shell.worker()
        cases = {name: case.title for name, case in GALLERY.items()} | {OWN: "The lab's problem"}
        self._case = shell.query.pop("case", "") or next(iter(cases))
        wrong = "" if self._case in cases else f"case must be one of {', '.join(cases)}; got {checks.shown(self._case)}"
        self._case = self._case if self._case in cases else next(iter(cases))
        self._wanted: dict[str, str] = {name: shell.query.pop(name) for name in _WANTED if name in shell.query}
        self._choices = choices.from_query(shell.query)
        wrong = wrong or choices.misfit(shell.query)
        self._told: dict[str, Any] = {}
        self._filling = False
        self._asking = Latest(self._ask)
        with shell.main:
            shell.title(
                "Follow a message",
                "One observation on its way: who relays it, who absorbs it, who drops a duplicate, where it expires.",
            )
            shell.words(
                "agent", "link", "arm, arm set", "pull, reward", "observation", "message", "copy", "transmission",
                "protocol", "ttl, hop", "relay, absorb, expire", "duplicate",
            )  # fmt: skip
            with ui.element("div").classes("bm-stack").style("margin-top: .8rem"):
                with ui.element("div").classes("bm-buttons"):
                    self._select = {
                        "case": ui.select(
                            cases, value=None if wrong else self._case, label="Case", on_change=self._chose_case
                        ),
                        "agent": ui.select([], label="Agent", with_input=True, on_change=partial(self._chose, "agent")),
                        "arm": ui.select([], label="Arm", on_change=partial(self._chose, "arm")),
                    }
                    for name, select in self._select.items():
                        select.props(f'dense options-dense data-bm="{name}"').classes("bm-pick")
                    for name, label in (("left", "Protocol"), ("right", "And protocol")):
                        field = ui.input(label).props(f'dense spellcheck=false data-bm="{name}"').classes("bm-pick")
                        self._select[name] = field.on("change", partial(self._chose_protocol, name))
                    ui.button("Copy link", icon="link", on_click=shell.copy_link).props("flat dense")
                    ui.button("Download (HTML)", icon="movie", on_click=self._take).props(
                        'flat dense data-bm="take-html"'
                    )
                self._notice = Notice()
                self._about = ui.label("Following the message ...").classes("bm-quiet").props('data-bm="about"')
                with ui.element("div").classes("bm-card"):
                    self._box = ui.element("div").classes("bm-player").props('data-bm="player"')
                    self._box.on("bm-pick", self._picked, js_handler="(event) => emit(event.detail)")
                    ui.label(
                        "Click an agent, or press n or p and then Enter in the drawing, to follow its message."
                    ).classes("bm-quiet")
                self._words = ui.element("div").classes("bm-columns")
        shell.on_theme(self._turn)
        self._notice.refuse(wrong)
        if wrong:
            self._about.set_text("Choose a case.")
        else:
            ui.timer(0.05, self._asking.ask, once=True)

    async def _ask(self) -> None:
        typed = {name: self._select[name].value for name in _PROTOCOLS}
        try:
            given = (self._case, self._choices, self._shell.uploads.folder, dict(self._wanted))
            told = await self._worker.ask("follow", *given)
        except StoppedError:
            return
        except WorkError as error:
            self._notice.fail(str(error))
            self._about.set_text(self._told.get("text", ""))
            self._show_protocols(self._asked_for(), typed)
            return
        if not self._asking.is_outdated:
            self._notice.clear()
            self._show(told, typed)

    def _show(self, told: dict[str, Any], typed: dict[str, str]) -> None:
        """Show an answer; fields that were edited since the question keep their text."""
        self._told = told
        self._filling = True
        self._select["agent"].set_options(
            told["agents"], value=told["agent"] if told["agent"] in told["agents"] else None
        )
        self._select["arm"].set_options(told["arms"], value=told["arm"])
        self._show_protocols(told["protocols"], typed)
        self._filling = False
        self._about.set_text(told["text"])
        theme, document = self._shell.theme, as_json(told["document"])
        self._shell.client.run_javascript(
            f"{{const box = getHtmlElement({self._box.id}); if (box.bmView) box.bmView.replace({document}); "
            f"else BanditmeshPlayer.mount(box, {document}, {{theme: '{theme}', height: 380}});}}"
        )
        self._words.clear()
        with self._words:
            named = [one for one in told["protocols"] if one]
            for number, (name, lines, sent) in enumerate(zip(named, told["words"], told["sent"], strict=True)):
                with ui.element("section").classes("bm-card"):
                    ui.label(f"{name}: {sent} transmissions").style("font-weight: 600").props(
                        f'data-bm="sent-words-{number}"'
                    )
                    with ui.element("ol").props(f'data-bm="words-{number}"'):
                        for line in lines:
                            with ui.element("li"):
                                ui.label(line)
        self._remember()

    def _asked_for(self) -> list[str]:
        """The protocols in the question, which may be what is wrong."""
        usual = GALLERY[self._case].protocols if self._case in GALLERY else FOLLOWED
        return [self._wanted.get("left") or usual[0], self._wanted.get("right", usual[-1])]

    def _show_protocols(self, protocols: Sequence[str], typed: dict[str, str]) -> None:
        for name, text in zip(_PROTOCOLS, protocols, strict=True):
            if self._select[name].value == typed[name]:
                self._select[name].set_value(text)

    def _remember(self) -> None:
        more = {"case": self._case, **{name: self._wanted.get(name, "") for name in _WANTED}}
        self._shell.remember(to_query(self._choices, DEFAULTS, **more))

    async def _chose_case(self, event: Any) -> None:
        self._case = event.value
        self._wanted = {name: text for name, text in self._wanted.items() if name in _PROTOCOLS}
        await self._asking.ask()

    def _chose(self, name: str, event: Any) -> Awaitable[None] | None:
        # Whether a user chose is looked at here and now, not in a task that begins when the filling is over.
        if self._filling or not event.value:
            return None
        self._wanted[name] = str(event.value)
        return self._asking.ask()

    async def _chose_protocol(self, name: str) -> None:
        self._wanted[name] = (self._select[name].value or "").strip()
        await self._asking.ask()

    async def _picked(self, event: Any) -> None:
        self._wanted["agent"] = str(event.args["name"])
        await self._asking.ask()

    def _turn(self) -> None:
        change = f"set({{theme: '{self._shell.theme}'}})"
        self._shell.client.run_javascript(f"getHtmlElement({self._box.id})?.bmView?.{change}")

    async def _take(self) -> None:
        await self._shell.download(self._worker, "followed_html", "message.html")
