"""The options by which several verbs are told a problem, and how they are read."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from ..errors import InputError

if TYPE_CHECKING:
    from ..faults import Faults
    from ..policies import Policy
    from ..problem import Problem
    from ..studies.case import Case

PROTOCOLS_HELP = (
    "Any of none, irs, gossip, probabilistic, fwa, flooding, tree and centralised, separated by commas; "
    "with a ttl and an emission of their own as in 'fwa,flooding(8)+growth(0.25)'."
)


def problem_options(command: Callable[..., Any], *, ttl: bool = True) -> Callable[..., Any]:
    """The options that describe a problem and how long to simulate it, with a ttl for all protocols or without."""
    options = [
        click.option(
            "--network",
            default="er",
            show_default=True,
            help="er, ba, sbm or dynamic-er (the paper's), or a file: edge list, GraphML, GML, adjacency list.",
        ),
        click.option("--max-bytes", type=int, help="How much a network file may hold, unpacked."),
        click.option("--arms", "n_arms", default=50, show_default=True, help="How many arms there are."),
        click.option("--per-agent", default=20, show_default=True, help="How many arms each agent has."),
        click.option("--horizon", default=1000, show_default=True, help="How many rounds."),
        click.option("--replicates", default=10, show_default=True, help="How many repetitions."),
        click.option("--seed", default=0, show_default=True, help="Decides arms, rewards and everything random."),
        click.option(
            "--rules",
            type=click.Choice(["sound", "published"]),
            default="sound",
            show_default=True,
            help="The paper's text and theory, or its author's code and figures.",
        ),
    ]
    if ttl:
        options.append(click.option("--ttl", default=4, show_default=True, help="How many hops a message may travel."))
    for option in reversed(options):
        command = option(command)
    return command


def policy_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """The option that names a policy; a spec can give its parameters as well."""
    names = "ucb, klucb, thompson, ucb-v, moss or epsilon-greedy"
    text = f"How agents choose: {names}, with the defaults; a spec can say more."
    return click.option("--policy", metavar="NAME", default="ucb", show_default=True, help=text)(command)


def read_policy(name: str) -> Policy:
    """The policy of that name, with its defaults."""
    from .. import checks
    from ..parts import named

    known = named("policy")
    policy: Policy = known[checks.choice("--policy", name, known)].make()
    return policy


def fault_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say what goes wrong; a spec can say more."""
    options = [
        click.option("--loss", default=0.0, show_default=True, help="How likely a transmission is lost."),
        click.option(
            "--outages",
            type=(float, float),
            metavar="DOWN UP",
            help="How likely an agent goes down, and one that is down comes back, each round.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def read_faults(loss: float, outages: tuple[float, float] | None) -> Faults | None:
    """What the options of `fault_options` say; None if nothing ever goes wrong."""
    from ..faults import Faults, Outages

    return Faults(loss=loss, outages=None if outages is None else Outages(*outages)).effective()


def read_case(
    spec_path: str | None,
    *,
    network: str,
    n_arms: int,
    per_agent: int,
    max_bytes: int | None,
    ttl: int,
    horizon: int,
    replicates: int,
    seed: int,
    rules: str,
    names: str,
    policy: str = "ucb",
    loss: float = 0.0,
    outages: tuple[float, float] | None = None,
) -> Case:
    """The case that a spec file describes or, without one, the options above and `--protocols`."""
    from ..protocols import notation
    from ..studies.case import Case, case_of
    from ..studies.reading import read_spec

    if spec_path is not None:
        refuse_options(click.get_current_context())
        return case_of(read_spec(spec_path))
    written = notation.split(names)
    protocols = tuple(notation.read(name, ttl) for name in written)
    if all(notation.read(name, 1) == notation.read(name, 2) for name in written):
        refuse_idle(click.get_current_context(), "ttl", "each of the protocols has its own")
    faults = read_faults(loss, outages)
    if not any(protocol.sends_messages for protocol in protocols):
        refuse_idle(click.get_current_context(), "loss", "none of the protocols sends messages")
    return Case(
        network=network if not Path(network).exists() else Path(network).stem,
        problem=read_problem(network, n_arms, per_agent, seed, max_bytes),
        protocols=protocols,
        policy=read_policy(policy),
        horizon=horizon,
        replicates=replicates,
        seed=seed,
        rules=rules,
        faults=faults,
    )


def refuse_options(context: click.Context) -> None:
    """A spec says all that these options do."""
    spoken = (
        "network",
        "n_arms",
        "per_agent",
        "max_bytes",
        "ttl",
        "horizon",
        "replicates",
        "seed",
        "rules",
        "names",
        "policy",
        "ttls",
        "emissions",
        "loss",
        "outages",
    )
    for parameter in context.command.params:
        if parameter.name in spoken and context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE:
            raise InputError(f"give a spec file or {parameter.opts[0]}, got both; change the spec instead")


def refuse_idle(context: click.Context, name: str, reason: str) -> None:
    """Refuse an option that was given although nothing would use it."""
    if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
        option = next(parameter for parameter in context.command.params if parameter.name == name)
        raise InputError(f"{option.opts[0]} has no effect: {reason}; leave it out")


def read_problem(network: str, n_arms: int, per_agent: int, seed: int, max_bytes: int | None) -> Problem:
    """The problem that the options describe: Gaussian arms with uniform means, uniformly drawn arm sets."""
    from .. import networks
    from ..problem import Problem

    if not network.strip():
        names = ", ".join(networks.PAPER_NETWORKS)
        raise InputError(f"--network must be one of {names}, or a network file; got {network!r}")
    is_paper = network in networks.PAPER_NETWORKS
    graph = networks.paper(network) if is_paper else networks.read(network, max_bytes=max_bytes)
    return Problem.random(graph, n_arms, per_agent, seed)


def check_picture(option: str, path: str) -> None:
    """Refuse a picture that could not be written, before anything is simulated for it."""
    kinds = (".pdf", ".png", ".svg")
    target = Path(path)
    if target.suffix not in kinds:
        raise InputError(f"{option} must name a {', '.join(kinds)} file, got {path}")
    if not target.parent.is_dir():
        raise InputError(f"{option} must lie in a folder that exists, got {path}; create {target.parent} first")
    if not os.access(target if target.exists() else target.parent, os.W_OK):
        raise InputError(f"{option} must be a file that may be written, got {path}; choose another place")


def check_folder(option: str, path: str) -> None:
    """Refuse a folder that could neither be written to nor made, before anything is simulated for it."""
    there = Path(path).absolute()
    while not there.exists() and there != there.parent:
        there = there.parent
    if not there.is_dir() or not os.access(there, os.W_OK):
        raise InputError(f"{option} must be a folder that may be written, got {path}; choose another place")
