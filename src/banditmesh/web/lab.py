"""The lab: choose a problem and protocols, run them, and watch them learn."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from nicegui import background_tasks, ui

from ..animations import as_json
from . import charts, choices
from .downloads import download_buttons, hand_over, node_toml, spec_of
from .form import Form
from .shell import Shell, Workspace, columns_of, narrow_note
from .workers import StoppedError, WorkError

#: What is drawn over the rounds: key -> name and unit.
MEASURES: Final = {"regret": "group regret (reward)", "messages": "transmissions"}
#: The columns of the table: field -> heading.
COLUMNS: Final = {
    "protocol": "protocol",
    "regret": "group regret (reward)",
    "regret_sd": "±\u00a0sd",
    "messages": "transmissions",
    "messages_sd": "±\u00a0sd",
    "first_share": "first pulls (of the regret)",
    "agent_worst": "worst agent's regret (reward)",
    "duplicate": "duplicates",
    "absorbed": "absorbed",
    "expired": "expired",
    "lost": "lost",
    "bytes": "traffic (bytes)",
}
#: How the browser writes numbers and shares in cells; what is not known is a dash.
NUMBER_FORMAT: Final = (
    "(value) => value === null ? '–' : value.toLocaleString('en', {maximumFractionDigits: value < 1e5 ? 2 : 0})"
)
SHARE_FORMAT: Final = "(value) => value === null ? '–' : value.toLocaleString('en', {style: 'percent'})"


class Lab:
    """The lab of one browser tab: a form, two charts, a table and the network."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self._worker, self._recording = shell.worker(), shell.worker()
        #: The choices of the latest run, and those whose results are shown: fields may say something else by then.
        self._asked: dict[str, str] = {}
        self._ran: dict[str, str] = {}
        self._horizon = 1
        self._labels: list[str] = []
        self._curves: dict[str, Any] = {}
        with shell.main:
            shell.title("Lab", "Choose a network, arms and protocols; run them; watch regret, traffic and the network.")
            shell.words(
                "agent", "link", "arm, arm set", "pull, reward", "regret", "policy", "protocol", "emission", "message",
                "transmission", "traffic", "ttl, hop", "relay, absorb, expire", "duplicate", "fault, lost",
                "round, horizon", "replicate", "seed", "rules", "engine",
            )  # fmt: skip
            empty = "Nothing has run yet: press Run, or Ctrl-Enter."
            self._space = space = Workspace(shell, "Run", self.run, self.stop, empty)
        with space.buttons:
            follow = ui.button("Follow a message here", icon="moving", on_click=self._follow)
            follow.props('flat dense data-bm="follow"')
        with space.fields:
            self._form = Form(shell, choices.from_query(shell.query), self._changed)
        with space.results:
            self._results()
        space.notice.refuse(choices.misfit(shell.query))
        shell.on_theme(self._redraw)

    def _follow(self) -> None:
        ui.navigate.to(f"/follow?{choices.to_query(self._form.choices, case='own')}")

    def _results(self) -> None:
        with ui.element("div").classes("bm-pair"):
            self._charts = {}
            for measure, name in MEASURES.items():
                with ui.element("div").classes("bm-card"):
                    options = charts.frame("round", name, self._shell.is_dark)
                    chart = ui.echart(options).classes("bm-chart").props(f'role="img" aria-label="{name} by round"')
                    self._charts[measure] = chart.props(f'data-bm="chart-{measure}"')
        ui.label("Lines are means over replicates, bands one standard deviation.").classes("bm-quiet")
        with ui.element("div").classes("bm-card bm-table"):
            columns = columns_of(
                COLUMNS,
                less=("duplicate", "absorbed", "expired", "lost", "bytes"),
                least=("messages_sd", "first_share", "agent_worst"),
            )
            for column in columns[1:]:
                column["align"] = "right"
                column[":format"] = SHARE_FORMAT if column["name"] == "first_share" else NUMBER_FORMAT
            self._table = ui.table(columns=columns, rows=[], row_key="protocol").props(
                'flat dense data-bm="results" no-data-label="Its rows come at the end of the run."'
            )
            ui.label(
                "At the horizon: means and standard deviations (sd) over replicates. Duplicates and so on are "
                "counts of transmissions."
            ).classes("bm-quiet")
            narrow_note()
        take = partial(self._shell.download, self._worker)
        download_buttons(
            {
                "csv": partial(take, "curves_csv", "curves.csv"),
                "png": partial(take, "curves_picture", "curves.png", "png"),
                "svg": partial(take, "curves_picture", "curves.svg", "svg"),
                "toml": lambda: hand_over("study.toml", lambda: spec_of(self._ran)),
                "python": lambda: hand_over("run.py", lambda: choices.to_python(self._ran)),
            },
            lambda: self._labels,
            lambda label: node_toml(label, self._ran),
        )
        self._network()

    def _network(self) -> None:
        with ui.element("div").classes("bm-card"):
            ui.html("<h2>The network, round by round</h2>", sanitize=False)
            ui.label(
                "The first replicate. Links are coloured by traffic; agents by their regret, or by how many holders "
                "of an arm they have heard."
            ).classes("bm-quiet")
            with ui.element("div").classes("bm-buttons"):
                self._shown_protocol = ui.select([], label="Protocol", on_change=self._record_again)
                self._shown_protocol.props('dense options-dense data-bm="shown-protocol"').style("min-width: 11rem")
                self._arm = ui.select([], label="Arm whose holders are heard", on_change=self._record_again)
                self._arm.props('dense options-dense data-bm="arm"').style("min-width: 13rem")
                ui.button("Download the replay (HTML)", icon="movie", on_click=self._take_replay).props(
                    'flat dense data-bm="take-html"'
                )
            self._recorded = ui.label().classes("bm-quiet").props('data-bm="recorded"')
            self._box = ui.element("div").classes("bm-player").props('data-bm="player"')

    async def run(self) -> None:
        """Run the choices; old results stay until this run has something to show."""
        self._stop_all()
        self._space.notice.clear()
        mine, before = self._form.choices, self._recorded.text
        self._asked = mine
        self._space.begin("Preparing ...")
        self._record(mine, None, None)
        try:
            found = await self._worker.ask("simulate", mine, self._shell.uploads.folder, tell=partial(self._told, mine))
        except StoppedError:
            # Of a run that made way for another one there is nothing to say.
            if self._asked is not mine:
                return
            self._space.status.set_text("Cancelled.")
        except WorkError as error:
            self._recording.stop()
            self._recorded.set_text(before)
            self._space.notice.fail(str(error))
            self._space.status.set_text("")
        else:
            self._table.rows = found["rows"]
            self._space.status.set_text(f"Done, on the {' and '.join(found['engine'])} engine.")
            self._redraw()
        self._show_state()

    def stop(self) -> None:
        """Stop whatever runs."""
        self._stop_all()
        self._show_state()

    def _stop_all(self) -> None:
        if self._worker.is_busy:
            self._worker.stop()
        if self._recording.is_busy:
            self._recording.stop()
            self._recorded.set_text(f"{self._recorded.text} Stopped.")

    def _show_state(self) -> None:
        """Update buttons and progress."""
        self._space.set_running(self._worker.is_busy, self._worker.is_busy or self._recording.is_busy)

    def _changed(self) -> None:
        self._shell.remember(choices.to_query(self._form.choices))

    def _told(self, chosen: dict[str, str], news: dict[str, Any]) -> None:
        if "labels" in news:
            self._ran, self._labels, self._curves = chosen, news["labels"], {}
            self._horizon = news["horizon"]
            self._table.rows = []
            self._space.show_results()
            if news["hint"]:
                self._space.notice.say(news["hint"])
            self._space.status.set_text(
                f"Running on {news['problem']}; a kind's first run compiles the engine for it, once on this machine."
            )
            self._redraw()
            return
        self._space.show_progress(news["done"], f"Running {news['label']}: {news['done']:.0%} of all.")
        self._curves[news["label"]] = news["curve"]
        # The curves of one protocol are sent, and nothing of the others.
        for measure, chart in self._charts.items():
            series = self._series(news["label"], measure)
            _keep(chart.options["series"], series)
            chart.run_chart_method("setOption", {"series": series})

    def _series(self, label: str, measure: str) -> list[Any]:
        found = self._curves[label]
        colour = charts.colour_of(label, self._labels, self._shell.is_dark)
        return charts.curve(label, found["rounds"], found[measure], colour, charts.dash_of(label, self._labels))

    def _redraw(self) -> None:
        for measure, chart in self._charts.items():
            options = charts.with_curves(charts.frame("round", MEASURES[measure], self._shell.is_dark), self._labels)
            # The whole run is there from the beginning, for the curves to grow into.
            options["xAxis"] |= {"min": 0, "max": self._horizon}
            for label in self._curves:
                _keep(options["series"], self._series(label, measure))
            charts.draw(chart, options)
        self._player(f"set({{theme: '{self._shell.theme}'}})")

    # The network.

    def _record(self, chosen: dict[str, str], protocol: str | None, arm: str | None) -> None:
        self._recording.stop()
        self._recorded.set_text("Preparing ...")
        background_tasks.create(self._recording_of(chosen, protocol, arm), name="recording")

    def _record_again(self) -> None:
        if not self._filling and self._shown_protocol.value is not None:
            self._record(self._ran, self._shown_protocol.value, self._arm.value)

    _filling = False

    async def _recording_of(self, chosen: dict[str, str], protocol: str | None, arm: str | None) -> None:
        folder = self._shell.uploads.folder
        with self._shell.client:
            self._space.set_running(self._worker.is_busy, can_stop=True)
            try:
                found = await self._recording.ask(
                    "record", chosen, folder, protocol or "", arm, tell=self._recorded_some
                )
            except StoppedError:
                return  # the caller that stopped it says so
            except WorkError as error:
                # What is wrong with the choices is said once, by the simulation.
                if self._ran is chosen:
                    self._recorded.set_text(f"Not recorded: {error}")
            else:
                part = ": of a large network, the first ones" if found.get("is_part") else ""
                self._recorded.set_text(f"{found['round']} rounds recorded{part}.")
            self._show_state()

    def _recorded_some(self, news: dict[str, Any]) -> None:
        if "document" in news:
            document = news["document"]
            self._filling = True
            self._shown_protocol.set_options(news["labels"], value=document["label"])
            # A group of agents has no arms.
            self._arm.set_visibility(bool(document["arms"]))
            self._arm.set_options(news["arms"], value=document["arms"][0] if document["arms"] else None)
            self._filling = False
            options = as_json({"theme": self._shell.theme, "height": 420})
            element = f"getHtmlElement({self._box.id})"
            self._shell.client.run_javascript(
                f"{{const box = {element}; if (box.bmView) box.bmView.destroy(); "
                f"BanditmeshPlayer.mount(box, {as_json(document)}, {options});}}"
            )
            return
        self._recorded.set_text(f"Recording: round {news['round']}.")
        self._player(f"append({as_json(news['frames'])})")

    def _player(self, call: str) -> None:
        """Send a command to the drawing, if there is one."""
        self._shell.client.run_javascript(f"getHtmlElement({self._box.id})?.bmView?.{call}")

    async def _take_replay(self) -> None:
        if self._recording.is_busy:
            ui.notify("The rounds are still being recorded; wait for the end.", type="warning", position="bottom")
        else:
            await self._shell.download(self._recording, "recorded_html", "replay.html")


def _keep(series: list[Any], changed: list[Any]) -> None:
    """Replace the series that changed."""
    places = {one["id"]: place for place, one in enumerate(series)}
    for one in changed:
        if one["id"] in places:
            series[places[one["id"]]] = one
