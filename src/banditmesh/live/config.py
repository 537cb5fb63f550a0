"""The file that describes a node: node.toml.

Rules kept here: a mistake is one line that names its key, and `check` shows all of them at once. Paths are meant from
the folder of the file. Policies, protocols and emissions are named as in the spec of a study, in tables or written out:
`protocol = "fwa(4)+growth(0.25)"`. What the file does not say has the default that is written here.
"""

from __future__ import annotations

import ipaddress
import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Final, TypeAlias

from msgspec import Struct, field

from .. import checks
from ..errors import ConfigError, FileError, InputError, MissingExtraError
from ..policies import Policy
from ..protocols import AnyProtocol, FwA
from ..protocols.base import MAX_TTL
from ..settings import parts
from .bandits import PLAIN_KEYS as BANDIT_KEYS
from .bandits import BanditSettings, BanditSpec
from .certificates import ACCEPTED, GRACE, REQUIRED
from .disk.decisions import FILE_BYTES, FILES
from .fields import (
    Check,
    address,
    at_least,
    boolean,
    build,
    interval,
    list_of,
    one_of,
    path_in,
    read_toml,
    table,
    tables,
    text,
)
from .forgetting import LEAST_SKEWS, half_life_of
from .http.guard import read_token
from .names import DEFAULT, MAX_OPEN_CHOICES, OPEN_CHOICES, Address, Caps, check_name, parse_epoch
from .statistics import LAWS, ArmSpec, Prior, noise_of
from .template import absorption_note, refuse_live
from .transport.identity import KeyFiles, contexts, expiry_warning

ACCEPT: Final = ("neighbours", "members")
#: The most liars that may be withstood: no node knows the more than two others that each of them takes.
MAX_TRIM: Final = 10_000
LOGS: Final = ("plain", "json")
LEVELS: Final = ("debug", "info", "warning", "error")
#: The keys in no table whose values are as they are written.
_PLAIN_KEYS: Final[dict[str, Check]] = {
    "mesh": check_name,
    "node": check_name,
    "listen": address,
    "accept": one_of(*ACCEPT),
    "max_ttl": at_least(1, MAX_TTL),
    "ticket_lifetime": checks.positive,
    "open_choices": at_least(1, MAX_OPEN_CHOICES),
    "signatures": one_of(REQUIRED, ACCEPTED),
    "signature_grace": checks.positive,
    "decisions_bytes": at_least(1_000),
    "decisions_files": at_least(1, 1_000),
    "renew_before": checks.positive,
    "max_clock_skew": checks.positive,
    "plain": boolean,
    "log": one_of(*LOGS),
    "log_level": one_of(*LEVELS),
}
#: A node that is ignored, or one life of it.
Ignored: TypeAlias = str | tuple[str, int]


class ApiConfig(Struct, frozen=True, kw_only=True):
    """Where the sidecar listens, and who may use it.

    Attributes
    ----------
    listen : str
        An IP address and a port, or "unix:PATH".
    token_file : Path or None
        A file with the token that every request must bring; required unless it listens on loopback or a Unix socket.
    hosts : list of str
        Further names that clients and proxies may call it by.
    """

    listen: str = "127.0.0.1:7780"
    token_file: Path | None = None
    hosts: list[str] = []

    def __post_init__(self) -> None:
        is_local = self.listen.startswith("unix:") or Address.parse(self.listen, "listen").is_loopback
        if self.token_file is None and not is_local:
            raise InputError(
                f"token_file is required where listen is not on loopback, got none with listen = {self.listen!r}; "
                'name a file with a token, or listen on "127.0.0.1:7780"'
            )


class TrustConfig(Struct, frozen=True, kw_only=True):
    """What a node believes of what others tell.

    Attributes
    ----------
    trim : int
        How many origins may lie about their own rewards: what others tell of an arm is tested before it counts; see
        `core/trimming.py`. With 0 all is believed.
    """

    trim: int = 0


class NeighbourConfig(Struct, frozen=True, kw_only=True):
    """A neighbour: its name and, unless only it dials, its address."""

    name: str
    address: str | None = None


class NodeConfig(BanditSettings, Struct, frozen=True, kw_only=True):
    """Everything that a node needs to know before it starts; made by `load` from a node.toml, or by hand.

    Attributes
    ----------
    mesh, node : str
        Who it is.
    arms, policy, memory, explore, patience, lapse_reward, segments, new_arms
        The bandit "default", as in `BanditSpec`; no arms for a node that only relays or has other bandits.
    bandits : list of BanditSpec
        Its other bandits.
    listen : str or None
        Host and port for neighbours; None for a node that only dials.
    state : Path
        The folder of its state.
    protocol : AnyProtocol
        What it relays, and when it sends.
    neighbours : list of NeighbourConfig
        The nodes it links to.
    accept : {"neighbours", "members"}
        Who may link to it: its neighbours alone, or any member of the mesh.
    ignore : list of str and (str, int)
        Nodes, or single lives (name and epoch), of which it wants to know nothing.
    max_ttl : int or None
        The most hops that it grants what others send; the protocol's ttl unless given.
    ticket_lifetime : float
        After how many seconds a ticket lapses.
    open_choices : int
        How many of the last choices can still be settled; older tickets have lapsed.
    decisions : Path or None
        The file in which choices and rewards are logged, a line each; none unless given.
    decisions_bytes, decisions_files : int
        The size beyond which such a file does not grow, and how many full ones are kept.
    renew_command : list of str
        A program and its arguments that give the node a new certificate; see `transport.renewing`.
    renew_before : float or None
        How many seconds before its certificate ends the node renews it; 30 days, or a third of the certificate's
        lifetime if that is less, unless given.
    signatures : {"required", "accepted"}
        Where there are keys: whether statistics of others must be signed by their origins, or are taken without.
    signature_grace : float
        For how many seconds what a certificate signed still counts after its end.
    max_clock_skew : float
        By how many seconds clocks may differ.
    trust : TrustConfig
        What it believes of what others tell.
    plain : bool
        Whether links are plain TCP, without keys: between loopback addresses only.
    keys : KeyFiles or None
        The files by which it proves who it is; required unless `plain`.
    api : ApiConfig
        The sidecar.
    caps : Caps
        The most that it keeps.
    log : {"plain", "json"}
        How a line of the log looks.
    log_level : {"debug", "info", "warning", "error"}
        The least level that is logged.

    Examples
    --------
    >>> config = NodeConfig(mesh="shop", node="a", arms=[ArmSpec("red"), ArmSpec("blue")], plain=True)
    >>> config.protocol, config.accept
    (FloodingWithAbsorption(ttl=4, emission=EveryPull()), 'neighbours')
    """

    mesh: str
    node: str
    bandits: list[BanditSpec] = []
    listen: str | None = None
    state: Path = Path("state")
    protocol: AnyProtocol = field(default_factory=lambda: FwA(4))
    neighbours: list[NeighbourConfig] = []
    accept: str = "neighbours"
    ignore: list[Ignored] = []
    max_ttl: int | None = None
    ticket_lifetime: float = 86400.0
    open_choices: int = OPEN_CHOICES
    signatures: str = REQUIRED
    signature_grace: float = GRACE
    decisions: Path | None = None
    decisions_bytes: int = FILE_BYTES
    decisions_files: int = FILES
    renew_command: list[str] = []
    renew_before: float | None = None
    max_clock_skew: float = 60.0
    plain: bool = False
    keys: KeyFiles | None = None
    api: ApiConfig = field(default_factory=ApiConfig)
    trust: TrustConfig = field(default_factory=TrustConfig)
    caps: Caps = field(default_factory=Caps)
    log: str = "plain"
    log_level: str = "info"

    def __post_init__(self) -> None:
        problems = self._problems()
        if problems:
            raise ConfigError(*problems)

    def bandit_specs(self) -> list[BanditSpec]:
        """All bandits, the default one first."""
        default = {key: getattr(self, key) for key in BanditSettings.__struct_fields__}
        return [BanditSpec(name=DEFAULT, **default), *self.bandits]

    def _problems(self) -> list[str]:
        """What is wrong with single values, which may have been given by hand, and with several of them together."""
        found: list[str] = []
        for key, check in _PLAIN_KEYS.items():
            value = getattr(self, key)
            if value is not None or key in ("mesh", "node"):
                try:
                    check(key, value)
                except InputError as error:
                    found.append(str(error))
        if found:
            return found
        names = Counter(neighbour.name for neighbour in self.neighbours)
        twice = [name for name, n_times in names.items() if n_times > 1]
        found += [f"[[neighbours]]: names must differ, got {name!r} more than once" for name in twice]
        found += [*self._bandit_problems(), *self._trust_problems()]
        if len(self.neighbours) > self.caps.links:
            found.append(f"[[neighbours]]: at most caps.links = {self.caps.links} are allowed, got more")
        if self.node in [neighbour.name for neighbour in self.neighbours]:
            found.append(f"[[neighbours]]: a node is no neighbour of itself, got {self.node!r}")
        if self.keys is None and not self.plain:
            found.append("[keys] is required, got none; `banditmesh keys issue` makes them, or set plain = true to try")
        found += self._plain_problems() if self.plain else []
        for spec in self.bandit_specs():
            half_life = half_life_of(spec.memory)
            if half_life is not None and half_life < LEAST_SKEWS * self.max_clock_skew:
                found.append(
                    f"half_life of bandit {spec.name!r} must be at least {LEAST_SKEWS:g} times max_clock_skew = "
                    f"{self.max_clock_skew:g} s, got {half_life:g} s"
                )
        if self.keys is None and self.renew_command:
            found.append("renew_command needs [keys], got none: without a certificate there is nothing to renew")
        if self.renew_before is not None and not self.renew_command:
            found.append('renew_before needs a renew_command, got none; give one, such as ["sh", "renew.sh"]')
        return found

    def _bandit_problems(self) -> list[str]:
        """What is wrong with the bandits, each for itself and together."""
        found: list[str] = []
        n_arms = len(self.arms) + sum(len(bandit.arms) for bandit in self.bandits)
        if n_arms > self.caps.arms:
            found.append(f"[[arms]]: at most caps.arms = {self.caps.arms} are allowed, got {n_arms}")
        for name, n_times in Counter([DEFAULT, *(bandit.name for bandit in self.bandits)]).items():
            if n_times > 1:
                hint = "; its keys are those in no table" if name == DEFAULT else ""
                found.append(f"[[bandits]]: names must differ, got {name!r} more than once{hint}")
        for spec in self.bandit_specs():
            begin = "" if spec.name == DEFAULT else f"[[bandits]] {spec.name}: "
            found += [f"{begin}{problem}" for problem in spec.problems(spec.name)]
            try:
                refuse_live(self.protocol, spec.policy)
            except InputError as error:
                found.append(f"{begin}{error}")
        if self.bandits and not self.arms and not self.new_arms:
            unused = [key for key in BanditSettings.__struct_fields__ if getattr(self, key) != getattr(_UNTOLD, key)]
            found += [
                f"{key} is of the bandit {DEFAULT!r}, which has no arms; put it into [[bandits]]" for key in unused
            ]
        return found

    def _trust_problems(self) -> Iterator[str]:
        """Arms of which no test can be made."""
        if not self.trust.trim:
            return
        for spec in self.bandit_specs():
            for arm in spec.arms:
                try:
                    noise_of(arm)
                except InputError as error:
                    yield f"{'' if spec.name == DEFAULT else f'[[bandits]] {spec.name}: '}{error}"

    def _plain_problems(self) -> list[str]:
        addresses = {"listen": self.listen}
        for place, neighbour in enumerate(self.neighbours, start=1):
            addresses[f"[[neighbours]] {place}: address"] = neighbour.address
        return [
            f"{key} must be on loopback, such as 127.0.0.1:7700, where plain = true, got {value!r}; use [keys] instead"
            for key, value in addresses.items()
            if value is not None and not Address.parse(value).is_loopback
        ]


_UNTOLD: Final = BanditSettings(arms=[])


def load(path: str | PathLike[str]) -> NodeConfig:
    """Read a node.toml.

    Raises
    ------
    ConfigError
        With all problems of the file; the message is the first one.
    """
    path = Path(path)
    raw = read_toml(path)
    if "bandits" in raw:
        raw.setdefault("arms", [])
    raw.setdefault("state", "state")  # so that the default, too, is meant from the folder of the file
    emission = raw.pop("emission", None)
    if emission is not None:
        raw.setdefault("protocol", None)
    try:
        config: NodeConfig = build(NodeConfig, _keys(path.parent, emission), raw)
    except ConfigError as error:
        raise ConfigError(*(f"{path}: {problem}" for problem in error.problems)) from None
    return config


def check(path: str | PathLike[str]) -> list[str]:
    """All problems of a node.toml and of the files that it names, a line each; none if a node could start."""
    try:
        config = load(path)
    except ConfigError as error:
        return [*error.problems]
    return [f"{path}: {problem}" for problem in file_problems(config)]


def warnings(path: str | PathLike[str]) -> list[str]:
    """What an operator should know of a node.toml in which nothing is wrong, a line each."""
    return [f"{path}: {warning}" for warning in file_warnings(load(path))]


def notes(configs: Sequence[NodeConfig]) -> list[str]:
    """What is easily overlooked in configurations with which nodes can start, a line each.

    Parameters
    ----------
    configs : sequence of NodeConfig
        Of one node, or of several of a mesh: then it is known whether they have the same arms.
    """
    found: dict[str, None] = {}
    choosing = [config for config in configs if config.arms]
    arms = {frozenset(arm.name for arm in config.arms) for config in choosing}
    for config in choosing:
        for spec in config.bandit_specs():
            half_life = half_life_of(spec.memory)
            if spec.arms and half_life is not None and config.ticket_lifetime >= half_life:
                found[
                    f"bandit {spec.name!r}: ticket_lifetime = {config.ticket_lifetime:g} s should be below half_life = "
                    f"{half_life:g} s, or rewards come when their choices count for little"
                ] = None
            if config.trust.trim and spec.new_arms and not spec.arms:
                found[
                    f"bandit {spec.name!r}: new_arms makes arms like the first one, and where trust.trim is above 0 "
                    "each needs a sigma or a reward_range; give it one arm, or choices among new ones are refused"
                ] = None
            if spec.arms and spec.lapse_reward is None:
                found[
                    f"bandit {spec.name!r}: a choice without a reward counts as nothing; if no reward means that "
                    "nothing was paid, as with clicks, means come out too high: report a 0, or set lapse_reward"
                ] = None
    for config in configs:
        if config.keys is not None:
            n_full, share = config.caps.entries // config.caps.entries_per_origin, config.caps.entries_per_origin
            found[
                f"caps.entries = {config.caps.entries} has room for {n_full} members that fill their share "
                f"(caps.entries_per_origin = {share}); with more of them, raise it or lower the share"
            ] = None
        if config.trust.trim and len(configs) > 1 and len(configs) - 1 <= 2 * config.trust.trim:
            found[
                f"trust.trim = {config.trust.trim} needs more than {2 * config.trust.trim} other nodes to find an "
                f"honest majority among; with {len(configs) - 1}, each goes by its own mean"
            ] = None
    if len(arms) == 1:
        start = "all of these nodes have the same arms; " if len(choosing) > 1 else ""
        for config in choosing:
            note = absorption_note(config.protocol)
            if note is not None:
                found[f"protocol: {start}{note}"] = None
    return list(found)


def _keys(folder: Path, emission: object) -> dict[str, Check]:
    """The checks of all keys, table by table."""
    path = path_in(folder)
    arm = {
        "name": check_name,
        "law": one_of(*LAWS),
        "sigma": checks.positive,
        "reward_range": interval,
        "prior": table(Prior, {"count": checks.positive, "mean": checks.real}),
    }
    bandit = {"arms": tables(ArmSpec, arm), "policy": _policy, **BANDIT_KEYS}
    return {
        **_PLAIN_KEYS,
        **bandit,
        "bandits": tables(BanditSpec, {"name": check_name, **bandit}),
        "state": path,
        "decisions": path,
        "renew_command": list_of(text),
        "ignore": list_of(_ignored),
        "protocol": partial(_protocol, emission),
        "neighbours": tables(NeighbourConfig, {"name": check_name, "address": address}),
        "keys": table(KeyFiles, {"certificate": path, "key": path, "authorities": path}),
        "api": table(ApiConfig, {"listen": partial(_api_address, path), "token_file": path, "hosts": list_of(text)}),
        "trust": table(TrustConfig, {"trim": at_least(0, MAX_TRIM)}),
        "caps": table(Caps, dict.fromkeys(Caps.__struct_fields__, at_least(1))),
    }


def _ignored(key: str, value: Any) -> Ignored:
    if isinstance(value, list):
        if len(value) != 2:
            raise InputError(f'{key} must be "name" or ["name", "epoch"], got {checks.shown(value)}')
        try:
            return check_name(key, value[0]), parse_epoch(value[1])
        except InputError as error:
            raise InputError(f"{key}: {error}") from None
    return check_name(key, value)


def _api_address(path: Check, key: str, value: Any) -> str:
    if isinstance(value, str) and value.startswith("unix:"):
        return f"unix:{path(key, value.removeprefix('unix:'))}"
    try:
        ipaddress.ip_address(Address.parse(value, key).host)
    except ValueError:
        raise InputError(f'{key} must be an IP address and a port, or "unix:PATH", got {checks.shown(value)}') from None
    return address(key, value)


def _policy(key: str, raw: Any) -> Policy:
    policy: Policy = _build(key, _tables(key, raw))
    return policy


def _protocol(emission: object, key: str, raw: Any) -> AnyProtocol:
    """The protocol, with the emission that is written out with it or has its own table."""
    if raw is None:
        raise ConfigError("[emission]: a [protocol] is required with it, got none")
    tables = _tables("protocol", raw)
    if emission is not None and "emission" in tables:
        raise ConfigError(f"[protocol]: give the emission with it or as [emission], got both: {checks.shown(raw)}")
    tables |= _tables("emission", emission) if emission is not None else {}
    problems: list[str] = []
    built: dict[str, Any] = {}
    for name, given in tables.items():
        try:
            built[name] = _build(name, {name: given})
        except ConfigError as error:
            problems += error.problems
    if problems:
        raise ConfigError(*problems)
    protocol: AnyProtocol = built["protocol"]
    try:
        return protocol if built.get("emission") is None else protocol.with_emission(built["emission"])
    except InputError as error:
        raise ConfigError(f"[emission]: {error}") from None


def _tables(table: str, raw: Any) -> dict[str, Any]:
    try:
        return parts.tables_of(table, raw)
    except InputError as error:
        raise ConfigError(_worded(error)) from None


def _build(table: str, tables: dict[str, Any]) -> Any:
    """What a table names, which is one of the package's parts: a node runs no code of the user's own."""
    try:
        part, given = parts.part_of(table, tables[table], own_too=False)
        unknown = [part.unknown(table, key) for key in given if key not in part.parameters]
        if unknown:
            raise ConfigError(*map(_worded, unknown))
        return parts.build(table, tables)
    except ConfigError:
        raise
    except InputError as error:
        raise ConfigError(_worded(error)) from None


def _worded(error: InputError) -> str:
    """An error about a key of a table as this file's readers know it: `[policy]: alpha must be ...`."""
    table, _, key = error.key.partition(".")
    remedy = f"; {error.remedy}" if error.remedy else ""
    return f"[{table}]: {key}{' ' if key else ''}{error.what}{remedy}"


def file_problems(config: NodeConfig) -> list[str]:
    """What is wrong with the files that a configuration names, a line each."""
    found = [*_state(config.state), *_decisions(config.decisions)]
    if config.api.token_file is not None:
        found += _token(config.api.token_file)
    if config.keys is not None:
        found += [*_unreadable(config.keys)] or _certificate(config, config.keys)
    return found


def file_warnings(config: NodeConfig, now: float | None = None) -> list[str]:
    """What will keep neighbours away, now or soon, from a node that can start; `now` is in seconds since 1970."""
    if config.keys is None:
        return []
    try:
        warning = expiry_warning(contexts(config.keys).own, time.time() if now is None else now)
    except (FileError, MissingExtraError):  # a problem, which `check` shows, or no extra to read it with
        return []
    return [] if warning is None else [f"[keys]: {warning}"]


def _state(folder: Path) -> Iterator[str]:
    """A folder that is there, or can be made, and can be written to."""
    there = folder
    while not there.exists() and there != there.parent:
        there = there.parent
    if not there.is_dir():
        yield f"state must be a folder, got {folder}, where {there} is a file"
    elif not os.access(there, os.W_OK | os.X_OK):
        yield f"state must be a folder that can be written to, got {folder}"


def _decisions(path: Path | None) -> Iterator[str]:
    """A file that can be written to, or a folder for it."""
    if path is None:
        return
    if not path.parent.is_dir() or path.is_dir():
        yield f"decisions must be a file in a folder that exists, got {path}"
    elif not os.access(path if path.exists() else path.parent, os.W_OK):
        yield f"decisions must be a file that can be written to, got {path}"


def _token(path: Path) -> list[str]:
    try:
        read_token(path)
    except FileError as error:
        return [f"[api]: {error}"]
    return []


def _unreadable(keys: KeyFiles) -> Iterator[str]:
    for key, path in keys._asdict().items():
        try:
            path.open("rb").close()
        except OSError as error:
            yield f"[keys]: {key} must be a file that can be read, got {path}: {error.strerror or error}"


def _certificate(config: NodeConfig, keys: KeyFiles) -> list[str]:
    """What is wrong with the certificate; nothing where the extra that can read it is absent."""
    try:
        own = contexts(keys).own
    except FileError as error:
        return [f"[keys]: {error}"]
    except MissingExtraError:
        return []
    if (own.mesh, own.node) == (config.mesh, config.node):
        return []
    return [
        f"[keys]: certificate must be that of node {config.node!r} of mesh {config.mesh!r}, "
        f"got one of node {own.node!r} of mesh {own.mesh!r}"
    ]
