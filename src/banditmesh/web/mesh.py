"""The mesh: live nodes as their sidecars report them, every second."""

from __future__ import annotations

import asyncio
import math
from typing import Any, Final

from nicegui import ui

from ..errors import BanditmeshError, InputError
from ..live.member.outboxes import SENT
from ..mesh.status import best_arm, odd_origins
from . import charts
from .polling import POLL_EVERY, Poller, arms_of, read_addresses
from .shell import Notice, Shell, columns_of, narrow_note

#: The most lines of a chart, and points of a line.
MAX_LINES: Final = 30
MAX_POINTS: Final = 100
#: The most rows of bandits and segments.
MAX_ROWS: Final = 200
_GOOD, _BAD, _UNKNOWN = "#009E73", "#D55E00", "#7F7F7F"
_NODES: Final = {
    "node": "node",
    "state": "state",
    "links": "links up",
    "choices": "choices (pulls)",
    "heard": "rewards heard of",
    "best": "best arm so far",
    "sent": "sent (statistics)",
    "came": "came (statistics)",
    "waiting": "waiting (keys)",
    "refused": "refused, by reason",
}
_AGENTS: Final = {
    "agent": "node, bandit and segment",
    "bandit": "bandit",
    "segment": "segment",
    "choices": "choices (pulls)",
    "heard": "rewards heard of",
    "best": "best arm so far",
}
_ORIGINS: Final = {
    "origin": "node, and what it heard of",
    "signed": "signed (statistics)",
    "unsigned": "unsigned (statistics)",
    "expired": "certificate ended (statistics)",
    "left_out": "left out (arms)",
}
#: What is drawn over time: key -> heading, name of the axis, and which of a moment's numbers it is.
_CHARTS: Final = {
    "estimates": ("How estimates converge", "mean reward", 1),
    "known": ("What each node knows", "rewards known of", 2),
}
#: Lines that run into each other are nested: of five, the first is the widest; the next five are dashed, and so on.
_WIDTHS: Final = (11, 8, 5.5, 3.5, 1.5)
_DASHES: Final = ("solid", "dashed", "dotted")
_HOW: Final = "Click a node to kill it, and again to start it: it comes back from its disk and catches up."
#: A node's state, and a button for those who have no pointer.
_STATE_CELL: Final = """<q-td :props="props" style="white-space: nowrap">{{ props.value }}
  <q-btn v-if="props.row.act" dense flat no-caps size="12px" color="primary" :label="props.row.act"
    :aria-label="props.row.act + ' ' + props.row.node" :data-bm="props.row.act + '-' + props.row.node"
    @click="$parent.$emit('act', props.row.node)" /></q-td>"""
_LINKS: Final = {
    "link": "link",
    "state": "state",
    "rate": "traffic (statistics per second)",
    "forth": "carried → (statistics)",
    "back": "carried ← (statistics)",
    "waiting": "waiting (keys)",
    "behind": "behind (seconds)",
    "refusal": "last refusal",
}
_ONLY: Final = "This page asks the sidecars that it was started with; for others, start it with --mesh ADDRESS."
_NONE: Final = (
    "This page was started without a mesh, and asks no sidecar: start it with banditmesh serve --mesh ADDRESS, once "
    "for each sidecar, or with --any-mesh to have it ask whatever its visitors name."
)
#: The most letters of a name that fits beside the circle.
_SHORT: Final = 7
#: What is left out of both first where there is little room.
_LESS: Final = ("heard", "came", "behind", "refusal")


class Mesh:
    """The mesh that one browser tab watches."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self._poller: Poller | None = None
        self._polling = False
        self._arm = shell.query.get("arm", "")
        with shell.main:
            shell.title("Mesh", "Live nodes as their sidecars show them, asked anew every second.")
            shell.words(
                "node", "sidecar", "link", "arm, arm set", "pull, reward", "statistic", "estimate", "traffic",
                "waiting, behind", "refused, refusal",
            )  # fmt: skip
            # A mesh of the page's own needs no addresses, and so no column for them.
            with ui.element("div").classes(f"bm-split bm-after{' bm-whole' if shell.mesh.local else ''}"):
                with ui.element("div").classes("bm-stack"):
                    addresses = shell.query.get("nodes", "").replace(",", "\n")
                    self._addresses = ui.textarea("Sidecars", value=addresses or "\n".join(shell.mesh.addresses))
                    self._addresses.props(
                        'dense outlined autogrow spellcheck=false data-bm="nodes" '
                        'hint="one address a line; its token, if it asks for one, behind it"'
                    )
                    with ui.element("div").classes("bm-buttons"):
                        ui.button("Watch", icon="visibility", on_click=self._watch).props(
                            'data-bm="watch" data-bm-key="start"'
                        )
                        ui.button("Stop", icon="stop", on_click=self._end).props('outline data-bm-key="stop"')
                    ui.label("Links that are copied hold the addresses, and never a token.").classes("bm-quiet")
                    if shell.mesh.local is not None:
                        self._addresses.set_visibility(False)
                        ui.label("This is the mesh that was started together with this page.").classes("bm-quiet")
                    elif not shell.mesh.is_any:
                        ui.label(_ONLY if shell.mesh.addresses else _NONE).classes("bm-quiet").props('data-bm="may"')
                with ui.element("div").classes("bm-stack"):
                    self._notice = Notice()
                    self._empty = ui.label("No mesh is watched: give the addresses of some sidecars.").classes(
                        "bm-empty"
                    )
                    self._shown = ui.element("div").classes("bm-stack")
                    self._shown.set_visibility(False)
                    with self._shown:
                        self._results()
        self._timer = ui.timer(POLL_EVERY, self._poll, active=False)
        shell.client.on_delete(self._stop)
        shell.on_theme(self._redraw)
        if shell.is_own and (addresses or shell.mesh.local is not None):
            ui.timer(0.1, self._watch, once=True)
        elif addresses:
            self._notice.say("Another site led here: press Watch if you want these addresses to be asked.")

    def _results(self) -> None:
        self._status = ui.label().props('role="status" data-bm="mesh"')
        with ui.element("div").classes("bm-pair"):
            with ui.element("div").classes("bm-card"):
                ui.html("<h2>Who is linked</h2>", sanitize=False)
                self._graph = ui.echart({}, on_point_click=lambda event: self._act(event.name)).classes("bm-tall")
                self._graph.props('role="img" aria-label="Nodes and links" data-bm="graph"')
                ui.label(
                    "Green: answers, or up. Orange and crossed or dashed: does not answer, or down. Grey: not asked. "
                    f"The more traffic a link has, the thicker it is. {_HOW if self._shell.mesh.local else ''}"
                ).classes("bm-quiet")
            with ui.element("div").classes("bm-card"):
                self._select = ui.select([], label="Arm", on_change=self._choose).props(
                    'dense options-dense data-bm="arm"'
                )
                self._select.style("min-width: 10rem; margin-bottom: .6rem")
                self._charts = {}
                for key, (heading, axis, _) in _CHARTS.items():
                    ui.html(f"<h2>{heading}</h2>", sanitize=False)
                    self._charts[key] = ui.echart({}).classes("bm-chart bm-low")
                    self._charts[key].props(f'role="img" aria-label="{axis}, over time" data-bm="chart-{key}"')
                ui.label(
                    "Of the arm, by node: the mean of all rewards that it knows of, and how many these are. Lines that "
                    "run into each other are of different widths; hover over a name to see its line alone."
                ).classes("bm-quiet")
        self._nodes = self._table("Nodes", _NODES, "nodes-table", "No node has answered yet.")
        self._agents_card = ui.element("div")
        with self._agents_card:
            self._agents = self._table("Bandits and segments", _AGENTS, "agents-table", "There are no others.")
        self._origins_card = ui.element("div")
        with self._origins_card:
            self._origins = self._table("Odd origins", _ORIGINS, "origins-table", "There are none.")
        self._links = self._table("Links", _LINKS, "links-table", "No node has told of a link yet.")
        if self._shell.mesh.local is not None:
            self._nodes.add_slot("body-cell-state", _STATE_CELL)
            self._nodes.on("act", lambda event: self._act(event.args))

    def _act(self, node: str) -> None:
        """Kill a node of the mesh that was started together with this page, or start it again."""
        local = self._shell.mesh.local
        if local is None or self._poller is None or node not in local.sidecars:
            return
        [url] = [address for name, address in local.sidecars.items() if name == node]
        is_up = any(one.url == url and not one.error for one in self._poller.seen)
        try:
            (local.kill if is_up else local.start)(node)
        except BanditmeshError as error:
            self._notice.fail(str(error))
        else:
            ui.notify(f"{'Killing' if is_up else 'Starting'} {node} ...", position="bottom", timeout=1500)

    @staticmethod
    def _table(name: str, headings: dict[str, str], mark: str, empty: str) -> Any:
        with ui.element("div").classes("bm-card bm-table bm-wrap"):
            ui.html(f"<h2>{name}</h2>", sanitize=False)
            columns = columns_of(headings, less=_LESS, least=[key for key in list(headings)[3:] if key not in _LESS])
            table = ui.table(columns=columns, rows=[], row_key=next(iter(headings)))
            narrow_note()
            return table.props(f'flat dense data-bm="{mark}" no-data-label="{empty}"')

    async def _watch(self) -> None:
        self._stop()
        self._notice.clear()
        try:
            addresses = read_addresses(self._addresses.value or "")
            self._shell.mesh.check(addresses)
        except InputError as error:
            self._notice.fail(str(error))
            return
        local = self._shell.mesh.local
        self._poller = Poller(addresses, {url: name for name, url in local.sidecars.items()} if local else {})
        self._remember()
        self._empty.set_visibility(False)
        self._shown.set_visibility(True)
        self._status.set_text(f"Asking {_counted(len(addresses), 'sidecar')} ...")
        self._timer.active = True
        await self._poll()

    def _end(self) -> None:
        if self._poller is not None:
            self._stop()
            self._status.set_text(f"{self._status.text} Polling has stopped: this is the last state.")

    def _stop(self) -> None:
        self._timer.active = False
        if self._poller is not None:
            self._poller.close()
            self._poller = None

    async def _poll(self) -> None:
        poller = self._poller
        # A round that takes longer than its turn leaves the next one out.
        if poller is None or self._polling:
            return
        self._polling = True
        try:
            await asyncio.to_thread(poller.poll)
        except RuntimeError:
            return  # it has been closed
        finally:
            self._polling = False
        if poller is self._poller:
            self._redraw()

    def _choose(self, event: Any) -> None:
        if event.value and event.value != self._arm:
            self._arm = event.value
            self._remember()
            self._redraw()

    def _remember(self) -> None:
        urls = [one.url for one in self._poller.seen] if self._poller else []
        self._shell.remember({"nodes": ",".join(urls), "arm": self._arm})

    def _redraw(self) -> None:
        poller = self._poller
        if poller is None:
            return
        seen, links = poller.seen, poller.links
        n_up = sum(not one.error for one in seen)
        n_links = sum(link["up"] for link in links)
        self._status.set_text(
            f"{n_up} of {len(seen)} nodes answer, {n_links} of {len(links)} links are up, "
            f"{sum(link['rate'] for link in links):,.1f} statistics travel per second; "
            f"waiting: {_counted(sum(link['waiting'] for link in links), 'key')}."
        )
        self._agents.rows = [row for one in seen for row in _agent_rows(one)][:MAX_ROWS]
        self._agents_card.set_visibility(bool(self._agents.rows))
        self._origins.rows = [row for one in seen for row in _origin_rows(one)][:MAX_ROWS]
        self._origins_card.set_visibility(bool(self._origins.rows))
        local = self._shell.mesh.local
        acts = {} if local is None else {one.url: "start" if one.error else "kill" for one in seen}
        # Of a mesh of the page's own, a node that does not answer is down: how its socket fails says nothing.
        down = {"state": "down"} if local is not None else {}
        self._nodes.rows = [
            {**_node_row(one), **(down if one.error else {}), "act": acts.get(one.url, "")} for one in seen
        ]
        self._links.rows = [
            {
                **{key: link.get(key) for key in _LINKS},
                "state": "up" if link["up"] else "down",
                "behind": round(link["behind"], 1),
                "rate": round(link["rate"], 1),
            }
            for link in links
        ]
        arms = poller.arms
        if arms:
            if self._arm not in arms:
                self._arm = arms[0]
            if (arms, self._arm) != (self._select.options, self._select.value):
                self._select.set_options(arms, value=self._arm)
        charts.draw(self._graph, _graph(seen, links, self._shell.is_dark))
        for key, chart in self._charts.items():
            charts.draw(chart, self._over_time(poller, key))

    def _over_time(self, poller: Poller, key: str) -> dict[str, Any]:
        _, axis, number = _CHARTS[key]
        options = charts.frame("seconds since the page began to watch", axis, self._shell.is_dark)
        nodes = [name for name, arms in poller.history.items() if self._arm in arms][:MAX_LINES]
        for place, name in enumerate(nodes):
            moments = list(poller.history[name][self._arm])
            points = [(moment[0], moment[number]) for moment in moments[:: -(-len(moments) // MAX_POINTS)]]
            turn, level = divmod(place, len(_WIDTHS))
            colour, dash = charts.OTHERS[place % len(charts.OTHERS)], _DASHES[turn % len(_DASHES)]
            line = charts.line(name, points, colour, dash, emphasis={"focus": "series"}, connectNulls=False)
            line["lineStyle"] |= {"width": _WIDTHS[-min(len(_WIDTHS), len(nodes)) :][level]}
            # The widest are at the bottom.
            options["series"].append({**line, "z": 2 + level})
        if not nodes:
            options["xAxis"] |= {"min": 0, "max": 10}
        charts.with_legend(options, nodes)
        options["yAxis"]["scale"] = True
        return options


def _node_row(one: Any) -> dict[str, Any]:
    if not one.state:
        return {**dict.fromkeys(_NODES, ""), "node": one.name, "state": one.error}
    arms = [arm for _, arm in arms_of(one.state)]
    return {
        "node": one.name,
        "state": one.error or "answers",
        "links": "–" if one.error else f"{sum(peer['state'] == 'up' for peer in one.peers)}/{len(one.peers)}",
        "choices": one.state["n_choices"],
        "heard": sum(arm["heard_count"] for arm in arms),
        "best": best_arm(one.state["arms"]) or "–",
        "sent": sum(n for name, n in one.state["counters"].items() if name in SENT),
        "came": one.state["counters"].get("heard", 0),
        "waiting": sum(peer["waiting"] for peer in one.peers),
        "refused": ", ".join(f"{reason} {n}" for reason, n in one.refusals.items()) or "–",
    }


def _agent_rows(one: Any) -> list[dict[str, Any]]:
    """The bandits and segments of a node, but for its bandit "default" without a segment."""
    return [
        {
            "agent": " / ".join([one.name, agent["bandit"], agent["segment"] or "–"]),
            "bandit": agent["bandit"],
            "segment": agent["segment"] or "–",
            "choices": agent["n_choices"],
            "heard": sum(arm["heard_count"] for arm in agent["arms"]),
            "best": best_arm(agent["arms"]) or "–",
        }
        for agent in one.state.get("agents", ())
    ]


def _origin_rows(one: Any) -> list[dict[str, Any]]:
    """The origins of which a node has unsigned or expired statistics, or leaves some out."""
    return [
        {**row._asdict(), "origin": f"{one.name} / {row.origin}"}
        for row in (odd_origins(one.state) if one.state else [])
    ]


def _counted(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def _outside(x: float, y: float) -> str:
    """The side of a node on the circle that no link crosses."""
    return "right" if x > 0.3 else "left" if x < -0.3 else "top" if y > 0 else "bottom"


def _graph(seen: Any, links: list[dict[str, Any]], is_dark: bool) -> dict[str, Any]:
    """Nodes on a circle, with the links that they report."""
    answers = {one.name: not one.error for one in seen}
    names = list(dict.fromkeys([*answers, *(end for link in links for end in link["ends"])]))
    angles = {name: 2 * math.pi * place / len(names) for place, name in enumerate(names)}
    places = {name: [round(math.sin(angle), 3), round(math.cos(angle), 3)] for name, angle in angles.items()}
    text = "#E0E0E0" if is_dark else "#333333"
    nodes = []
    for name in names:
        good = answers.get(name, True)
        colour = _UNKNOWN if name not in answers else _GOOD if good else _BAD
        nodes.append(
            {
                "name": name,
                "value": places[name],
                "label": {"position": _outside(*places[name])},
                "symbol": "circle" if good else "path://M0,0 L10,10 M10,0 L0,10",
                "itemStyle": {"color": colour, "borderColor": colour, "borderWidth": 2 if good else 4, "opacity": 1},
            }
        )
    drawn = [
        {
            "coords": [places[end] for end in link["ends"]],
            "lineStyle": {
                "color": _GOOD if link["up"] else _BAD,
                "type": "solid" if link["up"] else "dashed",
                "width": 2 + min(4.0, math.log1p(link["rate"])),
                "opacity": 1,
            },
        }
        for link in links
    ]
    axis = {"type": "value", "min": -1.4, "max": 1.4, "show": False}
    label: dict[str, Any] = {"show": len(names) <= 40, "color": text, "formatter": "{b}", "fontSize": 13}
    # Long names, such as the address of a node that never answered, have more room beside the circle, and lines.
    reach = 1.4
    if max(map(len, names), default=0) > _SHORT:
        reach = 2.2
        label |= {"width": 84, "overflow": "breakAll", "lineHeight": 15, "fontSize": 12}
    return {
        "animation": False,
        "aria": {"enabled": True},
        "tooltip": {"confine": True, "formatter": "{b}"},
        "grid": {"left": 10, "right": 10, "top": 10, "bottom": 10},
        "xAxis": {**axis, "min": -reach, "max": reach},
        "yAxis": axis,
        "series": [
            {"id": "links", "type": "lines", "coordinateSystem": "cartesian2d", "silent": True, "data": drawn},
            {"id": "nodes", "type": "scatter", "symbolSize": 18, "label": label, "data": nodes, "z": 3},
        ],
    }
