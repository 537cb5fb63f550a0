"""What is chosen on the page: texts, by the dotted keys of a spec. A spec, a link and lines of Python say the same.

A choice is the text in a field: `{"network.name": "ring", "network.n": "12", "horizon": "abc"}`.
It is checked as every spec is, so that errors are those of the command line. Empty fields are left out.
A link holds what differs from the defaults, for keys that have a field: `misfit` names what else is in it.
Files that were uploaded are named by `network.path` and the like, as `uploads` names them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import MISSING, fields, replace
from inspect import Parameter, signature
from pathlib import PurePath
from typing import Any, Final
from urllib.parse import urlencode

from .. import checks
from ..errors import InputError
from ..faults import Faults
from ..files.contents import MAX_TEXT
from ..networks.published import paper_parameters
from ..protocols import notation
from ..protocols.notation import split
from ..rules import RULE_SETS
from ..settings.parts import FAULT_TABLES, NAME_KEYS, get_part, parts
from ..settings.toml_text import value_text, write

#: What is chosen at first.
DEFAULTS: Final[dict[str, str]] = {
    "network.name": "er",
    "dynamics.name": "none",
    "arms.law": "gaussian",
    "arms.n_arms": "50",
    "arms.per_agent": "20",
    "arms.seed": "0",
    "policy.name": "ucb",
    "memory.name": "everything",
    "protocols": "fwa(4), flooding(4)",
    "policies": "",
    "horizon": "1000",
    "replicates": "10",
    "seed": "0",
    "rules": "sound",
}
#: What the lab opens on without a link: a network so small that its messages can be watched.
OPENING: Final[dict[str, str]] = {
    **DEFAULTS,
    "network.name": "grid",
    "network.rows": "3",
    "network.columns": "4",
    "arms.n_arms": "6",
    "arms.per_agent": "3",
    "horizon": "200",
}
#: The ttl of a protocol that needs one and is named without.
DEFAULT_TTL: Final = 4
#: The protocols under which a message of the lab's problem is followed at first.
FOLLOWED: Final = ("flooding(4)", "fwa(4)")
#: Keys that hold words, whatever they look like; those of a table alone with its name.
_WORDS: Final = frozenset(
    [
        "name",
        "law",
        "rules",
        "path",
        "catalogue",
        "laws",
        "log",
        "rewards",
        "change",
        "weights",
        "kind",
        "arms.columns",
        "arms.unmatched",
    ]
)
#: Keys that name files, and the most bytes that such a file may hold, unpacked.
FILES: Final = ("network.path", "arms.catalogue", "arms.laws", "arms.log")
MAX_UNPACKED: Final = 64 * 2**20
#: The tables whose keys go by the part that they name, and those of faults.
TABLES: Final = ("network", "dynamics", "arms", "policy", "memory")
FAULTS: Final = (
    *(f"faults.{one.name}" for one in fields(Faults) if one.name not in FAULT_TABLES),
    *(f"faults.{name}.{one.name}" for name, kind in FAULT_TABLES.items() for one in fields(kind)),
)
#: What the drawing of networks and arms goes by, unless it is told.
_DRAWN: Final = {key: DEFAULTS[key] for key in ("arms.n_arms", "arms.per_agent", "arms.seed")} | {"network.seed": "0"}
#: Parameters of parts that have no field.
_NO_FIELD: Final = frozenset({"max_bytes", "prior", "fmt", "format", "progress"})
#: The most rounds of a run that are kept.
MAX_RECORDS: Final = 2000
#: Keys that name several, separated by commas, and what each of them sweeps over in a spec.
SEVERAL: Final = {"protocols": "protocol", "policies": "policy"}
#: What is said of a run besides these.
_RUN: Final = ("horizon", "replicates", "seed", "rules")
_REST: Final = "the fields show the rest of this link"
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,400}")
_NUMBER: Final = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")


def known_keys(choices: Mapping[str, str]) -> list[str]:
    """The keys that have a field, with the parts that are chosen.

    Examples
    --------
    >>> [key for key in known_keys({**DEFAULTS, "network.name": "ring"}) if key.startswith("network.")]
    ['network.name', 'network.n']
    """
    run = [key for key in DEFAULTS if "." not in key]
    return [*(key for table in TABLES for key in keys_of(table, choices)), *run, *FAULTS]


def keys_of(table: str, choices: Mapping[str, str]) -> list[str]:
    """The keys of a table that have a field, with the part that is chosen: first the one that names the part."""
    name = f"{table}.{NAME_KEYS[table]}"
    part = parts(table).get(choices.get(name, ""))
    more = [] if part is None else [key for key in part.parameters if key not in _NO_FIELD]
    return [name, *(f"{table}.{key}" for key in more)]


def default_of(key: str, choices: Mapping[str, str]) -> str:
    """What counts where a field is left empty, as a text; empty if that is nothing, "required" if there is no default.

    Examples
    --------
    >>> default_of("policy.alpha", DEFAULTS), default_of("arms.sigma", DEFAULTS), default_of("network.n", DEFAULTS)
    ('3.0', '1.0', '100')
    >>> default_of("network.n", {**DEFAULTS, "network.name": "ring"}), default_of("faults.loss", DEFAULTS)
    ('required', '0.0')
    """
    table, _, name = key.partition(".")
    if table == "faults":
        kinds: dict[str, type[Any]] = {name.partition(".")[0]: Faults, **FAULT_TABLES}
        return _default_text(
            next(one.default for one in fields(kinds[name.partition(".")[0]]) if one.name == name.rpartition(".")[2])
        )
    part = parts(table).get(choices.get(f"{table}.{NAME_KEYS[table]}", "")) if table in TABLES else None
    if part is None or name not in part.parameters:
        return ""
    if part.all_or_nothing:
        others = (other for other in keys_of(table, choices)[1:] if other != key)
        if not any(choices.get(other, "").strip() for other in others):
            return paper_parameters(choices[f"{table}.{NAME_KEYS[table]}"]).get(name, "")
    if name in part.required:
        return "required"
    if key in _DRAWN:
        return _DRAWN[key]
    return _default_text(getattr(signature(part.make).parameters.get(name), "default", None))


def _default_text(value: Any) -> str:
    return "" if value in (None, (), Parameter.empty) or value is MISSING else str(value)


def from_query(query: Mapping[str, str], defaults: Mapping[str, str] = DEFAULTS) -> dict[str, str]:
    """The choices of a link: the defaults, with what the link changes; see `misfit` for the rest.

    Examples
    --------
    >>> found = from_query({"arms.n_arms": "6", "policy.alpha": "1"})
    >>> found["arms.n_arms"], found["arms.per_agent"], found["policy.name"], found["policy.alpha"]
    ('6', '20', 'ucb', '1')
    >>> from_query({"arms.law": "data"}).get("arms.n_arms")
    """
    choices = {**defaults, **query}
    known = known_keys(choices)
    return {key: text for key, text in choices.items() if key in known}


def misfit(query: Mapping[str, str], defaults: Mapping[str, str] = DEFAULTS) -> str:
    """The first part of a link that has no field, or an unknown name, as an error in one line; empty if all of it fits.

    Examples
    --------
    >>> misfit({"policy.alpha": "1"})
    ''
    >>> misfit({"policy.name": "thompson", "policy.alpha": "1"})
    'policy.alpha does not fit thompson, which takes first_pulls; the fields show the rest of this link'
    """
    choices = {**defaults, **query}
    options = {f"{table}.{NAME_KEYS[table]}": list(parts(table)) for table in TABLES} | {"rules": list(RULE_SETS)}
    for key, allowed in options.items():
        if (word := choices[key]) not in allowed:
            return f"{key} must be one of {', '.join(allowed)}; got {checks.shown(word)}{checks.meant(word, allowed)}"
    known = known_keys(choices)
    for key in query:
        if key in known:
            continue
        table = key.partition(".")[0]
        if table not in TABLES:
            return f"{checks.shown(key)} is not a field of this page{checks.meant(key, known)}; {_REST}"
        name, *others = keys_of(table, choices)
        takes = ", ".join(other.partition(".")[2] for other in others) or "nothing"
        return f"{key} does not fit {choices[name]}, which takes {takes}; {_REST}"
    return ""


def to_query(choices: Mapping[str, str], defaults: Mapping[str, str] = DEFAULTS, **more: str) -> str:
    """The query string of a link; defaults are left out.

    Examples
    --------
    >>> to_query({**DEFAULTS, "horizon": "30"}), to_query({**DEFAULTS, "network.name": "ring", "network.n": "5"})
    ('horizon=30', 'network.name=ring&network.n=5')
    """
    known = known_keys({**defaults, **choices})
    # What was emptied is said, too: left out it would come back.
    now = dict.fromkeys((key for key in defaults if key in known), "") | dict(choices)
    said = {key: text for key, text in now.items() if text != defaults.get(key, "")}
    return urlencode({**said, **{key: value for key, value in more.items() if value}}, safe="(),:/")


def to_tables(choices: Mapping[str, str], *, own_names: bool = False) -> dict[str, Any]:
    """The spec that the choices make, as plain values.

    Parameters
    ----------
    choices : mapping from str to str
        The contents of the fields.
    own_names : bool
        Whether files go by the names that users gave them, instead of their paths here.

    Examples
    --------
    >>> to_tables({"horizon": "30", "network.name": "ring", "network.n": "5", "protocols": "irs, fwa(2)"})
    {'horizon': 30, 'network': {'name': 'ring', 'n': 5}, 'sweep': {'protocol': ['irs', 'fwa(2)']}}
    """
    tables = _values(choices, own_names)
    swept = {SEVERAL[key]: named for key in SEVERAL if (named := listed(choices, key))}
    for table in {key.partition(".")[0] for key in FILES if choices.get(key, "").strip()}:
        # A network takes more memory for its bytes than a table does.
        tables[table]["max_bytes"] = min(MAX_UNPACKED, MAX_TEXT) if table == "network" else MAX_UNPACKED
    if "protocol" not in swept:
        raise InputError("protocols must name at least one, such as fwa(4); got none")
    # One protocol is a sweep over one, so that it is written out the same way.
    return {**tables, "sweep": swept}


def listed(choices: Mapping[str, str], key: str) -> list[str]:
    """What a field names that may name several.

    Examples
    --------
    >>> listed({"policies": "ucb(0.5, first_pulls=unknown), klucb+window(9)"}, "policies")
    ['ucb(0.5, first_pulls=unknown)', 'klucb+window(9)']
    """
    return [one for one in split(choices.get(key, "")) if one]


def ttl_of(choices: Mapping[str, str]) -> int | None:
    """The ttl of the first protocol that is given one; None if none is.

    Examples
    --------
    >>> ttl_of({"protocols": "irs, fwa(3)+contested, flooding(2)"}), ttl_of({"protocols": "irs"})
    (3, None)
    """
    return next((one.ttl for one in map(_with_ttl, listed(choices, "protocols")) if one is not None), None)


def with_ttl(choices: Mapping[str, str], ttl: int) -> str:
    """The protocols that are chosen, with another ttl for each that is given one.

    Examples
    --------
    >>> with_ttl({"protocols": "irs, fwa(3)+contested, flooding(2)"}, 5)
    'irs, fwa(5)+contested, flooding(5)'
    """
    named = listed(choices, "protocols")
    found = [(text, _with_ttl(text)) for text in named]
    return ", ".join(text if one is None else notation.write(replace(one, ttl=ttl)) for text, one in found)


def _with_ttl(text: str) -> Any:
    """The protocol that a text describes, if it is given a ttl."""
    try:
        protocol = notation.read(text, DEFAULT_TTL)
    except InputError:
        return None
    return protocol if notation.needs_ttl(type(protocol)) else None


def to_toml(choices: Mapping[str, str], *, own_names: bool = False) -> str:
    """The same spec as TOML."""
    return write(to_tables(choices, own_names=own_names))


def to_python(choices: Mapping[str, str], frontier: Mapping[str, str] | None = None) -> str:
    """Lines of Python that do what the page does, with the same numbers: compare or, with its arguments, a frontier."""
    tables = _values(choices, own_names=True)
    protocols, policies = (", ".join(map(value_text, listed(choices, key))) for key in SEVERAL)
    lines = [
        "import banditmesh as bm",
        "",
        _network(tables),
        *_problem(tables.get("arms", {}), tables.get("horizon", 1000)),
    ]
    settings = [f"policies=[{policies}]" if policies else f"policy={_policy(tables)}"]
    settings += [f"{name}={_as_python(tables[name])}" for name in _RUN if name in tables]
    horizon = tables.get("horizon")
    step = record_every(horizon) if isinstance(horizon, int) and horizon > 0 else 1
    # A frontier chooses its own records.
    settings += [f"record_every={step}"] if step > 1 and frontier is None else []
    settings += _faults(tables.get("faults", {}))
    if frontier is None:
        begin, end = "comparison = bm.compare(", "print(comparison)"
        settings = [f"[{protocols}]", *settings]
    else:
        begin, end = "found = bm.frontier(", "print(found.advice)"
        settings = [*([f"protocols=[{protocols}]"] if protocols else []), *settings]
        settings += [f"{name}={value}" for name, value in frontier.items()]
    return "\n".join([*lines, begin, "    problem,", *(f"    {one}," for one in settings), ")", end, ""])


def record_every(horizon: int) -> int:
    """Every how many rounds the page keeps one, so that no curve is too long to show.

    Examples
    --------
    >>> record_every(MAX_RECORDS), record_every(10 * MAX_RECORDS)
    (1, 10)
    """
    return max(1, -(-horizon // MAX_RECORDS))


def _values(choices: Mapping[str, str], own_names: bool) -> dict[str, Any]:
    """The contents of the fields except for those that name several, as values in tables.

    Policies side by side take the place of the one policy and its memory.
    """
    tables: dict[str, Any] = {}
    replaced = ("policy", "memory") if listed(choices, "policies") else ()
    for key, text in choices.items():
        if text.strip() and key not in SEVERAL and key.partition(".")[0] not in replaced:
            *path, name = key.split(".")
            table = tables
            for one in path:
                table = table.setdefault(one, {})
            table[name] = PurePath(text).name if own_names and key in FILES else _value(key, text.strip())
    return tables


def _value(key: str, text: str) -> Any:
    """What a text says: a word, a truth value, a number, or numbers separated by commas.

    Examples
    --------
    >>> _value("network.n", "007"), _value("network.p", "-.5"), _value("network.sizes", "4, 5"), _value("rules", "1")
    (7, -0.5, [4, 5], '1')
    """
    if key in _WORDS or key.rpartition(".")[2] in _WORDS:
        return text
    if text in ("true", "false"):
        return text == "true"
    items = [one.strip() for one in text.strip("[]").split(",")]
    if not all(_NUMBER.fullmatch(one) for one in items):
        return text
    numbers = [int(one) if _INTEGER.fullmatch(one) else float(one) for one in items]
    return numbers[0] if len(items) == 1 and text == items[0] else numbers


def _as_python(value: Any) -> str:
    return value_text(value) if isinstance(value, str) else repr(value)


def _arguments(table: Mapping[str, Any], but: tuple[str, ...] = ("name",)) -> str:
    return ", ".join(f"{name}={_as_python(value)}" for name, value in table.items() if name not in but)


def _network(tables: Mapping[str, Any]) -> str:
    table = dict(tables["network"])
    name = table.pop("name")
    given = _arguments(table)
    if name in ("file", "trace"):
        reader = "read" if name == "file" else "read_contact_trace"
        made = f"bm.networks.{reader}({given})"
    elif not table and name in ("er", "ba", "sbm", "dynamic-er"):
        made = f'bm.networks.paper("{name}")'
    else:
        if not name.isidentifier():
            raise InputError(f"network.name must be the name of a network, got {name!r}")
        drawn = name in ("er", "ba", "sbm", "watts_strogatz", "random_regular", "random_geometric")
        seed = ", seed=0" if drawn and "seed" not in table else ""
        made = f"bm.networks.{name}({given}{seed})"
    dynamics = tables.get("dynamics", {})
    name = dynamics.get("name", "none")
    if name == "none":
        return f"network = {made}"
    kind: Any = get_part("dynamics", name).make
    return f"network = bm.networks.{kind.__name__}({made}, {_arguments(dynamics)})"


def _problem(arms: Mapping[str, Any], horizon: int) -> list[str]:
    """The lines that make the problem, with arms that change if they do."""
    change = [f"problem = problem.with_change({_as_python(arms['change'])})"] if "change" in arms else []
    return _fixed_problem({key: value for key, value in arms.items() if key != "change"}, horizon) + change


def _fixed_problem(arms: Mapping[str, Any], horizon: int) -> list[str]:
    law = arms.get("law", "gaussian")
    said = {name: _as_python(value) for name, value in arms.items()}
    if law == "data":
        columns = f", columns={said['columns']}" if "columns" in said else ""
        unmatched = f", unmatched={said['unmatched']}" if "unmatched" in said else ""
        if "log" in said:
            rewards = f", law={said['rewards']}" if "rewards" in said else ""
            rewards += f", periods={said['periods']}, horizon={horizon}" if "periods" in said else ""
            who = f"bm.arms.read_catalogue({said['catalogue']}{columns})" if "catalogue" in said else "log"
            made = f"problem = bm.Problem(network, {who}, log{unmatched})"
            return [f"log = bm.arms.read_log({said['log']}{rewards}{columns})", made]
        files = [f"bm.arms.read_{key}({said.get(key, repr(''))}{columns})" for key in ("catalogue", "laws")]
        return [f"problem = bm.Problem(network, {', '.join(files)}{unmatched})"]
    means = arms.get("means", [])
    means = means if isinstance(means, list) else [means]
    n_arms = len(means) or said.get("n_arms", "50")
    drawn = f"bm.Problem.random(network, {n_arms}, {said.get('per_agent', '20')}, seed={said.get('seed', '0')})"
    if law == "gaussian" and not means and arms.get("sigma", 1.0) == 1.0:
        return [f"problem = {drawn}"]
    made = "bm.arms.Bernoulli(mean)" if law == "bernoulli" else f"bm.arms.Gaussian(mean, {said.get('sigma', '1.0')})"
    return [
        f"drawn = {drawn}",
        "sets = [drawn.arm_set(agent).tolist() for agent in range(drawn.n_agents)]",
        f"problem = bm.Problem(network, sets, [{made} for mean in {means or 'drawn.means.tolist()'}])",
    ]


def _policy(tables: Mapping[str, Any]) -> str:
    """The policy with its memory, if it has another one than all policies have."""
    table, memory = tables.get("policy", {}), tables.get("memory", {})
    kind: Any = get_part("policy", table.get("name", "ucb")).make
    given = [_arguments(table)] if len(table) > 1 else []
    if (name := memory.get("name", "default")) not in ("default", "everything"):
        kept: Any = get_part("memory", name).make
        given.append(f"memory=bm.{kept.__name__}({_arguments(memory)})")
    return f"bm.{kind.__name__}({', '.join(given)})"


def _faults(table: Mapping[str, Any]) -> list[str]:
    given = [_arguments(table, but=tuple(FAULT_TABLES))] if set(table) - set(FAULT_TABLES) else []
    given += [
        f"{name}=bm.{kind.__name__}({_arguments(table[name])})" for name, kind in FAULT_TABLES.items() if name in table
    ]
    return [f"faults=bm.Faults({', '.join(given)})"] if given else []
