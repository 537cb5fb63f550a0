"""Studies: a folder that `banditmesh run` writes, finished or not."""

from __future__ import annotations

import csv
import io
from collections.abc import Awaitable
from functools import partial
from typing import Any, Final

from nicegui import ui

from .. import checks
from ..sim.run import TRAFFIC
from . import charts
from .downloads import hand_over
from .shell import Notice, Shell
from .workers import Latest, StoppedError, WorkError

#: How often a study that runs is read again, in seconds.
READ_EVERY: Final = 1.0
_CHOSEN: Final = {"x": "Along the axis", "by": "A line for each", "column": "Column"}
#: What a link calls the values of further keys.
_WHERE: Final = "where."
#: Columns whose names do not say what they count.
_UNITS: Final = {
    "regret": "group regret (reward)",
    "messages": "transmissions",
    "protocol.ttl": "protocol.ttl (hops)",
    "horizon": "horizon (rounds)",
    "faults.delay": "faults.delay (rounds)",
    "faults.jitter": "faults.jitter (rounds)",
    "faults.reward_delay": "faults.reward_delay (rounds)",
    "network.n": "network.n (agents)",
}
_EMPTY: Final = "No study is open: name the folder that was given to banditmesh run --out."
_STATES: Final = {
    "running": "runs, or was killed while it did",
    "interrupted": "was interrupted; the same command continues it",
    "stopped": "stopped with an error; the same command continues it",
    "complete": "is complete",
}


class Studies:
    """The study that one browser tab shows."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self._worker = shell.worker()
        self._wanted = {name: shell.query.get(name, "") for name in _CHOSEN}
        self._where = {
            key.removeprefix(_WHERE): text for key, text in shell.query.items() if key.startswith(_WHERE) and text
        }
        unknown = [key for key in shell.query if key not in ("folder", *_CHOSEN) and not key.startswith(_WHERE)]
        self._told: dict[str, Any] = {}
        self._filling = False
        self._opened = ""
        self._reading = Latest(self._read)
        with shell.main:
            shell.title(
                "Studies", "A study's folder, as banditmesh run writes it: progress, failed runs, any two swept keys."
            )
            shell.words(
                "study", "swept key, point", "regret", "transmission", "protocol", "ttl, hop", "replicate",
            )  # fmt: skip
            with ui.element("div").classes("bm-stack").style("margin-top: .8rem"):
                with ui.element("div").classes("bm-buttons"):
                    self._path = ui.input("Folder", value=shell.query.get("folder", ""))
                    self._path.props('dense spellcheck=false data-bm="folder" hint="on the machine of the server"')
                    self._path.style("flex: 1 1 18rem").on("keydown.enter", self._open)
                    ui.button("Open", icon="folder_open", on_click=self._open).props(
                        'data-bm="open" data-bm-key="start"'
                    )
                self._notice = Notice()
                self._empty = ui.label(_EMPTY).classes("bm-empty").props('data-bm="empty"')
                self._shown = ui.element("div").classes("bm-stack")
                self._shown.set_visibility(False)
                with self._shown:
                    self._results()
        self._timer = ui.timer(READ_EVERY, self._look_again, active=False)
        shell.on_theme(self._redraw)
        if unknown:
            self._notice.refuse(f"{checks.shown(unknown[0])} is not a field of this page; open the folder without it")
        elif self._path.value and shell.is_own:
            ui.timer(0.1, self._open, once=True)
        elif self._path.value:
            self._notice.say("Another site led here: press Open if you want this folder to be read.")

    def _results(self) -> None:
        self._heading = ui.label().props('data-bm="study" role="status"')
        self._progress = ui.linear_progress(0.0, show_value=False, size="12px").props(
            'instant-feedback aria-label="Runs done"'
        )
        with ui.element("div").classes("bm-card"):
            with ui.element("div").classes("bm-buttons bm-playing"):
                self._selects = {}
                for name, label in _CHOSEN.items():
                    select = ui.select([], label=label, on_change=partial(self._choose, name)).classes("bm-pick")
                    self._selects[name] = select.props(f'dense options-dense data-bm="{name}"')
            # The keys that are neither on the axis nor separate lines: one value of each.
            self._fixed = ui.element("div").classes("bm-buttons")
            self._chart = ui.echart(charts.frame("", "", self._shell.is_dark)).classes("bm-tall")
            self._chart.props('role="img" data-bm="chart-study"')
            self._caption = ui.label().classes("bm-quiet").props('data-bm="caption"')
            take = ui.button("CSV of what is shown", on_click=lambda: hand_over("study.csv", self._as_csv))
            take.props('flat dense data-bm="take-csv"')
        self._failures = ui.element("div").classes("bm-card bm-table bm-wrap")
        with self._failures:
            self._failed = ui.label().props('data-bm="n-failed"')
            headings = {"run": "run", "point": "point", "error": "error"}
            columns = [{"name": key, "field": key, "label": name, "align": "left"} for key, name in headings.items()]
            self._table = ui.table(columns=columns, rows=[], row_key="run").props('flat dense data-bm="failed"')

    async def _open(self) -> None:
        folder = (self._path.value or "").strip()
        if self._opened not in ("", folder):
            # Another study has other keys.
            self._wanted, self._where = dict.fromkeys(_CHOSEN, ""), {}
        self._opened = folder
        self._told = {}
        self._timer.active = False
        self._notice.clear()
        self._shown.set_visibility(False)
        self._empty.set_text("Reading ...")
        self._empty.set_visibility(True)
        await self._reading.ask()

    async def _look_again(self) -> None:
        # A study that takes longer to read than its turn leaves the next one out.
        if not self._reading.is_asking:
            await self._reading.ask()

    async def _read(self) -> None:
        folder = (self._path.value or "").strip()
        where = {f"{_WHERE}{key}": text for key, text in self._where.items()}
        self._shell.remember({"folder": folder, **self._wanted, **where})
        if not folder:
            self._notice.fail("a folder is required, got none; name the one that was given to banditmesh run --out")
            self._empty.set_text(_EMPTY)
            return
        try:
            told = await self._worker.ask("study", folder, dict(self._wanted), dict(self._where))
        except StoppedError:
            return
        except WorkError as error:
            if self._reading.is_outdated:
                return
            self._timer.active = False
            self._notice.fail(str(error))
            self._empty.set_text(_EMPTY)
            return
        if self._reading.is_outdated:
            return
        self._timer.active = told["state"] == "running"
        if told != self._told:
            self._told = told
            self._show()

    def _show(self) -> None:
        told = self._told
        self._empty.set_visibility(False)
        self._shown.set_visibility(True)
        self._heading.set_text(
            f"{told['name']}: {told['n_done']} of {told['n_runs']} runs done, {told['n_failed']} failed. "
            f"The study {_STATES[told['state']]}."
        )
        self._progress.set_value(told["n_done"] / told["n_runs"])
        self._progress.set_visibility(told["n_done"] < told["n_runs"])
        self._filling = True
        for name, select in self._selects.items():
            options = told["columns"] if name == "column" else told["keys"]
            select.set_options(options, value=told.get(name) if told.get(name) in options else None)
        self._fixed.clear()
        with self._fixed:
            for key, one in told["where"].items():
                label = f"At {_with_unit(key)}"
                select = ui.select(one["options"], label=label, value=one["value"], on_change=partial(self._fix, key))
                select.style("min-width: 11rem").props(f'dense options-dense data-bm="where-{key}"')
        self._filling = False
        self._failures.set_visibility(bool(told["n_failed"]))
        self._failed.set_text(f"{told['n_failed']} runs failed; the first of them:")
        self._table.rows = told["failed"]
        self._redraw()

    # Whether a user chose is looked at here and now, not in a task that begins when the filling is over.

    def _choose(self, name: str, event: Any) -> Awaitable[None] | None:
        if self._filling:
            return None
        self._wanted[name] = event.value or ""
        if name != "column":
            self._where.pop(self._wanted[name], None)
        return self._reading.ask()

    def _fix(self, key: str, event: Any) -> Awaitable[None] | None:
        if self._filling:
            return None
        self._where[key] = event.value or ""
        return self._reading.ask()

    def _as_csv(self) -> str:
        """The points of the chart: a row for each, with the values of all keys that it is at."""
        told, stream = self._told, io.StringIO()
        rows = csv.writer(stream, lineterminator="\n")
        fixed = {key: one["value"] for key, one in told["where"].items()}
        line = told["by"] or "line"
        rows.writerow([*fixed, line, told["x"], told["column"], f"{told['column']}_sd", "replicates"])
        for name, points in told["series"].items():
            rows.writerows([*fixed.values(), name, *point] for point in points)
        return stream.getvalue()

    def _redraw(self) -> None:
        told = self._told
        if not told.get("series"):
            return
        is_dark = self._shell.is_dark
        options = charts.frame(_with_unit(told["x"]), _with_unit(told["column"]), is_dark)
        options["xAxis"]["scale"] = True
        if all(float(x).is_integer() for points in told["series"].values() for x, *_ in points if told["is_numeric"]):
            options["xAxis"]["minInterval"] = 1
        names = list(told["series"])
        options = charts.with_curves(options, names)
        if not told["is_numeric"]:
            options["xAxis"]["type"] = "category"
        series: list[Any] = []
        for place, (name, points) in enumerate(told["series"].items()):
            values = {
                "mean": [mean for _, mean, _, _ in points],
                "low": [mean - sd for _, mean, sd, _ in points],
                "high": [mean + sd for _, mean, sd, _ in points],
            }
            xs = [x if told["is_numeric"] else str(x) for x, *_ in points]
            is_protocol = told["by"] == "protocol"
            colour, dash = charts.other(place)
            if is_protocol:
                colour, dash = charts.colour_of(name, names, is_dark), charts.dash_of(name, names)
            drawn = charts.curve(name, xs, values, colour, dash)
            drawn[-1] |= {"symbol": "circle", "symbolSize": 7}
            series += drawn
        options["series"] = series
        without = f" {told['n_without']} runs have no {told['x']} and are left out." if told["n_without"] else ""
        at = ", ".join(f"{key} {one['value']}" for key, one in told["where"].items())
        self._caption.set_text(
            f"{f'At {at}: means' if at else 'Means'} over the replicates that are there; bands show one standard "
            f"deviation.{without}"
        )
        charts.draw(self._chart, options)


def _with_unit(column: str) -> str:
    """A column of a study's table, with what it counts."""
    if column in TRAFFIC and column != "bytes":
        return f"{column} (transmissions)" if column != "dropped" else "dropped (messages)"
    return _UNITS.get(column, column)
