"""The options that several verbs share, and checks of what was given. What they describe is built in `cases`."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from ..errors import InputError

#: As `arms.LAW_KINDS`, which is not imported for a list of options.
LOG_REWARDS = ("auto", "bernoulli", "empirical", "replay")
PROTOCOLS_HELP = (
    "Any of none, irs, gossip, probabilistic, fwa, flooding, tree and centralised, separated by commas; "
    "with its own ttl and emission as in 'fwa,flooding(8)+growth(0.25)'; or yours, as in 'my_module:MyProtocol(4)'."
)
ALGORITHMS_HELP = f"{PROTOCOLS_HELP} Published algorithms go by their names, as in 'gosine,dducb,coop-se(4)'."


class SpecOption(click.Option):
    """An option whose place a spec takes, see `refuse_options`."""


spec_option = partial(click.option, cls=SpecOption)


NETWORK_FILES = "edge list, adjacency list, GraphML, GML, JSON, Matrix Market"
#: What to do with what a network file holds and no network of agents has.
NETWORK_FILE_OPTIONS = (
    spec_option(
        "--weights",
        type=click.Choice(["refuse", "ignore"]),
        default="refuse",
        show_default=True,
        help="What to do with a network file's weights other than 1.",
    ),
    spec_option(
        "--self-loops",
        type=click.Choice(["refuse", "drop"]),
        default="refuse",
        show_default=True,
        help="What to do with a network file's links from an agent to itself.",
    ),
)


def say(line: object) -> None:
    """A line for the user on standard error."""
    click.echo(f"banditmesh: {line}", err=True)


def with_options(command: Callable[..., Any], options: Sequence[Callable[..., Any]]) -> Callable[..., Any]:
    """A command with these options, in this order."""
    for option in reversed(options):
        command = option(command)
    return command


def token_option(text: str) -> Callable[..., Any]:
    """The option that names the file of a token; what a verb gets is the token."""

    def read(context: click.Context, parameter: click.Parameter, path: str | None) -> str | None:
        from ..live.http.guard import read_token

        return None if path is None else read_token(path)

    return click.option("--token-file", "token", type=click.Path(dir_okay=False), callback=read, help=text)


def problem_options(command: Callable[..., Any], *, ttl: bool = True) -> Callable[..., Any]:
    """The options that describe a problem and how long to simulate it, with a ttl for all protocols or without."""
    options = [
        spec_option(
            "--network",
            default="er",
            show_default=True,
            help="er, ba, sbm or dynamic-er (the paper's); a generator as in ring:12, grid:5x5 or powerlaw:3000,3; "
            f"or a file: {NETWORK_FILES}.",
        ),
        spec_option("--max-bytes", type=int, help="Maximum size of a file in bytes, unpacked."),
        *NETWORK_FILE_OPTIONS,
        spec_option("--arms", "n_arms", default=50, show_default=True, help="Number of arms."),
        spec_option("--per-agent", default=20, show_default=True, help="Number of arms per agent."),
        spec_option(
            "--catalogue", metavar="FILE", help="Which agents have which arms: agent,arm. Needs --laws or --log."
        ),
        spec_option("--laws", metavar="FILE", help="What arms pay: arm,law,parameters or arm,successes,trials."),
        spec_option("--log", metavar="FILE", help="Logged rewards, instead of --laws: agent,arm,reward."),
        spec_option(
            "--columns",
            metavar="AGENT,ARM,REWARD[,TIME]",
            help="What these columns are called in the files, as in user,movie,rating.",
        ),
        spec_option(
            "--periods",
            type=int,
            metavar="N",
            help="Cut a log with times into N spans; arms change from one to the next.",
        ),
        spec_option(
            "--change",
            metavar="RECIPE",
            help="How arms change: switching(RATE), wandering(STEP), seasonal(AMPLITUDE, PERIOD), drifting(FIRST, "
            "LAST) or piecewise(ROUND, ...).",
        ),
        spec_option(
            "--log-rewards",
            type=click.Choice(LOG_REWARDS),
            default="auto",
            show_default=True,
            help="How logged rewards are used; replay uses each one once.",
        ),
        spec_option(
            "--unmatched",
            type=click.Choice(["refuse", "drop"]),
            default="refuse",
            show_default=True,
            help="What to do with agents and arms in these files that match no name.",
        ),
        spec_option("--horizon", default=1000, show_default=True, help="Number of rounds."),
        spec_option("--replicates", default=10, show_default=True, help="Number of repetitions."),
        spec_option(
            "--seed", default=0, show_default=True, help="Seed of arms, rewards and everything else that is random."
        ),
        spec_option(
            "--rules",
            type=click.Choice(["sound", "published"]),
            default="sound",
            show_default=True,
            help="The paper's text and theory, or its author's code and figures.",
        ),
    ]
    if ttl:
        options.append(spec_option("--ttl", default=4, show_default=True, help="Maximum number of hops of a message."))
    return with_options(command, options)


def policy_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """The option that names a policy; a spec can give its parameters as well."""
    names = "ucb, klucb, thompson, ucb-v, moss, epsilon-greedy, or yours as in my_module:MyPolicy"
    text = f"How agents choose, and what they forget: {names}; with parameters and a memory, ucb(0.5)+discount(0.995)."
    return spec_option("--policy", metavar="NAME", default="ucb", show_default=True, help=text)(command)


def policies_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """The option that names several policies to put side by side."""
    text = "Put policies side by side, each with every protocol: 'ucb(0.5),ucb(0.5)+discount(0.995)'."
    return click.option("--policies", metavar="NAME,NAME,...", help=text)(command)


def pace_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """The option that says how many rounds there are in a second."""
    text = "Also give costs per second, at this pace."
    return click.option("--rounds-per-second", type=float, help=text)(command)


def fault_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options for faults; a spec can say more."""
    options = [
        spec_option("--loss", default=0.0, show_default=True, help="Probability that a transmission is lost."),
        spec_option(
            "--outages",
            type=(float, float),
            metavar="DOWN UP",
            help="Probabilities, each round, that an agent goes down and that it comes back up.",
        ),
        spec_option(
            "--reward-delay",
            metavar="LAW",
            help="Rounds until a reward is observed: 10, geometric(10), uniform(1, 20) or never.",
        ),
    ]
    return with_options(command, options)


def is_given(context: click.Context, name: str) -> bool:
    """Whether an option was given on the command line."""
    return context.get_parameter_source(name) is ParameterSource.COMMANDLINE


def refuse_options(context: click.Context, but: tuple[str, ...]) -> None:
    """Refuse options that a spec replaces, except those that may go with it."""
    for parameter in context.command.params:
        name = parameter.name or ""
        if isinstance(parameter, SpecOption) and name not in but and is_given(context, name):
            raise InputError(f"give a spec file or {parameter.opts[0]}, got both; change the spec instead")


def refuse_idle(context: click.Context, name: str, reason: str) -> None:
    """Refuse an option that would have no effect."""
    if is_given(context, name):
        option = next(parameter for parameter in context.command.params if parameter.name == name)
        raise InputError(f"{option.opts[0]} has no effect: {reason}; leave it out")


def report_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """The option that names an HTML report."""

    def check(context: click.Context, parameter: click.Parameter, path: str | None) -> str | None:
        if path is not None:
            check_picture("--report", path, (".html",))
        return path

    text = "Also write one HTML file that opens offline: the answer first, then figures, tables and settings."
    kind = click.Path(dir_okay=False)
    return click.option("--report", metavar="FILE.html", type=kind, callback=check, help=text)(command)


def command_line(context: click.Context) -> str:
    """The command that runs, written out from what was given."""
    words = [context.command_path]
    for parameter in context.command.params:
        name = parameter.name or ""
        if not is_given(context, name):
            continue
        value = context.params[name]
        if isinstance(parameter, click.Argument):
            words.append(shlex.quote(str(value)))
        elif isinstance(parameter, click.Option) and parameter.is_flag:
            words.append(parameter.opts[0] if value else parameter.secondary_opts[0])
        else:
            for one in value if parameter.multiple else [value]:
                words += [
                    parameter.opts[0],
                    *(shlex.quote(str(part)) for part in (one if parameter.nargs > 1 else [one])),
                ]
    return " ".join(words)


def check_picture(option: str, path: str, kinds: Sequence[str] = (".pdf", ".png", ".svg")) -> None:
    """Refuse a picture or report that could not be written, before anything is simulated."""
    target = Path(path)
    if target.suffix not in kinds:
        raise InputError(f"{option} must name a {', '.join(kinds)} file, got {path}")
    if not target.parent.is_dir():
        raise InputError(f"{option} must lie in a folder that exists, got {path}; create {target.parent} first")
    if not os.access(target if target.exists() else target.parent, os.W_OK):
        raise InputError(f"{option} must be a file that can be written, got {path}; choose another place")


def write_picture(figure: Any, path: str) -> None:
    """Write a figure to a file that `check_picture` let pass, whole or not at all."""
    from ..plots import save

    target = Path(path)
    save(figure, target.with_suffix(""), [target.suffix[1:]])


def check_folder(option: str, path: str) -> None:
    """Refuse a folder that could neither be written nor made, before anything is simulated."""
    there = Path(path).absolute()
    while not there.exists() and there != there.parent:
        there = there.parent
    if not there.is_dir() or not os.access(there, os.W_OK):
        raise InputError(f"{option} must be a folder that can be written, got {path}; choose another place")
