"""`mesh up`, `mesh verify`, `mesh status`: whole meshes of real nodes on this machine, and those that already run."""

from __future__ import annotations

import _thread
import json
import secrets
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from queue import Queue
from typing import TYPE_CHECKING, Any

import click

from ..errors import InputError
from .cases import read_network, read_policy
from .options import (
    NETWORK_FILE_OPTIONS,
    NETWORK_FILES,
    policy_option,
    refuse_idle,
    token_option,
    with_options,
)

if TYPE_CHECKING:
    from ..mesh import MeshRun, Verdict


@click.group("mesh", short_help="Run a mesh of real nodes on this machine, or watch one.")
def mesh_verb() -> None:
    r"""Run, check or watch a mesh of live nodes.

    \b
    Examples:
      banditmesh mesh up --network er --agents 50 --horizon 1000
      banditmesh mesh verify --network ba --agents 20 --protocol 'flooding(4)+growth(0.25)'
      banditmesh mesh status http://127.0.0.1:8100 http://127.0.0.1:8101
    """


def _mesh_options(command: Callable[..., Any]) -> Callable[..., Any]:
    options = [
        click.option(
            "--network",
            default="er",
            show_default=True,
            help=f"er, ba or sbm, of the paper's kind, or a file: {NETWORK_FILES}.",
        ),
        *NETWORK_FILE_OPTIONS,
        click.option("--agents", type=click.IntRange(min=8), help="Number of nodes of er, ba or sbm; 50 by default."),
        click.option("--arms", "n_arms", default=50, show_default=True, help="Number of arms."),
        click.option("--per-agent", default=20, show_default=True, help="Number of arms per node."),
        click.option("--protocol", default="fwa(4)", show_default=True, help="As in 'flooding(4)+growth(0.25)'."),
        click.option("--horizon", default=1000, show_default=True, help="Number of pulls per node."),
        click.option("--seed", default=0, show_default=True, help="Seed of arms and rewards."),
        click.option("--pace", default=4.0, show_default=True, help="Pulls per second of each node."),
        click.option("--processes", type=int, help="Number of processes for the nodes; by default one per core."),
        click.option("--json", "as_json", is_flag=True, help="Print JSON."),
    ]
    return policy_option(with_options(command, options))


@mesh_verb.command("up", short_help="Run a mesh of real nodes over mutual TLS on loopback.")
@_mesh_options
@click.option(
    "--folder", type=click.Path(file_okay=False), help="Keep keys and states here; by default they are deleted."
)
@click.option(
    "--from",
    "nodes",
    metavar="DIR",
    type=click.Path(file_okay=False),
    help="Try the node files that `frontier --live --deploy DIR` wrote: their network, arms, protocol and policy.",
)
@click.option(
    "--serve", is_flag=True, help="Show the mesh on a page of this machine, where nodes can be killed and started."
)
@click.option("--port", default=0, help="Port of the page; by default any free one.")
@click.option("--open/--no-open", "opens", default=True, show_default=True, help="Open the page in the browser.")
def mesh_up(
    as_json: bool, folder: str | None, nodes: str | None, serve: bool, port: int, opens: bool, **options: Any
) -> None:
    r"""Run one real node per agent: real sockets, mutual TLS, durable state, and arms that are drawn.

    \b
    Examples:
      banditmesh mesh up --network er --agents 50 --horizon 1000
      banditmesh mesh up --agents 12 --per-agent 5 --arms 10 --protocol 'fwa(4)+growth(0.25)' --pace 50
      banditmesh mesh up --from deploy --horizon 200 --pace 20
      banditmesh mesh up --agents 8 --arms 6 --per-agent 3 --serve
    """
    from ..mesh import run_mesh
    from ..sim.progress import terminal_bar

    problem, protocol, settings = _read(options) if nodes is None else _read_nodes(nodes, options)
    if folder is not None and Path(folder).exists() and any(Path(folder).iterdir()):
        raise InputError(f"--folder must be new or empty, got {folder}; name another one")

    def tell(run: MeshRun) -> None:
        click.echo(json.dumps(_as_json(run), indent=2) if as_json else _as_text(run))

    if not serve:
        for name in ("port", "opens"):
            refuse_idle(click.get_current_context(), name, "there is no page without --serve")
        click.echo("With --serve, the mesh can be watched on a page while it runs.", err=True)
    with terminal_bar("mesh", "pulls", elapsed=True) as progress:
        start = partial(run_mesh, problem, protocol, folder=folder, progress=progress, **settings)
        if serve:
            _show(start, tell, port, opens)
        else:
            run = start()
    if not serve:
        tell(run)


def _show(start: Callable[..., MeshRun], tell: Callable[[MeshRun], None], port: int, opens: bool) -> None:
    """Run a mesh in a thread while this one serves the page that shows it, until Ctrl-C."""
    from ..errors import need
    from ..mesh.local import LocalMesh
    from ..web.access import sign_in_link
    from ..web.server import serve

    need("nicegui", "web", "the page")
    token, over = secrets.token_urlsafe(18), threading.Event()
    opened: Queue[LocalMesh | BaseException] = Queue()
    has_page = False

    def keep(run: MeshRun) -> None:
        tell(run)
        click.echo("All pulls are done; the nodes and the page stay until Ctrl-C.", err=True)
        over.wait()

    def run() -> None:
        try:
            start(opened=opened.put, keep=keep)
        except BaseException as error:
            opened.put(error)
            if has_page and not over.is_set():
                # The mesh broke down: the page ends, and says why.
                _thread.interrupt_main()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    mesh = opened.get()
    if isinstance(mesh, BaseException):
        raise mesh

    def ready(url: str) -> None:
        link = sign_in_link(url, token, "/mesh")
        click.echo(f"Watch the mesh at {link} (Ctrl-C ends both)", err=True)
        if opens:
            click.launch(link)

    has_page = True
    try:
        serve(port=port, token=token, local=mesh, ready=ready)
    finally:
        ended_by_itself = not opened.empty()
        over.set()
        mesh.end()
        thread.join(20.0)
    if ended_by_itself:
        error = opened.get()
        assert isinstance(error, BaseException)
        raise error


@mesh_verb.command("verify", short_help="Compare a mesh with the simulator.")
@_mesh_options
@click.option("--replicates", default=30, show_default=True, help="Number of simulations.")
def mesh_verify(as_json: bool, replicates: int, **options: Any) -> None:
    r"""Run a mesh as `mesh up` does, simulate the same problem, and say whether the two agree.

    They agree if the mesh's regret lies in the 99 per cent prediction interval of one simulated run, and its
    transmissions within 10 per cent of the simulated mean. Exit status 1 if they do not.

    \b
    Examples:
      banditmesh mesh verify --network er --agents 50 --horizon 1000
      banditmesh mesh verify --network ba --agents 20 --protocol 'flooding(4)+growth(0.25)' --horizon 500
    """
    from ..mesh import verify_mesh
    from ..sim.progress import terminal_bar

    problem, protocol, settings = _read(options)
    with terminal_bar("mesh", "pulls", elapsed=True) as progress:
        verdict = verify_mesh(problem, protocol, replicates=replicates, progress=progress, **settings)
    if as_json:
        told = {"mesh": _as_json(verdict.run), "replicates": verdict.replicates, **_compared(verdict)}
        click.echo(json.dumps({**told, "agrees": verdict.agrees}, indent=2))
    else:
        click.echo(_as_text(verdict.run) + "\n\n" + _verdict_as_text(verdict))
    if not verdict.agrees:
        click.get_current_context().exit(1)


@mesh_verb.command("status", short_help="A live table of a running mesh.")
@click.argument("urls", metavar="URL...", nargs=-1, required=True)
@token_option("File with the token of the sidecars.")
@click.option("--once", is_flag=True, help="Print the table once, as is done without a terminal.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, once.")
def mesh_status(urls: tuple[str, ...], token: str | None, once: bool, as_json: bool) -> None:
    r"""Show what the sidecars at these addresses say about their nodes, every second until Ctrl-C.

    \b
    Examples:
      banditmesh mesh status http://127.0.0.1:8100 http://127.0.0.1:8101
      banditmesh mesh status --once unix:/run/banditmesh/node.sock
    """
    import sys

    from ..mesh.status import as_table, gather

    if as_json:
        click.echo(json.dumps([row._asdict() for row in gather(urls, token)], indent=2))
    elif once or not sys.stdout.isatty():
        click.echo(as_table(gather(urls, token)))
    else:
        _watch(lambda: as_table(gather(urls, token)))


def _watch(table: Callable[[], str]) -> None:
    import time

    from rich.live import Live
    from rich.text import Text

    with Live(Text(table()), refresh_per_second=4) as live:
        while True:
            time.sleep(1.0)
            live.update(Text(table()))


def _read(options: dict[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
    """Problem, protocol and the settings of a run."""
    from .. import networks
    from ..problem import Problem
    from ..protocols import notation

    network, agents, n_arms, per_agent = (options.pop(name) for name in ("network", "agents", "n_arms", "per_agent"))
    weights, self_loops = options.pop("weights"), options.pop("self_loops")
    if network in ("er", "ba", "sbm"):
        for name in ("weights", "self_loops"):
            refuse_idle(click.get_current_context(), name, f"{network} is no file")
        graph = networks.like_paper(network, 50 if agents is None and network != "sbm" else agents or 48)
    elif agents is not None:
        raise InputError(f"--agents has no effect: {network} has its own; leave it out")
    else:
        graph = read_network(network, options["seed"], None, weights, self_loops)
    problem = Problem.random(graph, n_arms, per_agent, options["seed"])
    protocol = notation.read(options.pop("protocol"))
    options["policy"] = read_policy(options["policy"])
    return problem, protocol, options


def _read_nodes(folder: str, options: dict[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
    """The same from the node files of a folder; they run on free ports, with keys made for this run."""
    from ..mesh import read_nodes

    described = ("network", "weights", "self_loops", "agents", "n_arms", "per_agent", "protocol", "policy")
    for name in described:
        refuse_idle(click.get_current_context(), name, f"the node files in {folder} say it")
    problem, protocol, policy = read_nodes(folder, options["seed"])
    settings = {key: value for key, value in options.items() if key not in described}
    return problem, protocol, {**settings, "policy": policy}


def _as_json(run: MeshRun) -> dict[str, Any]:
    return {
        "agents": run.problem.n_agents,
        "protocol": run.protocol,
        "policy": run.policy,
        "horizon": run.horizon,
        "seconds": round(run.seconds, 3),
        "behind": round(run.behind, 3),
        "regret": run.regret,
        "transmissions": run.transmissions,
        "missing": run.n_missing,
        "counters": run.counters,
        "is_quiet": run.is_quiet,
    }


def _as_text(run: MeshRun) -> str:
    counters = run.counters
    n_heard = sum(counters.get(name, 0) for name in ("heard_news", "heard_extended", "heard_stale"))
    lines = [
        repr(run.problem),
        f"{run.protocol}, {run.policy}, {run.horizon:,} pulls of each node in {run.seconds:.1f} s",
        "",
        f"group regret    {run.regret:,.0f}",
        f"transmissions   {run.transmissions:,}",
        f"  extended      {counters.get('sent_extended', 0):,} (the same again, since it may travel further)",
        f"  offered       {counters.get('sent_offers', 0):,} (when a link came up)",
        f"learned         {counters.get('heard_news', 0):,} of {n_heard:,} statistics heard were news",
    ]
    if n_merged := counters.get("waited_already", 0):
        lines.insert(-1, f"  merged        {n_merged:,} (not sent: a newer value took their place while they waited)")
    refused = {name: count for name, count in counters.items() if name.startswith("refused") and count}
    if refused:
        lines.append(
            "refused         "
            + ", ".join(f"{count:,} {name.removeprefix('refused_')}" for name, count in refused.items())
        )
    if run.n_missing:
        lines.append(f"{run.n_missing:,} pulls are missing: a node was down when the others were through")
    if run.behind > run.interval:
        lines.append(f"the pace was too high: nodes were up to {run.behind:.2f} s late; take a lower --pace")
    if not run.is_quiet:
        lines.append("statistics were still on their way when the mesh was ended")
    return "\n".join(lines)


def _compared(verdict: Verdict) -> dict[str, dict[str, Any]]:
    """Regret and transmissions of the mesh and of the simulator, and whether they agree."""
    return {
        "regret": {
            "mesh": verdict.run.regret,
            "simulated": verdict.simulated_regret,
            "interval": list(verdict.regret),
            "agrees": verdict.regret_agrees,
        },
        "transmissions": {
            "mesh": verdict.run.transmissions,
            "simulated": verdict.simulated_transmissions,
            "interval": list(verdict.transmissions),
            "agrees": verdict.transmissions_agree,
        },
    }


def _verdict_as_text(verdict: Verdict) -> str:
    from ..text_tables import as_text

    rows = [["", "mesh", f"simulator, {verdict.replicates} runs", "allowed", ""]]
    for what, one in _compared(verdict).items():
        low, high = one["interval"]
        numbers = [f"{one['mesh']:,.0f}", f"{one['simulated']:,.0f}", f"{low:,.0f} to {high:,.0f}"]
        name = "group regret" if what == "regret" else what
        rows.append([name, *numbers, "agrees" if one["agrees"] else "differs"])
    end = "The mesh does what the simulator says." if verdict.agrees else "The mesh and the simulator differ."
    n_merged = verdict.run.counters.get("waited_already", 0)
    if n_merged and verdict.run.transmissions < verdict.transmissions[0]:
        end += (
            f"\n{n_merged:,} statistics gave way to newer ones while they waited, so the mesh had less to send: "
            f"repeat it with a lower --pace, such as {0.25 / verdict.run.interval:g}."
        )
    return as_text(rows) + "\n\n" + end
