"""What the options of a command line describe: a case with its problem, its policies and its faults."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .. import checks
from ..errors import ArmError, InputError
from .options import is_given, refuse_idle, refuse_options, say

if TYPE_CHECKING:
    from ..faults import Faults
    from ..policies import Policy
    from ..problem import Problem
    from ..protocols import AnyProtocol
    from ..studies.case import Case


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
    """The case that a spec file describes or, without one, the options and `--protocols`, if there is one.

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


def read_faults(loss: float, outages: tuple[float, float] | None, reward_delay: str | None) -> Faults | None:
    """What the options of `fault_options` say; None if nothing ever goes wrong."""
    from ..faults import Faults, Outages

    down = None if outages is None else Outages(*outages)
    return Faults(loss=loss, outages=down, reward_delay=reward_delay or 0).effective()


def read_policies(text: str | None) -> list[Policy] | None:
    """The policies that `--policies` names."""
    from ..protocols.notation import split

    if text is None:
        return None
    context = click.get_current_context()
    if is_given(context, "policy"):
        raise InputError("give --policy or --policies, got both; --policies puts several side by side")
    return [read_policy(one, "--policies") for one in split(text)]


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


def takes_policy() -> bool:
    """Whether the verb that runs has an option for a policy."""
    return any(parameter.name == "policy" for parameter in click.get_current_context().command.params)
