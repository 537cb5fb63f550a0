"""Compare and frontier: regret against cost, which configurations are not beaten, and which one to use."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any, Final

from nicegui import ui

from .. import checks
from ..comparisons.configurations import COSTS, Configuration, Frontier
from ..comparisons.shown import share
from ..protocols.notation import split, write
from . import charts, choices
from .downloads import download_buttons, hand_over, node_lines, spec_of
from .form import Form
from .lab import NUMBER_FORMAT, SHARE_FORMAT
from .shell import Shell, Workspace, columns_of, narrow_note
from .workers import StoppedError, WorkError

_BUDGETS: Final = {
    "max_messages_per_round": ("messages_per_round", "Most transmissions per round, whole network"),
    "max_link_load": ("link_load", "Most transmissions per round on a link"),
}
_DEFAULTS: Final = {
    **choices.DEFAULTS,
    "protocols": "",
    "horizon": "500",
    "replicates": "5",
}
_HINTS: Final = {"protocols": "fwa, flooding(8)+growth(0.25); if empty all of them, trees on static networks too"}
#: What configurations differ in: by which of these they may be coloured, and of which some alone may be shown.
_PARTS: Final = ("protocol", "ttl", "emission", "policy")
_WHERE: Final = tuple(f"where.{part}" for part in _PARTS)
#: What this view's link holds besides the choices.
_OWN: Final = ("ttls", "emissions", "cost", "by", *_WHERE, *_BUDGETS)
#: Between values of a part in a link: commas are within some of them.
_BETWEEN: Final = ";"
_EMPTY: Final = (
    "Nothing has been compared yet: press Compare, or Ctrl-Enter. A plain name such as fwa is combined with every ttl "
    "and emission; fwa(4) is taken as it is."
)
#: The slider's steps from the least cost to the most; the last one is no budget.
_STEPS: Final = 100


class Compare:
    """The comparison of one browser tab."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self._worker = shell.worker()
        self._found: Frontier | None = None
        #: What it was found with: the choices, ttls and emissions; fields may say something else by then.
        self._ran: dict[str, str] = {}
        self._wanted: dict[str, str] = {}
        self._bounds: dict[str, dict[str, float | None]] = {}
        self._own = {name: shell.query.pop(name, "") for name in _OWN}
        chosen = choices.from_query(shell.query, _DEFAULTS)
        with shell.main:
            shell.title(
                "Compare and frontier",
                "What regret costs on a network: protocols, ttls and emissions side by side on the same rewards.",
            )
            shell.words(
                "regret", "transmission", "configuration", "protocol", "ttl, hop", "emission", "front", "busiest link",
                "budget", "bound", "agent", "link", "arm, arm set", "pull, reward", "policy", "message", "fault, lost",
                "round, horizon", "replicate", "seed", "rules",
            )  # fmt: skip
            self._space = space = Workspace(shell, "Compare", self.run, self._worker.stop, _EMPTY)
        with space.fields:
            with ui.element("div").classes("bm-card bm-fields"):
                for name, hint in (
                    ("ttls", "2, 4, 8; from the diameter if empty"),
                    ("emissions", "every-pull, growth(0.25); five if empty"),
                ):
                    field = ui.input(name, value=self._own[name], on_change=partial(self._set_own, name))
                    field.props(f'dense hint="{hint}" data-bm="{name}"')
            self._form = Form(shell, chosen, self._remember, _HINTS)
        with space.results:
            self._results()
        space.notice.refuse(choices.misfit(shell.query, _DEFAULTS) or _misfit(self._own))
        shell.on_theme(self._redraw)

    def _results(self) -> None:
        self._advice = ui.label().classes("bm-note").props('role="status" data-bm="advice"')
        with ui.element("div").classes("bm-card"):
            with ui.element("div").classes("bm-buttons bm-playing"):
                cost = self._own["cost"] if self._own["cost"] in COSTS else "messages_per_round"
                self._cost = ui.select(COSTS, value=cost, label="Cost", on_change=self._redraw)
                self._cost.props('dense options-dense data-bm="cost"').style("min-width: 12rem")
                self._with_bounds = ui.switch("Bounds", on_change=self._show_bounds).props('data-bm="bounds"')
                self._with_bounds.tooltip("Upper and lower bounds on the regret of what is on the front, by theory")
                # What differs is known when something was found.
                self._only = ui.element("div").classes("bm-same")
            options = charts.frame(COSTS[cost], "group regret (reward)", self._shell.is_dark)
            self._chart = ui.echart(options).classes("bm-tall").props('role="img" data-bm="chart-frontier"')
            self._caption = ui.label().classes("bm-quiet")
            with ui.element("div").classes("bm-pair"):
                self._sliders = {name: self._slider(name, label) for name, (_, label) in _BUDGETS.items()}
        with ui.element("div").classes("bm-card bm-table"):
            headings = {
                "configuration": "configuration", "regret": "group regret (reward)",
                "first_share": "first pulls (of the regret)", "messages_per_round": "transmissions per round",
                "bytes_per_round": "bytes per round", "link_load": "transmissions per round, busiest link",
                "link_peak": "at its peak (in one round)", "front": "on a front", "within_budget": "within budget",
            }  # fmt: skip
            columns = columns_of(
                headings,
                less=("bytes_per_round", "link_peak"),
                least=("first_share", "link_load", "front", "within_budget"),
            )
            for column in columns:
                if column["name"] not in ("configuration", "front", "within_budget"):
                    column["align"] = "right"
                    column[":format"] = SHARE_FORMAT if column["name"] == "first_share" else NUMBER_FORMAT
            self._table = ui.table(columns=columns, rows=[], row_key="configuration")
            self._table.props('flat dense data-bm="results"')
            narrow_note()
        download_buttons(
            {
                "csv": lambda: hand_over("frontier.csv", lambda: self._shown().table().to_csv()),
                "png": partial(self._take_picture, "png"),
                "svg": partial(self._take_picture, "svg"),
                "toml": lambda: hand_over("study.toml", self._spec),
                "python": lambda: hand_over("frontier.py", self._python),
            },
            self._names,
            self._node_toml,
        )

    def _slider(self, name: str, label: str) -> Any:
        with ui.element("div").classes("bm-slider"):
            text = ui.label(f"{label}: no budget").classes("bm-quiet")
            slider = _Slider(min=0, max=_STEPS, value=_STEPS, on_change=lambda: self._budget(name))
            slider.props(f'aria-label="{label}" data-bm="{name}"')
        slider.bm_text = (text, label)
        return slider

    async def run(self) -> None:
        """Compare what is chosen."""
        self._space.notice.clear()
        chosen, wanted = self._form.choices, {name: self._own[name] for name in ("ttls", "emissions")}
        found = await self._ask("frontier", "Comparing", chosen, self._shell.uploads.folder, wanted)
        if found is None:
            return
        self._found, self._bounds, self._ran, self._wanted = found, {}, chosen, wanted
        self._with_bounds.set_value(False)
        self._space.show_results()
        self._offer_parts(found)
        for name in _BUDGETS:
            self._place(name)
        self._redraw()

    def _say_what_is_shown(self, found: Frontier) -> None:
        assert self._found is not None
        shown, known = len(found.configurations), len(self._found.configurations)
        self._space.status.set_text(
            f"{f'{shown} of ' if shown < known else ''}{known} configurations on {found.problem}: "
            f"{found.horizon} rounds, {found.replicates} replicates, seed {found.seed}, {found.rules} rules."
        )

    def _offer_parts(self, found: Frontier) -> None:
        """Let users choose by what to colour, and of what some alone are shown: of what configurations differ in."""
        values = {part: _values(found, part) for part in _PARTS}
        differ = [part for part in _PARTS if len(values[part]) > 1]
        self._own["by"] = self._own["by"] if self._own["by"] in differ else ""
        self._only.clear()
        with self._only:
            by = ui.select(
                differ or ["protocol"], label="A colour for each", value=self._own["by"] or (differ or ["protocol"])[0]
            )
            by.on_value_change(partial(self._set_shown, "by"))
            by.props('dense options-dense data-bm="by"').style("min-width: 8rem")
            for part in _PARTS:
                key = f"where.{part}"
                kept = [one for one in self._own[key].split(_BETWEEN) if one in values[part]] if part in differ else []
                self._own[key] = _BETWEEN.join(kept)
                if part in differ:
                    select = ui.select(values[part], label=f"Only {part}", value=kept, multiple=True, clearable=True)
                    select.on_value_change(partial(self._set_shown, key))
                    select.props(f'dense options-dense data-bm="{key}"').style("min-width: 9rem; max-width: 16rem")

    def _set_shown(self, key: str, event: Any) -> None:
        value = event.value or []
        self._own[key] = value if isinstance(value, str) else _BETWEEN.join(value)
        self._redraw()

    async def _ask(self, question: str, doing: str, *given: Any) -> Any:
        """What the worker gives, or None; what is wrong is shown."""
        if self._worker.is_busy:
            ui.notify("Something else is still running; wait for it, or cancel it.", type="warning", position="bottom")
            return None
        space = self._space
        space.begin(f"{doing} ...")

        def told(done: float | str) -> None:
            if isinstance(done, str):
                space.notice.say(done)
            else:
                space.show_progress(done, f"{doing}: {done:.0%} done.")

        try:
            return await self._worker.ask(question, *given, tell=told)
        except StoppedError:
            space.status.set_text("Cancelled.")
        except WorkError as error:
            space.notice.fail(str(error))
            space.status.set_text("")
        finally:
            space.set_running(False)
        return None

    async def _show_bounds(self) -> None:
        if self._with_bounds.value and not self._bounds and self._found is not None:
            names = [name for name in self._found.front if self._found[name].sends]
            found = await self._ask("bounds", "Working out bounds", self._ran, self._shell.uploads.folder, names)
            self._bounds = found or {}
            if found is None:
                self._with_bounds.set_value(False)
        self._redraw()

    # Budgets.

    def _limit(self, name: str) -> float | None:
        """The budget that a slider stands for; None at its end."""
        step = self._sliders[name].value
        if self._found is None or step >= _STEPS:
            return None
        costs = [one.mean(_BUDGETS[name][0]) for one in self._found.configurations]
        # Never 0, which no sending configuration could meet.
        return float(f"{max(max(costs) * (step / _STEPS) ** 2, 1e-6):.3g}")

    def _place(self, name: str) -> None:
        """Put a slider where the link says."""
        text, value = self._own[name], float(_STEPS)
        if text and _number(text) > 0 and self._found is not None:
            most = max(one.mean(_BUDGETS[name][0]) for one in self._found.configurations)
            value = _STEPS * min(1.0, _number(text) / max(most, 1e-9)) ** 0.5
        self._sliders[name].set_value(round(value, 2))

    def _budget(self, name: str) -> None:
        limit = self._limit(name)
        self._own[name] = "" if limit is None else f"{limit:g}"
        text, label = self._sliders[name].bm_text
        text.set_text(f"{label}: {'no budget' if limit is None else f'{limit:g}'}")
        self._redraw()

    # Showing.

    def _names(self) -> list[str]:
        return [] if self._found is None else [one.name for one in self._found.configurations if one.sends]

    def _shown(self) -> Frontier:
        """The configurations that are shown, with the budget: front and advice are of these alone."""
        assert self._found is not None
        limits: dict[str, Any] = {name: self._limit(name) for name in _BUDGETS}
        only = {part: set(text.split(_BETWEEN)) for part in _PARTS if (text := self._own[f"where.{part}"])}
        fitting = tuple(
            one
            for one in self._found.configurations
            if all(str(one.parts.get(part, "")) in values for part, values in only.items())
        )
        return replace(self._found, configurations=fitting, **limits)

    def _redraw(self) -> None:
        self._remember()
        if self._found is None:
            return
        found = self._shown()
        self._say_what_is_shown(found)
        self._advice.set_text(found.advice)
        with_bounds = bool(self._with_bounds.value and self._bounds)
        shown = {one.name for one in found.configurations}
        bounds = {name: ends for name, ends in self._bounds.items() if with_bounds and name in shown}
        # Each has its colour among all that were found, whatever is shown.
        groups = _values(self._found, self._own["by"] or "protocol")
        options = _options(found, self._cost.value, self._shell.is_dark, bounds, self._own["by"] or "protocol", groups)
        charts.draw(self._chart, options)
        told = [
            f"Means of {found.replicates} replicates. The line joins the front; the ring is what is recommended"
            + (", dashed: the budget." if found.limits else ".")
        ]
        if with_bounds:
            told.append(
                "Triangles: bounds by theory, on a logarithmic axis: upper (▽), and lower (△) in the long run, so that "
                "a short one may have less."
            )
        self._caption.set_text(" ".join(told))
        self._table.rows = [_row(found, one) for one in found.configurations]

    def _set_own(self, name: str, event: Any) -> None:
        self._own[name] = event.value or ""
        self._remember()

    def _remember(self) -> None:
        own = {**self._own, "by": "" if self._own["by"] == "protocol" else self._own["by"]}
        own |= {"cost": "" if self._cost.value == "messages_per_round" else self._cost.value}
        self._shell.remember(choices.to_query(self._form.choices, _DEFAULTS, **own))

    # Downloads.

    async def _take_picture(self, kind: str) -> None:
        await self._shell.download(self._worker, "frontier_picture", f"frontier.{kind}", self._shown(), kind)

    def _node_toml(self, name: str) -> str:
        assert self._found is not None
        one = self._found[name]
        return node_lines(one.protocol, one.policy, self._ran)

    def _spec(self) -> str:
        found = [] if self._found is None else [one for one in self._found.configurations if one.sends]
        # With several policies each protocol is there several times.
        names = ", ".join(dict.fromkeys(write(one.protocol) for one in found)) or self._ran["protocols"] or "none"
        return spec_of({**self._ran, "protocols": names})

    def _python(self) -> str:
        ttls = [int(one) for one in self._wanted["ttls"].split(",") if one.strip()]
        given = {"ttls": f"{ttls}"} if ttls else {}
        if self._wanted["emissions"].strip():
            given["emissions"] = repr(split(self._wanted["emissions"]))
        given |= {name: f"{self._limit(name):g}" for name in _BUDGETS if self._limit(name) is not None}
        return choices.to_python(self._ran, given)


class _Slider(ui.slider):  # type: ignore[misc]
    """A slider that stays where the user puts it: an echo of an earlier position would move it back."""

    LOOPBACK = False


def _row(found: Frontier, one: Configuration) -> dict[str, Any]:
    fronts = {"messages_per_round": "transmissions", "bytes_per_round": "bytes", "link_load": "link"}
    on = [name for cost, name in fronts.items() if one.name in found.fronts[cost]]
    numbers = {name: one.mean(name) for name in ("regret", *COSTS, "link_peak")}
    return {
        "configuration": one.name,
        **numbers,
        "first_share": share(one.mean("first_regret"), one.mean("regret")),
        "front": ", ".join(on),
        "within_budget": "yes" if found.within_budget(one.name) else "no",
    }


def _values(found: Frontier, part: str) -> list[str]:
    """The values of a part, in the order in which they ran."""
    return list(dict.fromkeys(str(one.parts[part]) for one in found.configurations if part in one.parts))


def _options(
    found: Frontier,
    cost: str,
    is_dark: bool,
    bounds: dict[str, dict[str, float | None]],
    by: str,
    groups: list[str],
) -> dict[str, Any]:
    """The chart of a frontier: a series for each group, the front, the budget, and what is recommended.

    As in the pictures of the library, costs are on a logarithmic axis, and what sends nothing is a line.
    """
    options = charts.frame(COSTS[cost], "group regret (reward)", is_dark, log_y=bool(bounds))
    options["tooltip"] = {"trigger": "item", "confine": True}
    options["yAxis"]["scale"] = True
    options["legend"]["itemWidth"] = 14
    costs = [one.mean(cost) for one in found.configurations if one.mean(cost) > 0]
    is_log, least, most = bool(costs), min(costs, default=0.0), max(costs, default=0.0)
    if is_log:
        options["xAxis"] |= {"type": "log", "scale": True}
    names = _values(found, by)
    text = "#E0E0E0" if is_dark else "#333333"
    series: list[dict[str, Any]] = []
    for name in names:
        points = [one for one in found.configurations if str(one.parts.get(by)) == name]
        at = {one.name: (one.mean(cost), one.mean("regret")) for one in points}
        data = [
            {"name": f"{name}: regret {charts.rounded(y)}, {charts.rounded(x)} {COSTS[cost]}", "value": [x, y]}
            for name, (x, y) in at.items()
            if x > 0 or not is_log
        ]
        colour, symbol = charts.other(groups.index(name))[0], charts.symbol(groups.index(name))
        if by == "protocol":
            colour, symbol = charts.colour_of(name, groups, is_dark), charts.symbol_of(name)
        style = {"color": colour, "borderColor": colour, "borderWidth": 1}
        series.append(charts.scatter(_called(by, name), data, symbol, 10, style, tooltip={"formatter": "{b}"}))
        # A line, and not a mark: the vertical axis makes room for it.
        for number, y in enumerate(y for x, y in at.values() if is_log and not x > 0):
            ends = [[least, y], [most, y]]
            series.append(charts.line(_called(by, name), ends, colour, "dotted", id=f"{name}-{number}"))

    def places(names: Iterable[str]) -> list[list[float]]:
        found_at = [[found[name].mean(cost), found[name].mean("regret")] for name in names]
        return [place for place in found_at if place[0] > 0 or not is_log]

    limit = found.limits.get(cost)
    line = charts.line("front", places(found.fronts[cost]), text, step="end", silent=True, z=1)
    if limit is not None:
        mark = {"lineStyle": {"type": "dashed", "color": text}, "label": {"show": False}}
        line["markLine"] = {"silent": True, "symbol": "none", "data": [{"xAxis": limit}], **mark}
    series.append(line)
    chosen = places([] if found.recommended is None else [found.recommended])
    ring = {"color": "transparent", "borderColor": "#D55E00", "borderWidth": 2.5}
    series.append(charts.scatter("recommended", chosen, "circle", 20, ring, silent=True))
    for which, symbol in (("upper", charts.DOWN), ("lower", "triangle")):
        marks = [
            [found[name].mean(cost), value]
            for name, ends in bounds.items()
            if (value := ends[which]) is not None and value > 0 and (found[name].mean(cost) > 0 or not is_log)
        ]
        hollow = {"color": "transparent", "borderColor": text, "borderWidth": 1.5}
        series.append(charts.scatter(f"{which} bound", marks, symbol, 9, hollow, silent=True))
    options["series"] = series
    more = ["upper bound", "lower bound"] if bounds else []
    return charts.with_legend(options, [*(_called(by, name) for name in names), "front", "recommended", *more])


def _called(part: str, value: str) -> str:
    """A group in the legend: what is no number speaks for itself."""
    return f"{part} {value}" if part == "ttl" else value


def _misfit(own: dict[str, str]) -> str:
    """What is wrong with a link besides the choices, in one line; empty if nothing is."""
    if own["cost"] and own["cost"] not in COSTS:
        return f"cost must be one of {', '.join(COSTS)}; got {checks.shown(own['cost'])}"
    for name in _BUDGETS:
        if own[name] and not _number(own[name]) > 0:
            return f"{name} must be a number above 0, got {checks.shown(own[name])}; no budget is set"
    return ""


def _number(text: str) -> float:
    """The number in a link; NaN if it is none."""
    try:
        return float(text)
    except ValueError:
        return math.nan
