"""What is chosen on the page: texts, by the dotted keys of a spec. A spec, a link and lines of Python say the same.

A choice is what stands in a field, as it stands there: `{"network.name": "ring", "network.n": "12", "horizon": "abc"}`.
It is not checked here but as every spec is, so that the page says what the command line says. Empty texts are not said.
A link says what differs from what the fields show at first, and only what has a field: `misfit` says what else it says.
Files that were uploaded are named by `network.path` and the like, as `uploads` names them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, Final
from urllib.parse import urlencode

from .. import checks
from ..errors import InputError
from ..files.contents import MAX_TEXT
from ..protocols.notation import split
from ..rules import RULE_SETS
from ..settings.problems import NAME_KEYS, parts

#: What is chosen at first.
DEFAULTS: Final[dict[str, str]] = {
    "network.name": "er",
    "dynamics.name": "none",
    "arms.law": "gaussian",
    "arms.n_arms": "50",
    "arms.per_agent": "20",
    "arms.seed": "0",
    "policy.name": "ucb",
    "protocols": "fwa(4), flooding(4)",
    "horizon": "1000",
    "replicates": "10",
    "seed": "0",
    "rules": "sound",
}
#: The protocols under which a message of the lab's problem is followed at first.
FOLLOWED: Final = ("flooding(4)", "fwa(4)")
#: Keys that hold words, whatever they look like.
_WORDS: Final = frozenset(
    {"name", "law", "rules", "path", "catalogue", "laws", "log", "rewards", "change", "weights", "kind"}
)
#: Keys that name files, and the most bytes that such a file may hold, unpacked.
FILES: Final = ("network.path", "arms.catalogue", "arms.laws", "arms.log")
MOST_UNPACKED: Final = 64 * 2**20
#: The tables whose keys go by the part that they name, and those of faults.
TABLES: Final = ("network", "dynamics", "arms", "policy")
FAULTS: Final = (
    "faults.loss",
    "faults.delay",
    "faults.jitter",
    "faults.link_cap",
    "faults.outages.down",
    "faults.outages.up",
    "faults.outages.memory",
    "faults.corruption.kind",
    "faults.corruption.probability",
    "faults.corruption.scale",
)
#: Parameters of parts that have no field.
_NO_FIELD: Final = frozenset({"max_bytes", "prior", "fmt", "format", "progress"})
#: The most rounds of a run that are kept.
MOST_RECORDS: Final = 2000
#: What is said of a run besides its protocols.
_RUN: Final = ("horizon", "replicates", "seed", "rules")
_REST: Final = "the fields show the rest of this link"
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,400}")
_NUMBER: Final = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_DYNAMICS: Final = {"edge-markovian": "EdgeMarkovian", "link-failures": "LinkFailures", "churn": "Churn"}


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


def from_query(query: Mapping[str, str], defaults: Mapping[str, str] = DEFAULTS) -> dict[str, str]:
    """The choices of a link: what the fields show at first, with what it says otherwise; see `misfit` for the rest.

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
    """What a link says that has no field, or names nothing: the first such thing, in a line; empty if all of it fits.

    Examples
    --------
    >>> misfit({"policy.alpha": "1"})
    ''
    >>> misfit({"policy.name": "thompson", "policy.alpha": "1"})
    'policy.alpha does not fit thompson, which takes nothing; the fields show the rest of this link'
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
            return f"{checks.shown(key)} is no field of this page{checks.meant(key, known)}; {_REST}"
        name, *others = keys_of(table, choices)
        takes = ", ".join(other.partition(".")[2] for other in others) or "nothing"
        return f"{key} does not fit {choices[name]}, which takes {takes}; {_REST}"
    return ""


def to_query(choices: Mapping[str, str], defaults: Mapping[str, str] = DEFAULTS, **more: str) -> str:
    """The part of a link behind the question mark; what the fields show at first is left out.

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


def to_toml(choices: Mapping[str, str], *, own_names: bool = False) -> str:
    """The spec that the choices make.

    Parameters
    ----------
    choices : mapping from str to str
        What stands in the fields.
    own_names : bool
        Whether files go by the names that their users gave them, instead of where they lie here.

    Examples
    --------
    >>> print(to_toml({"horizon": "30", "network.name": "ring", "network.n": "5", "protocols": "irs, fwa(2)"}))
    horizon = 30
    <BLANKLINE>
    [network]
    name = "ring"
    n = 5
    <BLANKLINE>
    [sweep]
    protocol = ["irs", "fwa(2)"]
    <BLANKLINE>
    """
    tables: dict[str, list[str]] = {}
    for key, text in choices.items():
        if text.strip() == "" or key == "protocols":
            continue
        table, _, name = key.rpartition(".")
        value = PurePath(text).name if own_names and key in FILES else text.strip()
        tables.setdefault(table, []).append(f"{name} = {_as_toml(name, value)}")
    for table in {key.partition(".")[0] for key in FILES if choices.get(key, "").strip()}:
        # A network takes more memory for its bytes than a table does.
        tables[table].append(f"max_bytes = {min(MOST_UNPACKED, MAX_TEXT) if table == 'network' else MOST_UNPACKED}")
    protocols = [one for one in split(choices.get("protocols", "")) if one]
    if not protocols:
        raise InputError("protocols must name at least one, such as fwa(4); got none")
    # One protocol is a sweep over one, so that it is written out the same way.
    tables["sweep"] = [f"protocol = [{', '.join(map(_quoted, protocols))}]"]
    first = tables.pop("", [])
    parts = ["\n".join(first)] + [f"[{table}]\n" + "\n".join(lines) for table, lines in tables.items()]
    return "\n\n".join(part for part in parts if part) + "\n"


def to_python(choices: Mapping[str, str]) -> str:
    """Lines of Python that do what the page does, with the same numbers."""
    tables: dict[str, dict[str, str]] = {}
    for key, text in choices.items():
        if text.strip():
            table, _, name = key.rpartition(".")
            value = PurePath(text).name if key in FILES else text.strip()
            tables.setdefault(table, {})[name] = value
    run = tables[""]
    protocols = ", ".join(_quoted(one) for one in split(run.get("protocols", "")) if one)
    lines = [
        "import banditmesh as bm",
        "",
        _network(tables),
        *_problem(tables.get("arms", {}), run.get("horizon", "1000")),
    ]
    settings = [f"policy={_policy(tables.get('policy', {}))}"]
    settings += [f"{name}={_as_python(name, run[name])}" for name in _RUN if name in run]
    step = record_every(int(run["horizon"])) if run.get("horizon", "").isdecimal() else 1
    settings += [f"record_every={step}"] if step > 1 else []
    settings += _faults(tables)
    lines += ["comparison = bm.compare(", "    problem,", f"    [{protocols}],"]
    return "\n".join([*lines, *(f"    {one}," for one in settings), ")", "print(comparison)", ""])


def record_every(horizon: int) -> int:
    """Of how many rounds the page keeps one, so that no run is too long to be looked at.

    Examples
    --------
    >>> record_every(MOST_RECORDS), record_every(10 * MOST_RECORDS)
    (1, 10)
    """
    return max(1, -(-horizon // MOST_RECORDS))


def _quoted(text: str) -> str:
    r"""A text as specs and Python write it; JSON would write two halves for a sign like 🙂, which neither reads as one.

    Examples
    --------
    >>> print(_quoted("🙂 \x7f\n"))
    "🙂 \u007f\n"
    """
    return json.dumps(text.encode(errors="replace").decode(), ensure_ascii=False).replace("\x7f", r"\u007f")


def _as_toml(name: str, text: str) -> str:
    if name in _WORDS:
        return _quoted(text)
    if text in ("true", "false"):
        return text
    items = [one.strip() for one in text.strip("[]").split(",")]
    if all(_NUMBER.fullmatch(one) for one in items):
        numbers = [_number(one) for one in items]
        return numbers[0] if len(items) == 1 and text == items[0] else f"[{', '.join(numbers)}]"
    return _quoted(text)


def _number(text: str) -> str:
    """A number as specs and Python write it, however somebody typed it.

    Examples
    --------
    >>> _number("007"), _number("+5"), _number("-.5"), _number("1.")
    ('7', '5', '-0.5', '1.0')
    """
    return str(int(text)) if _INTEGER.fullmatch(text) else repr(float(text))


def _arguments(table: Mapping[str, str], but: tuple[str, ...] = ("name",)) -> str:
    return ", ".join(f"{name}={_as_python(name, text)}" for name, text in table.items() if name not in but)


def _as_python(name: str, text: str) -> str:
    written = _as_toml(name, text)
    return {"true": "True", "false": "False"}.get(written, written)


def _network(tables: Mapping[str, Mapping[str, str]]) -> str:
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
    kind = _DYNAMICS.get(dynamics.get("name", "none"))
    return f"network = {made}" if kind is None else f"network = bm.networks.{kind}({made}, {_arguments(dynamics)})"


def _problem(arms: Mapping[str, str], horizon: str) -> list[str]:
    """The lines that make the problem, with arms that change if they do."""
    change = [f"problem = problem.with_change({_quoted(arms['change'])})"] if "change" in arms else []
    return _fixed_problem({key: text for key, text in arms.items() if key != "change"}, horizon) + change


def _fixed_problem(arms: Mapping[str, str], horizon: str) -> list[str]:
    law = arms.get("law", "gaussian")
    if law == "data":
        said = {name: _quoted(text) for name, text in arms.items()}
        columns = f", columns={said['columns']}" if "columns" in said else ""
        unmatched = f", unmatched={said['unmatched']}" if "unmatched" in said else ""
        if "log" in said:
            rewards = f", law={said['rewards']}" if "rewards" in said else ""
            rewards += (
                f", periods={_as_python('periods', arms['periods'])}, horizon={horizon}" if "periods" in said else ""
            )
            who = f"bm.arms.read_catalogue({said['catalogue']}{columns})" if "catalogue" in said else "log"
            made = f"problem = bm.Problem(network, {who}, log{unmatched})"
            return [f"log = bm.arms.read_log({said['log']}{rewards}{columns})", made]
        files = [f"bm.arms.read_{key}({said.get(key, repr(''))}{columns})" for key in ("catalogue", "laws")]
        return [f"problem = bm.Problem(network, {', '.join(files)}{unmatched})"]
    means = f"[{_as_python('means', arms['means']).strip('[]')}]" if "means" in arms else ""
    n_arms = str(means.count(",") + 1) if means else _as_python("n_arms", arms.get("n_arms", "50"))
    per_agent, seed = (_as_python(name, arms.get(name, usual)) for name, usual in (("per_agent", "20"), ("seed", "0")))
    drawn = f"bm.Problem.random(network, {n_arms}, {per_agent}, seed={seed})"
    sigma = _as_python("sigma", arms.get("sigma", "1.0"))
    if law == "gaussian" and not means and sigma in ("1", "1.0"):
        return [f"problem = {drawn}"]
    made = "bm.arms.Bernoulli(mean)" if law == "bernoulli" else f"bm.arms.Gaussian(mean, {sigma})"
    values = means or "drawn.means.tolist()"
    return [
        f"drawn = {drawn}",
        "sets = [drawn.arm_set(agent).tolist() for agent in range(drawn.n_agents)]",
        f"problem = bm.Problem(network, sets, [{made} for mean in {values}])",
    ]


def _policy(table: Mapping[str, str]) -> str:
    from ..settings.parts import find, named

    kind: Any = find(named("policy"), "policy.name", table.get("name", "ucb")).make
    return f"bm.{kind.__name__}({_arguments(table)})"


def _faults(tables: Mapping[str, Mapping[str, str]]) -> list[str]:
    given = [_arguments(tables["faults"])] if "faults" in tables else []
    for name, kind in (("outages", "Outages"), ("corruption", "Corruption")):
        if f"faults.{name}" in tables:
            given.append(f"{name}=bm.{kind}({_arguments(tables[f'faults.{name}'], but=())})")
    return [f"faults=bm.Faults({', '.join(given)})"] if given else []
