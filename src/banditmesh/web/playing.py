"""The network of the lab as it learns: one or two protocols side by side on the same rewards, round by round.

It plays what is chosen; the sliders for ttl and loss choose anew, and the run is played again, from its beginning and
with the same seed, up to the round that is shown. What was recorded once is kept by the server, see `kept`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from nicegui import background_tasks, ui

from ..animations import as_json
from .choices import ttl_of, with_ttl
from .kept import ROUTE
from .shell import Shell
from .workers import Latest, StoppedError, WorkError

#: What the link of the lab holds besides the choices.
KEYS: Final = ("left", "right", "arm", "round")
MAX_TTL: Final = 8
MAX_LOSS: Final = 0.9
#: How many rounds a second it plays at first, and how high its drawings are, in pixels.
SPEED: Final = 4
HEIGHT: Final = 380
_ALONE: Final = "(none)"
#: Fetch a recording and show it; one that comes late, after another was asked for, is left.
_SHOW: Final = """(async () => {{
  const box = getHtmlElement({box}), mine = box.bmAsked = {{}};
  const answer = await fetch({address});
  if (!answer.ok) throw new Error("the recording is gone: reload the page");
  const found = await answer.json();
  if (box.bmAsked !== mine) return;
  if (!box.bmView) BanditmeshPlayer.mount(box, found, {options});
  else {{
    box.bmView.replace(found, {goes_on});
    if (!{goes_on} && !box.bmView.still.matches) box.bmView.play();
  }}
}})()"""


class Slider(ui.slider):  # type: ignore[misc]
    """A slider that stays where the user puts it: an echo of an earlier position would move it back."""

    LOOPBACK = False


#: Says at which round the drawing stands, 0 while it plays.
_STANDS: Final = """(event) => {
  const {playing, round} = event.detail, now = playing ? 0 : round, box = event.currentTarget || event.target;
  if (box.bmStands !== now) { box.bmStands = now; emit(now); }
}"""
#: How long a recording may still take when another one is asked for, in seconds; a longer one is given up.
_MOMENT: Final = 0.5


class Playing:
    """The player of one browser tab, and what it plays.

    Parameters
    ----------
    shell : Shell
        The frame around it.
    chosen : callable
        What is chosen now.
    choose : callable
        Chooses something, by its key, and plays it: what the sliders are for.
    changed : callable
        Called when the link should say something else, or when it begins or ends to record.
    """

    def __init__(
        self,
        shell: Shell,
        chosen: Callable[[], dict[str, str]],
        choose: Callable[[str, str], None],
        changed: Callable[[], None],
    ) -> None:
        self._shell = shell
        self._worker = shell.worker()
        self._chosen_now, self._choose, self._changed = chosen, choose, changed
        #: What the link says besides the choices.
        self.link: dict[str, str] = {name: shell.query.pop(name) for name in KEYS if name in shell.query}
        self._chosen: dict[str, str] = {}
        self._asking = Latest(self._ask)
        self._goes_on = False
        self._filling = False
        self._kept = ""
        self._began = 0.0
        with ui.element("div").classes("bm-card"):
            with ui.element("div").classes("bm-buttons bm-playing"):
                self._sliders = {
                    "ttl": self._slider("ttl", "ttl", {"min": 1, "max": MAX_TTL, "step": 1}),
                    "loss": self._slider("loss", "loss", {"min": 0, "max": MAX_LOSS, "step": 0.05}),
                }
                self._selects = {
                    "left": self._select("left", "Protocol"),
                    "right": self._select("right", "And protocol"),
                    "arm": self._select("arm", "Heard of arm"),
                }
            self._box = ui.element("div").classes("bm-player").props('data-bm="player"')
            self._box.on("bm-frame", self._stands, js_handler=_STANDS)
            with ui.element("div").classes("bm-buttons"):
                self._said = ui.label().classes("bm-quiet").props('role="status" data-bm="recorded"')
                ui.button("Download the replay (HTML)", icon="movie", on_click=self._take).props(
                    'flat dense data-bm="take-html"'
                )
        shell.on_theme(lambda: self._view(f"set({{theme: '{shell.theme}'}})"))

    @property
    def is_recording(self) -> bool:
        """Whether it is at work."""
        return self._worker.is_busy

    def show(self, chosen: dict[str, str]) -> None:
        """Show where the sliders are for these choices."""
        self._filling = True
        ttl, loss = ttl_of(chosen), _number(chosen.get("faults.loss", ""))
        slider, text = self._sliders["ttl"]
        slider.set_enabled(ttl is not None)
        slider.set_value(min(MAX_TTL, ttl or 1))
        text.set_text(f"ttl {'–' if ttl is None else ttl}")
        slider, text = self._sliders["loss"]
        slider.set_value(min(MAX_LOSS, loss))
        text.set_text(f"loss {loss:.0%}")
        self._filling = False

    def play(self, chosen: dict[str, str], goes_on: bool = False) -> None:
        """Play these choices: from the beginning, or on to the round that is shown."""
        if not goes_on or time.monotonic() > self._began + _MOMENT:
            self.stop()
        self._chosen, self._goes_on = chosen, goes_on
        if not goes_on:
            self.link.pop("round", None)
        self._said.set_text("Recording; a kind's first run compiles the engine for it, once on this machine ...")
        background_tasks.create(self._asking.ask(), name="recording")

    def stop(self) -> None:
        """Stop recording; what is shown stays."""
        if self._worker.is_busy:
            self._worker.stop()
            self._said.set_text(f"{self._said.text} Stopped.")

    async def _ask(self) -> None:
        shown = [name for name in (self.link.get("left"), self.link.get("right")) if name]
        given = self._chosen, self._shell.uploads.folder, shown, self.link.get("arm") or None
        self._began = time.monotonic()
        with self._shell.client:
            self._changed()
            try:
                found = await self._worker.ask("record", *given, tell=self._told)
            except StoppedError:
                return  # whoever stopped it says so
            except WorkError as error:
                self._said.set_text(f"Not recorded: {error}")
            else:
                self._said.set_text(f"{found['round']:,} rounds recorded: {found['holds']}.")
                self._filling = True
                self._selects["arm"].set_value(found["arm"])
                self._filling = False
            finally:
                self._changed()

    def _told(self, news: dict[str, Any]) -> None:
        if self._asking.is_outdated:
            return
        if "labels" in news:
            self._fill(news)
        elif "kept" in news:
            self._said.set_text(f"{news['round']:,} rounds recorded so far.")
            self._kept = news["kept"]
            # The beginning of a run need not be shown to who wants to see a later round.
            if not news["is_shown"] and not (news["is_part"] and int(self.link.get("round") or 0) > news["round"]):
                self._show_kept(news["kept"])
        elif "document" in news:
            document = as_json(news["document"])
            self._shell.client.run_javascript(
                f"{{const box = getHtmlElement({self._box.id}); box.bmAsked = {{}}; "
                f"if (box.bmView) box.bmView.destroy(); BanditmeshPlayer.mount(box, {document}, {self._options()});}}"
            )
        elif "frames" in news:
            self._said.set_text(f"Recording: round {news['round']:,}.")
            self._view(f"append({as_json(news['frames'])}, null, {news['run']})")
        else:
            self._said.set_text(f"Recording: {news['done']:.0%}.")

    def _fill(self, news: dict[str, Any]) -> None:
        """Show which protocols and arms there are, and which are shown."""
        self._filling = True
        left, *right = news["shown"]
        self._selects["left"].set_options(news["labels"], value=left)
        self._selects["right"].set_options([_ALONE, *news["labels"]], value=right[0] if right else _ALONE)
        self._selects["arm"].set_options(news["arms"], value=news["arm"])
        self._filling = False

    def _show_kept(self, key: str) -> None:
        goes_on, self._goes_on = self._goes_on, True
        address = as_json(f"{ROUTE}/{key}")
        script = _SHOW.format(box=self._box.id, address=address, goes_on=as_json(goes_on), options=self._options())
        self._shell.client.run_javascript(script)

    def _options(self) -> str:
        number = self.link.get("round", "")
        begins = {"round": int(number)} if number.isdecimal() else {"autoplay": True}
        return as_json({"theme": self._shell.theme, "height": HEIGHT, "curves": True, "speed": SPEED, **begins})

    def _view(self, call: str) -> None:
        """Send a command to the drawing, if there is one."""
        self._shell.client.run_javascript(f"getHtmlElement({self._box.id})?.bmView?.{call}")

    def _stands(self, event: Any) -> None:
        """The round at which it has stopped goes into the link."""
        self.link["round"] = str(event.args or "")
        self._changed()

    def _slider(self, name: str, label: str, limits: dict[str, float]) -> tuple[Any, Any]:
        with ui.element("div").classes("bm-slide"):
            text = ui.label(label).classes("bm-quiet")
            slider = Slider(**limits, value=limits["min"])
            slider.props(f'dense aria-label="{label}" data-bm="{name}"')
            slider.on_value_change(lambda event: self._slid(name, event.value))
        return slider, text

    def _slid(self, name: str, value: float) -> None:
        if self._filling:
            return
        if name == "ttl":
            self._choose("protocols", with_ttl(self._chosen_now(), int(value)))
        else:
            self._choose("faults.loss", f"{value:.2g}" if value else "")

    def _select(self, name: str, label: str) -> Any:
        select = ui.select([], label=label, on_change=lambda event: self._selected(name, event.value))
        return select.props(f'dense options-dense data-bm="{name}"').classes("bm-pick")

    def _selected(self, name: str, value: Any) -> None:
        if self._filling:
            return
        self.link |= {side: str(self._selects[side].value or "") for side in ("left", "right")}
        if self.link["right"] == _ALONE:
            self.link["right"] = ""
        if name == "arm":
            self.link["arm"] = str(value or "")
        self.play(self._chosen, goes_on=True)

    async def _take(self) -> None:
        if self._worker.is_busy:
            ui.notify("The rounds are still being recorded; wait for the end.", type="warning", position="bottom")
        else:
            folder = self._shell.uploads.folder
            await self._shell.download(self._worker, "recorded_html", "replay.html", folder, self._kept)


def _number(text: str) -> float:
    try:
        return float(text or "0")
    except ValueError:
        return 0.0
