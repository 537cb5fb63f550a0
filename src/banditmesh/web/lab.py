"""The lab: watch a network learn; choose a problem and protocols, and run them."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from nicegui import ui

from . import charts, choices
from .downloads import download_buttons, hand_over, node_toml, spec_of
from .form import Form
from .kept import Kept, results_key
from .playing import Playing
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
#: How the browser writes numbers, of which some are large and some small, and shares; what is not known is a dash.
NUMBER_FORMAT: Final = (
    "(value) => value === null ? '–' : "
    "value.toLocaleString('en', value < 100 ? {maximumSignificantDigits: 3} : {maximumFractionDigits: 0})"
)
SHARE_FORMAT: Final = "(value) => value === null ? '–' : value.toLocaleString('en', {style: 'percent'})"


class Lab:
    """The lab of one browser tab: the network as it learns, settings, and what all replicates give."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self._worker = shell.worker()
        #: The choices of the latest run, and those whose results are shown: fields may say something else by then.
        self._asked: dict[str, str] = {}
        self._ran: dict[str, str] = {}
        self._horizon = 1
        self._labels: list[str] = []
        self._curves: dict[str, Any] = {}
        with shell.main:
            shell.title(
                "Lab", "A network that learns, by two protocols on the same rewards. Change a setting and watch."
            )
            shell.words(
                "agent", "link", "arm, arm set", "pull, reward", "regret", "policy", "protocol", "emission", "message",
                "transmission", "traffic", "ttl, hop", "relay, absorb, expire", "duplicate", "fault, lost",
                "round, horizon", "replicate", "seed", "rules", "engine",
            )  # fmt: skip
            self._playing = Playing(shell, lambda: self._form.choices, self._choose, self._changed)
            empty = "Press Run, or Ctrl-Enter, for all replicates: means with bands, a table, and downloads."
            # What is wrong with a link is set right in the fields.
            is_open = shell.query.pop("settings", "") == "open" or bool(choices.misfit(shell.query))
            self._space = space = Workspace(shell, "Run", self.run, self.stop, empty, self._fold, is_open)
        with space.buttons:
            follow = ui.button("Follow a message here", icon="moving", on_click=self._follow)
            follow.props('flat dense data-bm="follow"')
        with space.fields:
            opening = choices.from_query(shell.query) if shell.query else choices.OPENING
            self._form = Form(shell, opening, self._changed)
        with space.results:
            self._results()
        wrong = choices.misfit(shell.query)
        space.notice.refuse(wrong)
        shell.on_theme(self._redraw)
        self._playing.show(self._form.choices)
        if not wrong and shell.is_own:
            ui.timer(0.05, self._begin, once=True)

    async def _begin(self) -> None:
        """Play at once, and show the results that are kept of these choices, unless a run has begun already."""
        if self._asked:
            return
        mine = self._form.choices
        self._playing.play(mine, goes_on=True)
        self._changed()
        if Kept(self._shell.uploads.folder).path(results_key(mine)) is not None:
            await self._ask(mine, "simulated")

    def _choose(self, key: str, text: str) -> None:
        """A slider was moved: the run is played again up to the round that is shown."""
        self._form.set(key, text)
        self._playing.play(self._form.choices, goes_on=True)

    def _fold(self) -> None:
        self._changed()

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

    async def run(self) -> None:
        """Run the choices; old results stay until this run has something to show."""
        self._stop_all()
        mine = self._form.choices
        self._playing.play(mine)
        await self._ask(mine, "simulate")

    async def _ask(self, mine: dict[str, str], question: str) -> None:
        self._space.notice.clear()
        self._asked = mine
        self._space.begin("Preparing ...")
        try:
            found = await self._worker.ask(question, mine, self._shell.uploads.folder, tell=partial(self._told, mine))
        except StoppedError:
            # Of a run that made way for another one there is nothing to say.
            if self._asked is not mine:
                return
            self._space.status.set_text("Cancelled.")
        except WorkError as error:
            self._space.notice.fail(str(error))
            self._space.status.set_text("")
        else:
            if found is None:
                self._space.status.set_text("")
                self._show_state()
                return
            self._table.rows = found["rows"]
            kept = " Kept from an earlier run." if question == "simulated" else ""
            self._space.status.set_text(f"Done, on the {' and '.join(found['engine'])} engine.{kept}")
            self._redraw()
        self._show_state()

    def stop(self) -> None:
        """Stop whatever runs."""
        self._stop_all()
        self._show_state()

    def _stop_all(self) -> None:
        if self._worker.is_busy:
            self._worker.stop()
        self._playing.stop()

    def _show_state(self) -> None:
        """Update buttons and progress."""
        self._space.set_running(self._worker.is_busy, self._worker.is_busy or self._playing.is_recording)

    def _changed(self) -> None:
        """Something else is chosen, shown or recorded."""
        mine = self._form.choices
        self._playing.show(mine)
        settings = "open" if self._space.is_open else ""
        query = choices.to_query(mine, choices.DEFAULTS, settings=settings, **self._playing.link)
        # Without anything in the link, another network would be chosen.
        self._shell.remember(query or f"network.name={mine['network.name']}")
        self._shell.carry(mine)
        self._show_state()

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


def _keep(series: list[Any], changed: list[Any]) -> None:
    """Replace the series that changed."""
    places = {one["id"]: place for place, one in enumerate(series)}
    for one in changed:
        if one["id"] in places:
            series[places[one["id"]]] = one
