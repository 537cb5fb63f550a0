"""The options of several verbs that describe a problem, and how they are read."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from .. import checks
from ..errors import ArmError, InputError

if TYPE_CHECKING:
    from ..faults import Faults
    from ..policies import Policy
    from ..problem import Problem
    from ..protocols import AnyProtocol
    from ..studies.case import Case

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


def read_policies(text: str | None) -> list[Policy] | None:
    """The policies that `--policies` names."""
    from ..protocols.notation import split

    if text is None:
        return None
    context = click.get_current_context()
    if is_given(context, "policy"):
        raise InputError("give --policy or --policies, got both; --policies puts several side by side")
    return [read_policy(one, "--policies") for one in split(text)]


def pace_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """The option that says how many rounds there are in a second."""
    text = "Also give costs per second, at this pace."
    return click.option("--rounds-per-second", type=float, help=text)(command)


def read_policy(text: str, option: str = "--policy") -> Policy:
    """The policy that a text describes, such as "ucb(0.5)+discount(0.995)"."""
    from ..lookup import own
    from ..settings.parts import build_policy, tables_of

    try:
        return build_policy(tables_of("policy", text if "(" in text or "+" in text else own.address(text, Path())))
    except InputError as error:
        if not (error.is_sentence or error.key == "policy.name"):
            raise error.found_in(option) from None
        raise InputError(error.what, key=option, remedy=error.remedy, is_sentence=error.is_sentence) from None


def ask_no_policy(protocols: Sequence[AnyProtocol | type[AnyProtocol]]) -> bool:
    """Whether there are protocols and all are algorithms that choose by themselves; then a policy is refused."""
    if not protocols or not all(one.chooses for one in protocols):
        return False
    for name in ("policy", "policies"):
        refuse_idle(click.get_current_context(), name, "all of these algorithms choose by their own rules")
    return True


def note_policy(problem: Problem, chosen: bool, in_spec: bool = False) -> None:
    """Say on standard error if another policy than the default would suit the arms better."""
    from ..policies.choice import ADVICE, suits_rates

    if not chosen and suits_rates(problem):
        where = "[policy] in the spec" if in_spec else "--policy klucb or --policy thompson"
        say(f"{ADVICE}: {where}")


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


def read_faults(loss: float, outages: tuple[float, float] | None, reward_delay: str | None) -> Faults | None:
    """What the options of `fault_options` say; None if nothing ever goes wrong."""
    from ..faults import Faults, Outages

    down = None if outages is None else Outages(*outages)
    return Faults(loss=loss, outages=down, reward_delay=reward_delay or 0).effective()


def read_case(
    spec_path: str | None,
    *,
    network: str,
    horizon: int,
    replicates: int,
    seed: int,
    rules: str,
    names: str | None = None,
    ttl: int = 4,
    policy: str = "ucb",
    loss: float = 0.0,
    outages: tuple[float, float] | None = None,
    reward_delay: str | None = None,
    chooses: bool = False,
    **arms: Any,
) -> Case:
    """The case that a spec file describes or, without one, the options above and `--protocols`, if there is one.

    `--protocols` and `--ttl` also go with a spec: then it gives the problem and the rest. That the default policy suits
    the arms badly is not said if `chooses`: then policies are given otherwise.
    """
    from ..protocols import notation
    from ..studies.case import Case

    if spec_path is not None:
        return _read_spec_case(spec_path, names or "", ttl, chooses)
    written = [] if names is None else notation.split(names)
    protocols = tuple(notation.read(name, ttl) for name in written)
    if written and all(notation.read(name, 1) == notation.read(name, 2) for name in written):
        refuse_idle(click.get_current_context(), "ttl", "each of the protocols has its own, or none")
    faults = read_faults(loss, outages, reward_delay)
    problem = read_problem(network, seed, horizon=horizon, **arms)
    chooses = ask_no_policy(protocols) or chooses
    note_policy(problem, chooses or is_given(click.get_current_context(), "policy") or not takes_policy())
    if written and not any(protocol.sends_messages for protocol in protocols):
        refuse_idle(click.get_current_context(), "loss", "none of the protocols sends messages")
    return Case(
        network=network if not Path(network).exists() else Path(network).stem,
        problem=problem,
        protocols=protocols,
        policies=(read_policy(policy),),
        horizon=horizon,
        replicates=replicates,
        seed=seed,
        rules=rules,
        faults=faults,
    )


def _read_spec_case(spec_path: str, names: str, ttl: int, chooses: bool) -> Case:
    """The case of a spec file, with other protocols or another ttl if the command line gives them."""
    from ..protocols import notation
    from ..studies.case import case_of
    from ..studies.reading import read_spec

    context = click.get_current_context()
    refuse_options(context, but=("names", "ttl"))
    spec = read_spec(spec_path)
    case = case_of(spec)
    note_policy(case.problem, chooses or spec.chooses_policy or not takes_policy(), in_spec=True)
    if is_given(context, "names"):
        default = ttl if is_given(context, "ttl") else spec.settings.protocol.get("ttl", ttl)
        return replace(case, protocols=tuple(notation.read(name, default) for name in notation.split(names)))
    if is_given(context, "ttl"):
        if not any(notation.needs_ttl(type(protocol)) for protocol in case.protocols):
            refuse_idle(context, "ttl", "none of the spec's protocols has one")
        changed = [_with_ttl(protocol, ttl) for protocol in case.protocols]
        return replace(case, protocols=tuple(one for k, one in enumerate(changed) if one not in changed[:k]))
    return case


def _with_ttl(protocol: Any, ttl: int) -> Any:
    from ..protocols import notation

    return replace(protocol, ttl=ttl) if notation.needs_ttl(type(protocol)) else protocol


def takes_policy() -> bool:
    """Whether the verb that runs has an option for a policy."""
    return any(parameter.name == "policy" for parameter in click.get_current_context().command.params)


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


def read_problem(
    network: str,
    seed: int,
    *,
    n_arms: int,
    per_agent: int,
    max_bytes: int | None,
    weights: str,
    self_loops: str,
    catalogue: str | None,
    laws: str | None,
    log: str | None,
    columns: str | None,
    log_rewards: str,
    unmatched: str,
    periods: int | None,
    change: str | None,
    horizon: int,
) -> Problem:
    """The problem that the options describe: arms from files or, without any, Gaussian ones drawn as in the paper."""
    from ..arms.changes import read_change
    from ..problem import Problem

    context = click.get_current_context()
    if change is not None:
        read_change(change)  # before any file is read
    if catalogue is None and laws is None and log is None:
        for name in ("log_rewards", "unmatched", "columns", "periods"):
            refuse_idle(context, name, "no file gives arms")
        graph = read_network(network, seed, max_bytes, weights, self_loops)
        return Problem.random(graph, n_arms, per_agent, seed, change)
    for name in ("n_arms", "per_agent"):
        refuse_idle(context, name, "a file gives the arms")
    if laws is None and log is None:
        raise InputError("--catalogue gives no rewards, and neither --laws nor --log is given; give one of them")
    if laws is not None and log is not None:
        raise InputError("give --laws or --log, got both; each says what arms pay")
    if log is None:
        for name in ("log_rewards", "periods"):
            refuse_idle(context, name, "there is no --log")
        if catalogue is None:
            raise InputError("--laws needs --catalogue, got none; name a file that says which agents have which arms")
    spans = None if periods is None else {"periods": periods, "horizon": horizon}
    who, what = _read_arms(catalogue, laws, log, log_rewards, spans, columns=columns, max_bytes=max_bytes)
    graph = read_network(network, seed, max_bytes, weights, self_loops)
    hint = "" if is_given(context, "network") else f"--network is not given, so {network} is used, the paper's"
    try:
        problem = Problem(graph, who, what, unmatched=unmatched)
    except ArmError as error:
        raise ArmError(f"{error}; {hint}; name your file" if hint else str(error)) from None
    if hint:
        say(hint)
    if problem.unmatched:
        say(f"left out: {problem.unmatched}")
    return problem if change is None else problem.with_change(change)


def _read_arms(
    catalogue: str | None,
    laws: str | None,
    log: str | None,
    log_rewards: str,
    spans: dict[str, Any] | None,
    **reading: Any,
) -> tuple[Any, Any]:
    """Which agents have which arms, and what they pay, from files."""
    from .. import arms
    from ..sim.progress import patient_bar

    what: Any
    if log is None:
        assert laws is not None
        what = arms.read_laws(laws, **reading)
    else:
        with patient_bar(f"reading {Path(log).name}", "") as progress:
            what = arms.read_log(log, law=log_rewards, progress=progress, **(spans or {}), **reading)
    return what if catalogue is None else arms.read_catalogue(catalogue, **reading), what


def read_network(network: str, seed: int, max_bytes: int | None, weights: str, self_loops: str) -> Any:
    """The network that `--network` names: one of the paper's, one that a generator makes, or a file's."""
    from .. import networks
    from ..networks.named import GENERATORS, names_generator
    from ..sim.progress import patient_bar

    if network in GENERATORS and network not in networks.PAPER_NETWORKS and not os.path.exists(network):
        return networks.from_text(network, seed)  # which says how its numbers are written
    if network in networks.PAPER_NETWORKS or names_generator(network):
        context = click.get_current_context()
        for name in ("weights", "self_loops"):
            refuse_idle(context, name, f"{network} is no file")
        if not any(is_given(context, name) for name in ("catalogue", "laws", "log")):
            refuse_idle(context, "max_bytes", f"{network} is no file")
        return networks.paper(network) if network in networks.PAPER_NETWORKS else networks.from_text(network, seed)
    if not network.strip() or not os.path.exists(network):
        near = checks.meant(network.partition(":")[0], [*networks.PAPER_NETWORKS, *GENERATORS])
        raise InputError(
            f"--network must be one of {', '.join(networks.PAPER_NETWORKS)}, a generator as in ring:12, or a file; "
            f"got {checks.shown(network)}, and there is no such file{near}"
        )
    with patient_bar(f"reading {Path(network).name}", "bytes") as progress:
        return networks.read_any(
            network, max_bytes=max_bytes, weights=weights, self_loops=self_loops, progress=progress
        )


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
