"""A folder with a node.toml for every agent of a `Problem`, and the mesh that such a folder describes.

DIR/NAME/node.toml    the node of one agent: its neighbours, arms, protocol and policy
DIR/make-keys.sh      the commands that make its keys; nothing secret is written here
"""

from __future__ import annotations

import shlex
from collections.abc import Hashable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Final

import numpy as np

from .. import arms as laws
from .. import checks
from ..errors import InputError
from ..files import atomic
from ..files.regular import read_regular
from ..live.config import NodeConfig, load
from ..live.names import Address
from ..live.statistics import ArmSpec
from ..live.template import protocol_lines
from ..live.transport.identity import KeyFiles, file_name
from ..networks.csr import Links
from ..policies import Policy
from ..problem import Problem
from ..protocols import AnyProtocol
from ..settings.toml_text import value_text as toml
from .seats import arm_spec, node_names

#: The first port for neighbours and the first for programs, on machines without others.
FIRST_PORT: Final = 7700
FIRST_API: Final = 7780
NODE_FILE: Final = "node.toml"
KEYS_FILE: Final = "make-keys.sh"


def read_hosts(path: str | PathLike[str]) -> dict[str, str]:
    r"""The addresses of a file of lines `agent,host:port`; empty lines and those that begin with # are skipped.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "hosts.csv"
    ...     _ = file.write_text("# where nodes run\nberlin,10.0.0.8:7700\n")
    ...     read_hosts(file)
    {'berlin': '10.0.0.8:7700'}
    """
    found: dict[str, str] = {}
    try:
        text = read_regular(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{path} must be text in UTF-8, got other bytes") from None
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, comma, address = (part.strip() for part in line.rpartition(","))
        if not comma or not name:
            raise InputError(f"{path}, line {number}: must be agent,host:port, got {checks.shown(line)}")
        if name in found:
            raise InputError(f"{path}, line {number}: every agent must be there once, got {checks.shown(name)} again")
        found[name] = str(Address.parse(address, f"{path}, line {number}: the address"))
    return found


def addresses(problem: Problem, hosts: Mapping[str, str] | None = None) -> dict[str, Address]:
    """Where the node of every agent listens: by name, on loopback unless hosts are given.

    Raises
    ------
    InputError
        If the problem cannot be deployed, or hosts are not those of its agents.

    Examples
    --------
    >>> import banditmesh as bm
    >>> problem = bm.Problem.random(bm.networks.path(2), n_arms=4, per_agent=2, seed=0)
    >>> {name: str(address) for name, address in addresses(problem).items()}
    {'0': '127.0.0.1:7700', '1': '127.0.0.1:7701'}
    """
    if not isinstance(problem.network, Links):
        raise InputError("nodes are written for a static network, got a dynamic one; take one of its rounds")
    names = node_names("agent", problem.agents)
    if hosts is None:
        if FIRST_PORT + 2 * len(names) > 65535:
            raise InputError(f"loopback has no ports for {len(names)} nodes; say with hosts (--hosts) where they run")
        return {name: Address("127.0.0.1", FIRST_PORT + place) for place, name in enumerate(names)}
    if missing := [name for name in names if name not in hosts]:
        raise InputError(f"hosts (--hosts) must have every agent, got none for {missing[0]!r} ({len(missing)} missing)")
    if unknown := set(hosts) - set(names):
        near = checks.meant(min(unknown), names)
        raise InputError(f"hosts (--hosts) must have agents of the network only, got {min(unknown)!r}{near}")
    found = {name: Address.parse(hosts[name], f"the address of {name}") for name in names}
    if len(set(found.values())) < len(found):
        raise InputError("every agent must have an address of its own in hosts (--hosts), got one twice")
    return found


def write_nodes(
    problem: Problem,
    protocol: AnyProtocol,
    policy: Policy,
    folder: str | PathLike[str],
    *,
    hosts: Mapping[str, str] | None = None,
    mesh: str = "mesh",
) -> list[Path]:
    """Write a node.toml for every agent, and the commands that make their keys.

    Parameters
    ----------
    problem : Problem
        With a static network; its agents, links and arm sets are those of the mesh.
    protocol : AnyProtocol
        One that runs live.
    policy : Policy
        One that runs live.
    folder : str or path
        New or empty.
    hosts : mapping from str to str, optional
        Agent -> host:port; ports of this machine's loopback if not given.
    mesh : str
        The mesh's name.

    Returns
    -------
    list of Path
        One file per agent, in their order, and last the commands.

    Examples
    --------
    >>> import tempfile, banditmesh as bm
    >>> problem = bm.Problem.random(bm.networks.path(3), n_arms=4, per_agent=2, seed=0)
    >>> with tempfile.TemporaryDirectory() as there:
    ...     files = write_nodes(problem, bm.FwA(2), bm.UCB(), there)
    ...     [str(path.relative_to(there)) for path in files], load(files[1]).neighbours[0].address
    (['0/node.toml', '1/node.toml', '2/node.toml', 'make-keys.sh'], '127.0.0.1:7700')
    """
    places = addresses(problem, hosts)
    chosen = protocol_lines(protocol, policy)
    folder = Path(folder)
    if folder.exists() and any(folder.iterdir()):
        raise InputError(f"nodes must be written to a new or empty folder, got {folder}; name another one")
    assert isinstance(problem.network, Links)
    names, arms = list(places), node_names("arm", problem.arms)
    used = {(one.host, one.port) for one in places.values()}
    written = []
    commands = [
        "#!/bin/sh",
        f"# Makes the keys of the mesh {mesh}; keep the folder authority to yourself.",
        "set -e",
        'cd "$(dirname "$0")"',
        f"banditmesh keys init --mesh {shlex.quote(mesh)} --authority authority",
    ]
    for agent, neighbours in enumerate(problem.network.neighbour_lists()):
        name = names[agent]
        place = places[name]
        api = next(port for port in range(FIRST_API, 65536) if (place.host, port) not in used)
        used.add((place.host, api))
        head = {
            "mesh": mesh,
            "node": name,
            "listen": str(
                place if place.is_loopback else Address("::" if ":" in place.host else "0.0.0.0", place.port)
            ),
            "state": "state",
        }
        files = KeyFiles.of("keys", name)
        paths = {"certificate": files.certificate, "key": files.key, "authorities": files.authorities}
        blocks = [
            _lines("", head),
            _lines("[keys]", {key: path.as_posix() for key, path in paths.items()}),
            _lines("[api]", {"listen": f"127.0.0.1:{api}"}),
            chosen.rstrip("\n"),
            *(_arm_lines(arm_spec(problem, arms[arm], arm)) for arm in problem.arm_set(agent).tolist()),
            *(
                _lines("[[neighbours]]", {"name": names[other], "address": str(places[names[other]])})
                for other in neighbours
            ),
        ]
        own = folder / file_name(name)
        own.mkdir(parents=True)
        written.append(own / NODE_FILE)
        _write(written[-1], "\n\n".join(blocks) + "\n")
        out = shlex.quote(f"{file_name(name)}/keys")
        commands.append(f"banditmesh keys issue --authority authority --out {out} -- {shlex.quote(name)}")
    written.append(folder / KEYS_FILE)
    _write(written[-1], "\n".join(commands) + "\n")
    return written


def read_nodes(folder: str | PathLike[str], seed: int = 0) -> tuple[Problem, AnyProtocol, Policy]:
    """The mesh that the node files of a folder describe, with arms' means drawn from a seed.

    Parameters
    ----------
    folder : str or path
        With a folder for each node, as `write_nodes` writes it.
    seed : int
        Draws the means, uniform on [0, 1]: a node.toml says what kind of rewards an arm pays, not how much.

    Raises
    ------
    InputError
        If there are no nodes, if they differ in protocol, policy or arms, or if a link has one end only.

    Examples
    --------
    >>> import tempfile, banditmesh as bm
    >>> problem = bm.Problem.random(bm.networks.path(3), n_arms=4, per_agent=2, seed=0)
    >>> with tempfile.TemporaryDirectory() as there:
    ...     _ = write_nodes(problem, bm.FwA(2), bm.UCB(), there)
    ...     read_nodes(there)[0]
    Problem(3 agents, 2 links, 4 arms, 2 per agent)
    """
    import networkx as nx

    paths = sorted(Path(folder).glob(f"*/{NODE_FILE}"))
    if not paths:
        raise InputError(
            f"{folder} must hold folders with a {NODE_FILE}, got none; frontier --live --deploy writes them"
        )
    nodes: dict[str, NodeConfig] = {}
    for path in paths:
        config = load(path)
        if config.node in nodes:
            raise InputError(f"{path}: every node must have a name of its own, got {config.node!r} again")
        nodes[config.node] = config
    first = next(iter(nodes.values()))
    graph, arms = nx.Graph(), dict[str, ArmSpec]()
    graph.add_nodes_from(nodes)
    for name, config in nodes.items():
        for key in ("mesh", "protocol", "policy"):
            if getattr(config, key) != getattr(first, key):
                raise InputError(f"all nodes of {folder} must have the same {key}, got another one in {name!r}")
        for arm in config.arms:
            if arms.setdefault(arm.name, arm) != arm:
                raise InputError(
                    f"all nodes of {folder} must describe arm {arm.name!r} alike, got another one in {name!r}"
                )
        for other in config.neighbours:
            if other.name not in nodes or name not in {one.name for one in nodes[other.name].neighbours}:
                raise InputError(f"neighbours must name each other, got {other.name!r} in {name!r} only")
            graph.add_edge(name, other.name)
    means = np.random.default_rng([checks.seed(seed), 1]).uniform(0.0, 1.0, size=len(arms))
    paying: dict[Hashable, Any] = {
        arm: _law(spec, float(mean)) for (arm, spec), mean in zip(arms.items(), means, strict=True)
    }
    holding: dict[Hashable, list[str]] = {name: [arm.name for arm in config.arms] for name, config in nodes.items()}
    return Problem(graph, holding, paying), first.protocol, first.policy


def _law(spec: ArmSpec, mean: float) -> Any:
    if spec.law == "bernoulli":
        return laws.Bernoulli(mean)
    return laws.Gaussian(mean, spec.sigma or 1.0)


def _lines(head: str, values: Mapping[str, Any]) -> str:
    return "\n".join([*([head] if head else []), *(f"{key} = {toml(value)}" for key, value in values.items())])


def _arm_lines(spec: ArmSpec) -> str:
    sigma = {} if spec.sigma is None else {"sigma": spec.sigma}
    return _lines("[[arms]]", {"name": spec.name, "law": spec.law, **sigma})


def _write(path: Path, text: str) -> None:
    with atomic.writing(path) as stream:
        stream.write(text.encode())
