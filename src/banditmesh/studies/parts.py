"""What a spec may name: networks, dynamics, arms, policies, protocols and emissions, and how each is built.

A *table* of a spec names one part and gives its parameters. What parameters a part takes is read from its own
signature, so a protocol or policy that is added to the package can be named in a spec at once.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from .. import checks, registry
from ..errors import InputError

if TYPE_CHECKING:
    from ..policies import Policy
    from ..problem import Problem
    from ..protocols import AnyProtocol, Emission

#: What a spec says of a file: keys and values, sorted.
FileTable: TypeAlias = tuple[tuple[str, Any], ...]
#: The tables of a spec and, for each, the key that names the part.
NAME_KEYS: Final = {
    "network": "name",
    "dynamics": "name",
    "arms": "law",
    "policy": "name",
    "protocol": "name",
    "emission": "name",
}
_GENERATORS: Final = (
    "er",
    "ba",
    "sbm",
    "watts_strogatz",
    "grid",
    "path",
    "ring",
    "star",
    "complete",
    "random_regular",
    "random_geometric",
)
#: The tables that may name files.
FILE_TABLES: Final = ("network", "arms")
#: The keys of `[arms]` that name files.
_ARM_FILES: Final = ("catalogue", "laws", "log")
#: What a parameter must be, by how its annotation is written; any other annotation is left to the part itself.
_TYPES: Final[dict[str, tuple[type | tuple[type, ...], str]]] = {
    "int": (int, "an integer"),
    "float": ((int, float), "a number"),
    "str": (str, "a string"),
    "AnyPath": (str, "a string"),
    "Sequence[int]": (list, "a list of integers"),
    "list[float]": (list, "a list of numbers"),
}


@dataclass(frozen=True)
class Part:
    """One thing that a table may name.

    Attributes
    ----------
    make : callable
        Builds it from its parameters.
    parameters : mapping from str to str
        What it takes, and how each parameter is annotated.
    required : frozenset of str
        What must be given.
    all_or_nothing : bool
        Whether it may also be named without any parameter.
    """

    make: Callable[..., Any]
    parameters: Mapping[str, str]
    required: frozenset[str]
    all_or_nothing: bool = False

    def check(self, where: str, given: Mapping[str, Any]) -> None:
        """Refuse a parameter of the wrong type, or the lack of a required one."""
        for key, value in given.items():
            kind, wanted = _TYPES.get(self.parameters[key], (object, ""))
            if not isinstance(value, kind) or (isinstance(value, bool) and kind is not object):
                raise InputError(f"{where}.{key} must be {wanted}, got {checks.shown(value)}")
        missing = sorted(self.required - set(given))
        if missing and not (self.all_or_nothing and not given):
            raise InputError(f"{where}.{missing[0]} is required, got none; add it")


@cache
def parts(table: str) -> dict[str, Part]:
    """Everything that may be named in a table."""
    makers: dict[str, Callable[[], dict[str, Part]]] = {
        "network": _networks,
        "dynamics": _dynamics,
        "arms": _arms,
        "policy": _policies,
        "protocol": _protocols,
        "emission": _emissions,
    }
    return makers[table]()


def get_part(table: str, name: object) -> Part:
    """The part of that name."""
    known = parts(table)
    if not isinstance(name, str) or name not in known:
        raise InputError(f"{table}.{NAME_KEYS[table]} must be one of {', '.join(known)}; got {checks.shown(name)}")
    return known[name]


def build_emission(point: Mapping[str, Any]) -> Emission | None:
    """The emission of a point; None if it is the protocol's own."""
    emission: Emission | None = _make("emission", point)
    return emission


def build_protocol(point: Mapping[str, Any]) -> AnyProtocol:
    """The protocol of a point, with its emission."""
    emission = build_emission(point)
    protocol: AnyProtocol = _make("protocol", point, **({} if emission is None else {"emission": emission}))
    return protocol


def build_policy(point: Mapping[str, Any]) -> Policy:
    """The policy of a point."""
    policy: Policy = _make("policy", point)
    return policy


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
    return _make("network", point) if named is None else files[named]


def build_dynamics(point: Mapping[str, Any], network: Any) -> Any:
    """A network with the dynamics of a point, if it has any."""
    return _make("dynamics", point, start=network)


def build_arms(point: Mapping[str, Any], network: Any, files: Mapping[FileTable, Any]) -> Problem:
    """The problem on a network with the arms of a point; `files` as in `build_problem`."""
    from ..problem import Problem

    read = {key: files[named] for key, named in arm_files_of(point).items()}
    sets, laws = _make("arms", {"arms": {**point["arms"], **read}}, network=network)
    unmatched = {"unmatched": point["arms"]["unmatched"]} if "unmatched" in point["arms"] else {}
    return Problem(network, sets, laws, **unmatched)


def check_dynamics(point: Mapping[str, Any]) -> None:
    """Refuse dynamics that no network can have."""
    from ..networks.csr import Links

    build_dynamics(point, Links.from_pairs(1, []))


def check_arms(point: Mapping[str, Any]) -> None:
    """Refuse arms that no network can have; none are drawn."""
    _make("arms", point, network=None)


def file_of(point: Mapping[str, Any]) -> FileTable | None:
    """What a point says of its network file, if it names one.

    All of it: the same file may be read in several ways.
    """
    table = point["network"]
    return tuple(sorted(table.items())) if "path" in table else None


def arm_files_of(point: Mapping[str, Any]) -> dict[str, FileTable]:
    """What a point says of each file of its arms, by the key that names it."""
    table = point["arms"]
    limit = {"max_bytes": table["max_bytes"]} if "max_bytes" in table else {}
    return {
        key: tuple(sorted({"arms": key, "path": table[key], **limit}.items()))
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
        return _make("network", {"network": {**named, "path": path}})
    return readers[named.pop("arms")](**{**named, "path": path})


def _make(table: str, point: Mapping[str, Any], **more: Any) -> Any:
    given = dict(point[table])
    part = get_part(table, given.pop(NAME_KEYS[table]))
    return part.make(**given, **more)


def _networks() -> dict[str, Part]:
    from .. import networks

    known = {name: _from_signature(getattr(networks, name)) for name in _GENERATORS}
    for name in ("er", "ba", "sbm"):
        known[name] = replace(known[name], make=partial(_paper_or, name, known[name].make), all_or_nothing=True)
    known["dynamic-er"] = Part(lambda: networks.paper("dynamic-er"), {}, frozenset())
    known["file"] = _from_signature(networks.read)
    known["trace"] = _from_signature(networks.read_contact_trace)
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
        part = _from_signature(kind)
        parameters = {key: annotation for key, annotation in part.parameters.items() if key != "start"}
        known[name] = Part(kind, parameters, part.required - {"start"})
    return known


def _arms() -> dict[str, Part]:
    common = {"n_arms": "int", "per_agent": "int", "seed": "int", "means": "list[float]"}
    return {
        "gaussian": Part(_gaussian, {**common, "sigma": "float"}, frozenset()),
        "bernoulli": Part(_bernoulli, common, frozenset()),
        "data": Part(
            _data,
            dict.fromkeys((*_ARM_FILES, "rewards", "unmatched"), "str") | {"max_bytes": "int"},
            frozenset(),
        ),
    }


def _data(
    *,
    network: Any,
    catalogue: Any = None,
    laws: Any = None,
    log: Any = None,
    rewards: str | None = None,
    unmatched: str = "refuse",
    max_bytes: int | None = None,
) -> tuple[Any, Any]:
    """Arm sets and laws from files; only checked without a network, and then the files have not been read."""
    from .. import arms

    if (laws is None) == (log is None):
        raise InputError("laws or log must be given, and not both; name one file")
    if laws is not None and catalogue is None:
        raise InputError("catalogue must be given with laws; name a file of who has which arms")
    if rewards is not None and log is None:
        raise InputError("rewards must be given with log only; leave it out")
    checks.choice("rewards", rewards or "auto", arms.LAW_KINDS)
    checks.choice("unmatched", unmatched, ("refuse", "drop"))
    if network is None:
        return [], []
    if log is not None:
        laws = log.with_law(rewards or "auto")
    return (laws if catalogue is None else catalogue), laws


def _gaussian(*, sigma: float = 1.0, **settings: Any) -> tuple[Any, list[Any]]:
    from .. import arms

    _check_sigma(sigma)
    return _sets_and_laws(lambda mean: arms.Gaussian(mean, sigma), **settings)


@lru_cache(maxsize=1)
def _check_sigma(sigma: float) -> None:
    """Refuse a sigma that no law can have; kept, since it is asked again for every seed of a sweep."""
    from .. import arms

    arms.Gaussian(0.5, sigma)


def _bernoulli(**settings: Any) -> tuple[Any, list[Any]]:
    from .. import arms

    return _sets_and_laws(arms.Bernoulli, **settings)


def _sets_and_laws(
    law: Callable[[float], Any],
    network: Any,
    n_arms: int = 50,
    per_agent: int = 20,
    seed: int = 0,
    means: list[float] | None = None,
) -> tuple[Any, list[Any]]:
    """Arm sets and laws, as `Problem.random` draws them unless the means are given; only checked without a network."""
    from ..armsets import check_sizes
    from ..problem import Problem

    laws = [law(mean) for mean in means or []]
    n_arms, per_agent = check_sizes(n_arms if means is None else len(means), per_agent)
    seed = checks.seed(seed)
    if network is None:
        return [], laws
    problem = Problem.random(network, n_arms, per_agent, seed)
    sets = [problem.arm_set(agent).tolist() for agent in range(problem.n_agents)]
    return sets, laws if means is not None else [law(mean) for mean in problem.means.tolist()]


def _policies() -> dict[str, Part]:
    from .. import policies

    return _from_classes(policies.Policy)


def _protocols() -> dict[str, Part]:
    from .. import protocols

    known = _from_classes(protocols.AnyProtocol)
    # Its ttl is 1 by definition, so the ttl of a study is none of its parameters.
    known["irs"] = replace(known["irs"], parameters={})
    return known


def _emissions() -> dict[str, Part]:
    from .. import protocols

    # What a protocol does by itself: every pull, for most of them.
    own = Part(lambda: None, {}, frozenset())
    return {"default": own, **_from_classes(protocols.Emission)}


def _from_classes(base: type) -> dict[str, Part]:
    """The shipped classes that derive from a base, by their short names."""
    found: dict[str, Part] = {}
    for name, kind in registry.by_name(base).items():
        settable = [one for one in fields(kind) if one.init and one.name != "emission"]
        required = inspect.signature(kind).parameters
        found[name] = Part(
            kind,
            {one.name: str(one.type) for one in settable},
            frozenset(one.name for one in settable if required[one.name].default is inspect.Parameter.empty),
        )
    return found


def _from_signature(make: Callable[..., Any]) -> Part:
    signature = inspect.signature(make).parameters
    required = {key for key, value in signature.items() if value.default is inspect.Parameter.empty}
    if "seed" in signature:
        make = partial(make, seed=0)
    return Part(make, {key: str(value.annotation) for key, value in signature.items()}, frozenset(required - {"seed"}))
