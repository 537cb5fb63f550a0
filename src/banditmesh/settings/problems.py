"""Networks, dynamics and arms as tables name them, and the problem that they make.

All but files may also be users' own: a network is what a function or a class makes of the other keys of its
table; a law is made for each arm, of its mean and of those keys of `[arms]` that are its parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from .. import checks
from ..errors import InputError
from ..lookup import own
from ..machine import memory
from .parts import Part, build, check, from_signature

if TYPE_CHECKING:
    from ..arms import Law
    from ..problem import Problem

#: What a spec says of a file: keys and values, sorted.
FileTable: TypeAlias = tuple[tuple[str, Any], ...]
#: The tables that may name files.
FILE_TABLES: Final = ("network", "arms")
#: The keys of `[arms]` for arms that are drawn, whatever their law.
_DRAWN_ARMS: Final = {"n_arms": "int", "per_agent": "int", "seed": "int", "means": "list[float]", "change": "change"}
#: How many arms are drawn unless that is given.
N_ARMS: Final = 50
#: What an arm of an agent takes in lists of arm sets, in bytes.
_LISTED_BYTES: Final = 60.0
#: The keys of `[arms]` that name files.
_ARM_FILES: Final = ("catalogue", "laws", "log")


def build_problem(point: Mapping[str, Any], files: Mapping[FileTable, Any]) -> Problem:
    """The problem of a point.

    Parameters
    ----------
    point : mapping
        A point's settings.
    files : mapping from what the spec says of a file to what it holds
        What was read from the files that the study names.
    """
    return build_arms(point, build_dynamics(point, build_network(point, files)), files)


def build_network(point: Mapping[str, Any], files: Mapping[FileTable, Any]) -> Any:
    """The network of a point, as `build_problem`; without its dynamics."""
    named = file_of(point)
    return build("network", point) if named is None else files[named]


def build_dynamics(point: Mapping[str, Any], network: Any) -> Any:
    """A network with the dynamics of a point, if it has any."""
    return build("dynamics", point, start=network)


def build_arms(point: Mapping[str, Any], network: Any, files: Mapping[FileTable, Any]) -> Problem:
    """The problem on a network with the arms of a point; `files` as in `build_problem`."""
    from ..problem import Problem

    read = {key: files[named] for key, named in arm_files_of(point).items()}
    table = {key: value for key, value in point["arms"].items() if key not in (*read, "change")}
    log = read.get("log")
    if log is not None and "periods" in table and "horizon" in point:
        read = {**read, "log": log.with_periods(table["periods"], point["horizon"])}
    sets, laws = build("arms", {"arms": table}, network=network, **read)
    unmatched = {"unmatched": point["arms"]["unmatched"]} if "unmatched" in point["arms"] else {}
    problem = Problem(network, sets, laws, **unmatched)
    return problem.with_change(point["arms"]["change"]) if "change" in point["arms"] else problem


def without_change(point: Mapping[str, Any]) -> dict[str, Any]:
    """A point whose arms do not change."""
    return {**point, "arms": {key: value for key, value in point["arms"].items() if key != "change"}}


def drawn_laws(point: Mapping[str, Any]) -> list[Law]:
    """The laws of a point's arms before they change, whatever its network; none of arms that come from files."""
    from ..networks.csr import Links

    if arm_files_of(point):
        return []
    table = without_change(point)["arms"]
    # The only agent has them all: every arm needs a holder.
    n_arms = len(table["means"]) if "means" in table else table.get("n_arms", N_ARMS)
    _, laws = build("arms", {"arms": {**table, "per_agent": n_arms}}, network=Links.from_pairs(1, []))
    return list(laws)


def changed(point: Mapping[str, Any], laws: Sequence[Law]) -> Sequence[Law]:
    """The same laws as the point changes them."""
    from ..arms.changes import read_change

    return read_change(point["arms"]["change"])(laws) if laws and "change" in point["arms"] else laws


def check_dynamics(point: Mapping[str, Any]) -> None:
    """Refuse dynamics that no network can have; the user's own are left until there is a network for them."""
    from ..networks.csr import Links

    if own.is_address(point["dynamics"]["name"]):
        check("dynamics", point)
    else:
        build_dynamics(point, Links.from_pairs(1, []))


def check_arms(point: Mapping[str, Any]) -> None:
    """Refuse arms that no network can have; none are drawn."""
    from ..arms.changes import read_change

    table = dict(point["arms"])
    if "change" in table:
        read_change(table.pop("change"))
    build("arms", {"arms": table}, network=None)


def file_of(point: Mapping[str, Any]) -> FileTable | None:
    """What a point says of its network file, if it names one.

    All of it: the same file may be read in several ways.
    """
    table = point["network"]
    return tuple(sorted(table.items())) if "path" in table and not own.is_address(table["name"]) else None


def arm_files_of(point: Mapping[str, Any]) -> dict[str, FileTable]:
    """What a point says of each file of its arms, by the key that names it."""
    table = point["arms"]
    reading = {key: table[key] for key in ("max_bytes", "columns") if key in table}
    spans = {"log": {"periods": table["periods"]} if "periods" in table else {}}
    return {
        key: tuple(sorted({"arms": key, "path": table[key], **reading, **spans.get(key, {})}.items()))
        for key in _ARM_FILES
        if isinstance(table.get(key), str)
    }


def files_in(point: Mapping[str, Any], table: str) -> list[FileTable]:
    """What a point says of the files that one of its tables names."""
    if table == "arms":
        return list(arm_files_of(point).values())
    named = file_of(point)
    return [] if named is None else [named]


def read_files(files: Mapping[FileTable, Path]) -> dict[FileTable, Any]:
    """What files of networks and arms hold, by what the spec says of them.

    They are read once, in the parent, so that workers need no access to them.
    """
    return {named: _read_file(dict(named), path) for named, path in files.items()}


def _read_file(named: dict[str, Any], path: Path) -> Any:
    from .. import arms

    readers: dict[str, Callable[..., Any]] = {
        "catalogue": arms.read_catalogue,
        "laws": arms.read_laws,
        "log": arms.read_log,
    }
    if "arms" not in named:
        return build("network", {"network": {**named, "path": str(path)}})
    return readers[named.pop("arms")](**{**named, "path": path})


def own_part(table: str, address: str) -> Part:
    """The user's own network, dynamics or law at an address, as a part of a table."""
    if table == "arms":
        return _own_law(address)
    make = own.load(address)
    given = own.parameters_of(make, address)
    if table == "dynamics" and "start" not in given:
        raise InputError(f"{own.plain(address)} must take start, the network that it changes, got {', '.join(given)}")
    part = from_signature(make)
    return part if table == "network" else part.without("start")


def _own_law(address: str) -> Part:
    """A user's own law: it takes the mean of each arm, and its parameters can be read from it."""
    from .. import arms

    kind = own.load(address)
    name = own.plain(address)
    if not isinstance(kind, type) or not issubclass(kind, arms.Law):
        raise InputError(f"{name} must be a class that derives from arms.Law, got {own.plain(checks.shown(kind))}")
    given = own.parameters_of(kind, address)
    if "mean" not in given:
        raise InputError(f"{name} must take the mean of an arm, got {', '.join(given) or 'no parameters'}; add mean")
    if taken := [key for key in given if key in _DRAWN_ARMS]:
        raise InputError(f"{name} must not take {taken[0]}, which [arms] has for all laws; call it something else")
    part = from_signature(kind).without("mean")
    law: Any = kind

    def make(**settings: Any) -> tuple[Any, list[Any]]:
        chosen = {key: settings.pop(key) for key in part.parameters if key in settings}
        made = law(mean=0.5, **chosen)
        for key, value in chosen.items():
            if getattr(made, key, None) != value:
                raise InputError(
                    f"{name} must have its parameters as attributes, got no {key} = {checks.shown(value)} to read; "
                    f"make it a frozen dataclass, or set self.{key}"
                )
        return _sets_and_laws(lambda mean: law(mean=mean, **chosen), **settings)

    return Part(make, {**_DRAWN_ARMS, **part.parameters}, part.required)


def _networks() -> dict[str, Part]:
    from .. import networks
    from ..networks.named import GENERATORS

    of_paper = ("er", "ba", "sbm")
    # A power law is what ba makes.
    known = {name: from_signature(getattr(networks, name)) for name in (*of_paper, *GENERATORS) if name != "powerlaw"}
    for name in of_paper:
        known[name] = replace(known[name], make=partial(_paper_or, name, known[name].make), all_or_nothing=True)
    known["dynamic-er"] = Part(lambda: networks.paper("dynamic-er"), {}, frozenset())
    # As names and arrays: the networkx graph of an edge list would take several times the memory.
    known["file"] = from_signature(networks.read_any).without("progress")
    known["trace"] = from_signature(networks.read_contact_trace)
    return known


def _paper_or(name: str, generator: Callable[..., Any], **parameters: Any) -> Any:
    """The paper's network of that name, or another one of its kind if parameters are given."""
    from .. import networks

    return generator(**parameters) if parameters else networks.paper(name)


def _dynamics() -> dict[str, Part]:
    from .. import networks

    known = {"none": Part(lambda start: start, {}, frozenset())}
    kinds: dict[str, type] = {
        "edge-markovian": networks.EdgeMarkovian,
        "link-failures": networks.LinkFailures,
        "churn": networks.Churn,
    }
    for name, kind in kinds.items():
        known[name] = from_signature(kind).without("start")
    return known


def _arms() -> dict[str, Part]:
    from .. import arms

    return {
        "gaussian": Part(_gaussian, {**_DRAWN_ARMS, "sigma": "float"}, frozenset()),
        "bernoulli": Part(partial(_sets_and_laws, arms.Bernoulli), _DRAWN_ARMS, frozenset()),
        "data": Part(
            _data,
            dict.fromkeys((*_ARM_FILES, "columns", "rewards", "unmatched"), "str")
            | {"max_bytes": "int", "periods": "int", "change": "change"},
            frozenset(),
        ),
    }


def _data(
    *,
    network: Any,
    catalogue: Any = None,
    laws: Any = None,
    log: Any = None,
    columns: str | None = None,
    rewards: str | None = None,
    unmatched: str = "refuse",
    max_bytes: int | None = None,
    periods: int | None = None,
) -> tuple[Any, Any]:
    """Arm sets and laws from files; only checked without a network, and then the files have not been read."""
    from .. import arms

    if (laws is None) == (log is None):
        raise InputError("laws or log must be given, and not both; name one file")
    if laws is not None and catalogue is None:
        raise InputError("must be given with laws; name a file that says which agents have which arms", key="catalogue")
    if rewards is not None and log is None:
        raise InputError("must be given with log only; leave it out", key="rewards")
    if periods is not None:
        checks.integer("periods", periods, at_least=1)
        if log is None:
            raise InputError("must be given with log only; leave it out", key="periods")
    checks.choice("rewards", rewards or "auto", arms.LAW_KINDS)
    checks.choice("unmatched", unmatched, ("refuse", "drop"))
    if network is None:
        return [], []
    if log is not None:
        laws = log.with_law(rewards or "auto")
    return (laws if catalogue is None else catalogue), laws


def _gaussian(*, sigma: float = 1.0, **settings: Any) -> tuple[Any, list[Any]]:
    from .. import arms

    arms.Gaussian(0.5, sigma)  # refuses a sigma that no law can have
    return _sets_and_laws(lambda mean: arms.Gaussian(mean, sigma), **settings)


def _sets_and_laws(
    law: Callable[[float], Any],
    network: Any,
    n_arms: int = N_ARMS,
    per_agent: int = 20,
    seed: int = 0,
    means: list[float] | None = None,
) -> tuple[Any, list[Any]]:
    """Arm sets and laws, as `Problem.random` draws them unless the means are given; only checked without a network."""
    from ..arms.armsets import check_sizes
    from ..problem import Problem

    laws = [law(mean) for mean in means or []]
    n_arms, per_agent = check_sizes(n_arms if means is None else len(means), per_agent)
    seed = checks.seed(seed)
    if network is None:
        return [], laws
    problem = Problem.random(network, n_arms, per_agent, seed)
    memory.check(_LISTED_BYTES * len(problem.arm_indices), "the arm sets", "use fewer arms per agent")
    sets = [problem.arm_set(agent).tolist() for agent in range(problem.n_agents)]
    return sets, laws if means is not None else [law(mean) for mean in problem.means.tolist()]


#: What each table may name.
PARTS: Final[dict[str, Callable[[], dict[str, Part]]]] = {"network": _networks, "dynamics": _dynamics, "arms": _arms}
