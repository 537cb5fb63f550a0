"""What all views share: header, navigation, dark mode, messages, and the words of the page.

A view is a function that fills the page; `Shell` is what it gets. Everything can be reached with the keyboard: the
header's links, then the view's fields in their order; Ctrl-Enter starts what a view does, Escape stops it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from importlib import resources
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from nicegui import ui

from .polling import Meshes
from .words import WORDS
from .workers import Worker, WorkError

if TYPE_CHECKING:
    from .uploads import Uploads

#: The views: path -> name.
VIEWS: Final = {
    "/": "Lab",
    "/follow": "Follow a message",
    "/compare": "Compare",
    "/studies": "Studies",
    "/mesh": "Mesh",
    "/story": "Story",
}
#: How long a browser may take to say whether it is dark, in seconds: some machines are slow.
THEME_SECONDS: Final = 60.0
_CSS: Final = resources.files(__package__).joinpath("page.css").read_text("utf-8")
#: Dark or light as the user chose in this browser or, if never, as the system has it.
_READ_THEME: Final = (
    "(localStorage.getItem('banditmesh-theme') || "
    "(matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light')) === 'dark'"
)
_KEYS: Final = """
// Headings by which a table is sorted are reached and pressed like buttons.
new MutationObserver(() => {
  for (const heading of document.querySelectorAll("th.sortable:not([tabindex])")) heading.tabIndex = 0;
}).observe(document, { childList: true, subtree: true });
// What is chosen goes along from view to view.
for (const kind of ["click", "auxclick", "contextmenu"]) document.addEventListener(kind, (event) => {
  const link = event.target.closest && event.target.closest(".bm-nav a");
  const chosen = sessionStorage.getItem("banditmesh-choices");
  if (link && chosen && ["/", "/follow", "/compare"].includes(new URL(link.href).pathname)) link.search = chosen;
}, true);
document.addEventListener("keydown", (event) => {
  const press = (name) => {
    const button = document.querySelector(`[data-bm-key="${name}"]`);
    if (button && !button.disabled && button.offsetParent) { event.preventDefault(); button.click(); }
  };
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) press("start");
  if (["Enter", " "].includes(event.key) && !event.ctrlKey && event.target.matches("th.sortable")) {
    event.preventDefault();
    event.target.click();
  }
  if (event.key === "Escape" && !document.querySelector(".q-menu, .q-dialog")) press("stop");
});
"""


class Shell:
    """The frame around a view, for one browser tab.

    Attributes
    ----------
    path : str
        Which view it is.
    query : dict
        What the link says.
    uploads : Uploads
        The files of the server.
    is_own : bool
        Whether the visitor came here directly, and not from a page of another site: only then may opening the page
        have the server ask or read something.
    is_dark : bool
        Whether it is shown in dark mode now.
    mesh : Meshes
        Which sidecars the server may ask.
    """

    def __init__(
        self,
        path: str,
        query: Mapping[str, str],
        uploads: Uploads,
        *,
        is_own: bool = True,
        visitor: str = "",
        mesh: Meshes | None = None,
    ) -> None:
        self.path = path
        self.mesh = mesh or Meshes()
        self._visitor = visitor
        self.is_own = is_own
        self.query = dict(query)
        self.uploads = uploads
        self.is_dark = self.query.pop("theme", "") == "dark"
        self._workers: list[Worker] = []
        self._on_theme: list[Callable[[], None]] = []
        self.client = ui.context.client
        ui.add_css(_CSS)
        ui.add_head_html(f"<script>{_KEYS}</script>")
        ui.colors(primary="#0072B2")
        self._dark = ui.dark_mode(self.is_dark)
        self._header()
        self.main = ui.element("main").classes("bm-main")
        ui.skip_link(target=self.main)
        self.client.on_delete(self._close)
        self._asks_theme = "theme" not in query
        self.client.on_connect(self._connected)

    @property
    def theme(self) -> str:
        """How it is shown now: "dark" or "light"."""
        return "dark" if self.is_dark else "light"

    def worker(self) -> Worker:
        """A worker for this tab; it ends with the tab."""
        self._workers.append(Worker(self._visitor, lambda: bool(self.client.has_socket_connection)))
        return self._workers[-1]

    def on_theme(self, redraw: Callable[[], None]) -> None:
        """Call something whenever the page turns dark or light."""
        self._on_theme.append(redraw)

    def title(self, name: str, about: str) -> None:
        """The heading of the view, and what it is for."""
        ui.html(f"<h1>{name}</h1>", sanitize=False, tag="div")
        ui.label(about).classes("bm-quiet")

    def words(self, *names: str) -> None:
        """What the words of the view mean."""
        with ui.expansion("Words on this page", icon="help_outline").classes("bm-quiet").props("dense"):
            lines = "".join(f"<dt>{name}</dt><dd>{WORDS[name]}</dd>" for name in names)
            ui.html(f"<dl class='bm-words'>{lines}</dl>", sanitize=False)

    def remember(self, query: str | Mapping[str, str]) -> None:
        """Show the link back to this state in the address bar: its query, or what is in it, but for what is empty."""
        if not isinstance(query, str):
            query = urlencode({name: value for name, value in query.items() if value}, safe=":/,")
        where = f"{self.path}?{query}" if query else self.path
        self.client.run_javascript(f"history.replaceState(history.state, '', {json.dumps(where)})")

    def carry(self, chosen: Mapping[str, str]) -> None:
        """Take what is chosen along to the other views of this tab."""
        from .choices import DEFAULTS, to_query

        # Other views run for other horizons unless they are told; no protocol is no choice.
        known = {key: text for key, text in DEFAULTS.items() if key not in ("horizon", "replicates")}
        carried = {key: text for key, text in chosen.items() if text or key != "protocols"}
        query = to_query({"protocols": DEFAULTS["protocols"], **carried}, known)
        self.client.run_javascript(f"sessionStorage.setItem('banditmesh-choices', {json.dumps(query)})")

    def copy_link(self) -> None:
        """Copy the link back to this state to the clipboard."""
        self.client.run_javascript(
            "(navigator.clipboard ? navigator.clipboard.writeText(location.href) : Promise.reject())"
            ".then(() => 'The link is in the clipboard', () => 'Copy the link from the address bar')"
            ".then((line) => Quasar.Notify.create({message: line, position: 'bottom', timeout: 2500}))"
        )

    async def download(self, worker: Worker, question: str, name: str, *given: Any) -> None:
        """Download a file that a worker makes."""
        try:
            content = await worker.ask(question, *given)
        except WorkError as error:
            ui.notify(str(error), type="warning", position="bottom")
            return
        ui.download.content(content, name)

    async def _connected(self) -> None:
        if self._asks_theme:
            self._asks_theme = False
            if await self.client.run_javascript(_READ_THEME, timeout=THEME_SECONDS):
                self._turn(True)

    def _header(self) -> None:
        with ui.element("header").classes("bm-header"):
            ui.label("banditmesh").classes("bm-brand")
            with ui.element("nav").classes("bm-nav").props('aria-label="Views"'):
                for path, name in VIEWS.items():
                    link = ui.link(name, path)
                    if path == self.path:
                        link.props('aria-current="page"')
            ui.space()
            toggle = ui.button(icon="dark_mode", on_click=self._toggle).props("flat round dense color=white")
            toggle.props('aria-label="Dark mode"').tooltip("Dark mode on or off")

    def _toggle(self) -> None:
        self._turn(not self.is_dark)
        self.client.run_javascript(f"localStorage.setItem('banditmesh-theme', '{self.theme}')")

    def _turn(self, is_dark: bool) -> None:
        self.is_dark = is_dark
        self._dark.value = is_dark
        for redraw in self._on_theme:
            redraw()

    def _close(self) -> None:
        for worker in self._workers:
            worker.stop()


def columns_of(
    headings: Mapping[str, str], less: Collection[str] = (), least: Collection[str] = ()
) -> list[dict[str, Any]]:
    """The columns of a table that can be sorted by each of them.

    Parameters
    ----------
    headings : mapping from str to str
        Field -> heading.
    less, least : collections of str
        The fields that are left out where there is less room, and where there is least.
    """
    return [
        {
            "name": key,
            "field": key,
            "label": heading,
            "sortable": True,
            "align": "left",
            **dict.fromkeys(
                ("classes", "headerClasses"), "bm-less" if key in less else "bm-least" if key in least else ""
            ),
        }
        for key, heading in headings.items()
    ]


def narrow_note() -> None:
    """On a narrow screen, say that a table has more columns."""
    ui.label("A wider window shows more columns.").classes("bm-quiet bm-narrow")


class Workspace:
    """The frame of a view that runs something: buttons and fields beside what comes of it.

    Parameters
    ----------
    shell : Shell
        The frame around it.
    label : str
        What the button says that starts a run.
    run, stop : callable
        What the buttons do.
    empty : str
        What is shown before anything has run.
    folded : callable, optional
        Called when the fields were shown or hidden; without it they are always shown.
    is_open : bool
        Whether they are shown at first.

    Attributes
    ----------
    buttons, fields, results : element
        Where to put further buttons, fields, and what is shown once `show_results` is called.
    notice, status : Notice and label
        Where to say what is wrong, and how far a run is.
    """

    def __init__(
        self,
        shell: Shell,
        label: str,
        run: Callable[[], Any],
        stop: Callable[[], Any],
        empty: str,
        folded: Callable[[], None] | None = None,
        is_open: bool = True,
    ) -> None:
        self.is_open = is_open
        self._folded = folded
        with ui.element("div").classes("bm-split bm-form") as self._split:
            with ui.element("div").classes("bm-buttons") as self.buttons:
                self._run = ui.button(label, icon="play_arrow", on_click=run)
                self._run.props('data-bm="run" data-bm-key="start"')
                self._stop = ui.button("Cancel", icon="stop", on_click=stop)
                self._stop.props('outline data-bm="cancel" data-bm-key="stop"').disable()
                ui.button("Copy link", icon="link", on_click=shell.copy_link).props("flat dense")
                if folded is not None:
                    settings = ui.button("Settings", icon="tune", on_click=self._turn)
                    self._settings = settings.props(
                        f'flat dense data-bm="settings" aria-expanded={str(is_open).lower()}'
                    )
                    if not is_open:
                        self._split.classes("bm-folded")
            self.fields = ui.element("div").classes("bm-stack bm-settings")
            with ui.element("div").classes("bm-stack"):
                with ui.element("div").classes("bm-stack bm-told"):
                    self.notice = Notice()
                    self._progress = ui.linear_progress(0.0, show_value=False, size="8px")
                    self._progress.props('instant-feedback aria-label="Progress"').set_visibility(False)
                    self.status = ui.label().classes("bm-quiet").props('role="status" data-bm="run-status"')
                self._empty = ui.label(empty).classes("bm-empty")
                self.results = ui.element("div").classes("bm-stack")
                self.results.set_visibility(False)

    def _turn(self) -> None:
        """Show the fields, or hide them."""
        assert self._folded is not None
        self.is_open = not self.is_open
        self._split.classes(remove="bm-folded") if self.is_open else self._split.classes("bm-folded")
        self._settings.props(f"aria-expanded={str(self.is_open).lower()}")
        if self.is_open:
            # Where they are below the results, they come into sight.
            ui.run_javascript(
                f"{{const one = getHtmlElement({self.fields.id}).querySelector('.bm-card'); "
                "setTimeout(() => one.scrollIntoView({block: 'nearest', behavior: 'smooth'}), 50)}"
            )
        self._folded()

    def begin(self, status: str) -> None:
        """A run begins."""
        self._progress.set_value(0.0)
        self.status.set_text(status)
        self.set_running(True)

    def show_progress(self, done: float, status: str) -> None:
        """Show how far it is, from 0 to 1."""
        self._progress.set_value(done)
        self.status.set_text(status)

    def set_running(self, is_running: bool, can_stop: bool | None = None) -> None:
        """Whether something runs, and whether there is anything to stop; the same unless given."""
        self._run.set_enabled(not is_running)
        self._progress.set_visibility(is_running)
        self._stop.set_enabled(is_running if can_stop is None else can_stop)

    def show_results(self) -> None:
        """Show results from now on."""
        self._empty.set_visibility(False)
        self.results.set_visibility(True)


class Notice:
    """A place for one line: an error, a remark, or nothing."""

    def __init__(self) -> None:
        self._line = ui.label().classes("bm-note").props('role="status" data-bm="notice"')
        self._line.set_visibility(False)

    def say(self, line: str) -> None:
        """Show a remark."""
        self._show(line, "bm-note", "bm-error", "status")

    def fail(self, line: str) -> None:
        """Show an error."""
        self._show(line, "bm-error", "bm-note", "alert")

    def refuse(self, line: str) -> None:
        """Show what is wrong with a link, in one line; an empty one shows nothing."""
        if line:
            self.fail(f"this link cannot be followed as it is: {line}")

    def clear(self) -> None:
        """Show nothing."""
        self._line.set_text("")
        self._line.set_visibility(False)

    def _show(self, line: str, kind: str, other: str, role: str) -> None:
        self._line.classes(add=kind, remove=other).props(f'role="{role}"')
        self._line.set_text(line)
        self._line.set_visibility(True)
