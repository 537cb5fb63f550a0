"""Every mistake of a caller gets one clear line: what was required, what came, and what to do."""

import re
import shutil

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
import scipy.stats

import banditmesh as bm
from banditmesh import plots
from banditmesh.comparisons.kept import Kept
from banditmesh.errors import ArmError, FileError, InputError, NetworkError

LAW = bm.arms.Bernoulli(0.5)
PATH = nx.path_graph(3)
SETS = [[0], [0, 1], [1]]
PROBLEM = bm.Problem(PATH, SETS, [LAW, LAW])
SEQUENCE = bm.Problem(bm.networks.GraphSequence([PATH] * 4), SETS, [LAW, LAW])
TAPE = np.zeros((5, 3, 2))


def tape_with(value, place):
    tape = TAPE.copy()
    tape[place] = value
    return tape


def refuses(error, message, call):
    """The call raises the error, its message has the text and is one line, and it is a ValueError to old hands."""
    with pytest.raises(error, match=re.escape(message)) as caught:
        call()
    assert isinstance(caught.value, InputError | ValueError)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "arm_sets, arms, message",
    [
        ([[0], [0, 2], [1]], [LAW, LAW], "the arm set of agent 1 must hold known arms, got 2; give its law in arms"),
        ([[0], [[0]], [1]], [LAW, LAW], "the arm set of agent 1 must hold known arms, got [0]"),
        ([[0], [(0, [])], [1]], [LAW, LAW], "the arm set of agent 1 must hold known arms, got (0, [])"),
        ([[0], [0, 1, 0], [1]], [LAW, LAW], "the arm set of agent 1 must hold an arm once, got 0 more than once"),
        ([iter([1, 1]), [0], [1]], [LAW, LAW], "the arm set of agent 0 must hold an arm once, got 1 more than once"),
        ([[0], [], [1]], [LAW, LAW], "the arm set of agent 1 must hold at least one arm, got an empty one"),
        ([[0], [0], [0]], [LAW, LAW], "every arm needs an agent that has it, got none for arm 1; remove the arm"),
        ([[0], [1]], [LAW, LAW], "arm_sets must have one entry for each of the 3 agents, got 2 entries"),
        ([[0]] * 4, [LAW], "arm_sets must have one entry for each of the 3 agents, got 4 entries"),
        (["0", [0], [0]], [LAW], "the arm set of agent 0 must be a list of arms, got '0'"),
        ([0, 0, 0], [LAW], "the arm set of agent 0 must be a list of arms, got 0"),
        ("abc", [LAW], "arm_sets must be a sequence or a mapping, got str; read a file with arms.read_catalogue"),
        (None, [LAW], "arm_sets must be a sequence or a mapping, got NoneType"),
        ({0: [0], 1: [0]}, [LAW], "arm_sets must give every agent its arms, got none for agent 2"),
        ({0: [0], 1: [0], 2: [0], 7: [0]}, [LAW], "arm_sets must name agents of the network, got 7"),
        (SETS, [], "arms must hold at least one law, got none"),
        (SETS, {}, "arms must hold at least one law, got none"),
        (SETS, 3, "arms must be a sequence of laws or a mapping from arm to law, got int"),
        (SETS, "ab", "a mapping from arm to law, got str; read a file with arms.read_laws"),
        (SETS, [LAW, 0.5], "an arm must be a law of banditmesh.arms or a frozen scipy.stats law, got 0.5"),
        (SETS, [LAW, scipy.stats.cauchy()], "a law needs a finite mean"),
        (np.zeros((2, 1), dtype=int), [LAW], "an arm_sets array must be of integers with shape (3, arms per agent)"),
        (np.zeros((3, 1)), [LAW], "got float64 with shape (3, 1)"),
        (np.zeros((3, 0), dtype=int), [LAW], "the arm set of every agent must hold at least one arm"),
        (np.array([[0], [1], [0]]), [LAW], "the arm set of agent 1 must hold known arms, got 1"),
        (np.array([[0], [-1], [0]]), [LAW], "the arm set of agent 1 must hold known arms, got -1"),
        (np.array([[0, 1], [1, 1], [0, 1]]), [LAW] * 2, "the arm set of agent 1 must hold an arm once, got 1"),
        (np.zeros((3, 1), dtype=int), {"a": LAW}, "an arm_sets array needs arms 0 to K-1, got named arms"),
    ],
)
def test_bad_arms_are_refused(arm_sets, arms, message):
    refuses(ArmError, message, lambda: bm.Problem(PATH, arm_sets, arms))


@pytest.mark.parametrize(
    "network, message",
    [
        (nx.Graph([(0, 1), (1, 1)]), "network must have no self-loops, got a link from 1 to itself"),
        (nx.MultiGraph([(0, 1), (0, 1)]), "network must have single links, got a MultiGraph"),
        (nx.DiGraph([(0, 1)]), "network must be undirected, got a DiGraph; convert it with graph.to_undirected()"),
        (nx.Graph([(0, 1, {"weight": 2.5})]), "network must be unweighted, got weight 2.5 on the edge (0, 1)"),
        (nx.Graph(), "network must have at least one agent, got a graph without nodes"),
        (scipy.sparse.csr_array([[0, 1], [0, 0]]), "an adjacency matrix must be symmetric"),
        (scipy.sparse.csr_array([[0, 2], [2, 0]]), "an adjacency matrix must have entries 0 and 1, got 2 at (0, 1)"),
        (scipy.sparse.csr_array([[1, 1], [1, 0]]), "network must have no self-loops, got a link from 0 to itself"),
        (scipy.sparse.csr_array([[0, 1, 0], [1, 0, 0]]), "an adjacency matrix must be square, got shape (2, 3)"),
        ([[0, 1]], "network as an edge list must hold tuples of two agents, got [0, 1]"),
        ("ring:12", "got 'ring:12', and there is no such file; make it with networks.from_text('ring:12')"),
        (None, "network must be a networkx.Graph, a scipy sparse matrix or an edge list, got NoneType"),
    ],
)
def test_bad_networks_are_refused(network, message):
    refuses(NetworkError, message, lambda: bm.Problem(network, [[0], [0]], [LAW]))


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: bm.Flooding(0), "ttl must be an integer of at least 1 and at most 32768, got 0"),
        (lambda: bm.Flooding(-2), "ttl must be an integer of at least 1 and at most 32768, got -2"),
        (lambda: bm.FwA(2.0), "ttl must be an integer of at least 1 and at most 32768, got 2.0"),
        (lambda: bm.FwA("4"), "ttl must be an integer of at least 1 and at most 32768, got '4'"),
        (lambda: bm.Gossip(True), "ttl must be an integer of at least 1 and at most 32768, got True"),
        (lambda: bm.Gossip(None), "ttl must be an integer of at least 1 and at most 32768, got None"),
        (lambda: bm.Gossip(4, fanout=0), "fanout must be an integer of at least 1 and at most 65535, got 0"),
        (lambda: bm.Gossip(4, fanout=1.5), "fanout must be an integer of at least 1 and at most 65535, got 1.5"),
        (lambda: bm.ProbabilisticFlooding(4, stop=1.1), "stop must be a probability between 0 and 1, got 1.1"),
        (lambda: bm.ProbabilisticFlooding(4, stop=-0.1), "stop must be a probability between 0 and 1, got -0.1"),
        (lambda: bm.ProbabilisticFlooding(4, stop=np.nan), "stop must be a probability between 0 and 1, got nan"),
        (lambda: bm.ProbabilisticFlooding(4, stop="x"), "stop must be a probability between 0 and 1, got 'x'"),
        (lambda: bm.IRS(2), "ttl must be 1 for InstantRewardSharing, got 2; use Flooding(2) for more hops"),
        (lambda: bm.Flooding(4, emission="all"), "emission must be an emission such as EveryPull(), got 'all'"),
        (lambda: bm.UCB(0.0), "alpha must be a positive number, got 0.0"),
        (lambda: bm.UCB(-1), "alpha must be a positive number, got -1"),
        (lambda: bm.UCB(np.inf), "alpha must be a positive number, got inf"),
        (lambda: bm.UCB(np.nan), "alpha must be a positive number, got nan"),
        (lambda: bm.UCB(10**400), "alpha must be a positive number, got an integer of about 400 digits"),
        (lambda: bm.UCB(-(10**5000)), "alpha must be a positive number, got an integer of about 5000 digits"),
        (lambda: bm.UCB(np.zeros((3, 3))), "alpha must be a positive number, got array([[0., 0., 0.], [0., 0., 0.]"),
        (lambda: bm.Flooding(10**5000), "at most 32768, got an integer of about 5000 digits"),
        (
            lambda: bm.ProbabilisticFlooding(4, stop=10**400),
            "stop must be a probability between 0 and 1, got an integer of about 400 digits",
        ),
        (lambda: bm.NoCooperation(emission=5), "emission must be an emission such as EveryPull(), got 5"),
        (lambda: bm.Centralised(emission=5), "emission must be an emission such as EveryPull(), got 5"),
        (lambda: bm.Centralised(emission=bm.Growth()), "'centralised' takes no emission, since all agents hear every"),
        (
            lambda: bm.Problem(PATH, np.ma.masked_array([[0]] * 3), [LAW]),
            "arm_sets must be an array without a mask, got a masked one; fill it",
        ),
        (lambda: bm.UCB(1j), "alpha must be a positive number, got 1j"),
        (lambda: bm.UCB(np.ma.masked), "alpha must be a positive number, got masked"),
        (lambda: bm.arms.Empirical(np.ma.masked_array([1.0, 2.0], mask=[0, 1])), "must be a finite number, got masked"),
        (lambda: bm.arms.Empirical(np.array([1j])), "every entry of sample must be a finite number, got np.complex128"),
        (lambda: bm.theory.weighted_cover(PATH, np.ma.masked_array([0.1] * 3)), "gaps must be an array without a mask"),
        (lambda: bm.UCB("3"), "alpha must be a positive number, got '3'"),
        (lambda: bm.networks.EdgeMarkovian(PATH, 1.5, 0.1), "p must be a probability between 0 and 1, got 1.5"),
        (lambda: bm.networks.LinkFailures(PATH, -1), "failure must be a probability between 0 and 1, got -1"),
        (lambda: bm.Problem.paper("erdos"), "the paper's network must be one of er, ba, sbm, dynamic-er; got 'erdos'"),
        (lambda: bm.Problem.random(PATH, 0, 1), "n_arms must be an integer of at least 1, got 0"),
        (lambda: bm.Problem.random(PATH, 3, 4), "per_agent must be at most n_arms = 3, got 4"),
        (lambda: bm.Problem.random(PATH, 9, 2), "n_agents * per_agent must be at least n_arms = 9"),
        (lambda: bm.Problem.random(PATH, 2, 1, seed=-1), "seed must be an integer of at least 0, got -1"),
    ],
)
def test_bad_parameters_are_refused(make, message):
    refuses(InputError, message, make)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"problem": PATH}, "problem must be a Problem, got Graph"),
        ({"protocol": "fwa"}, "fwa needs a ttl, got none; write fwa(4)"),
        ({"protocol": bm.FwA}, 'protocol must be a protocol such as FwA(4) or "fwa(4)", got <class'),
        ({"horizon": 0}, "horizon must be an integer of at least 1 and at most 2147483647, got 0"),
        ({"horizon": 5.0}, "horizon must be an integer of at least 1 and at most 2147483647, got 5.0"),
        ({"horizon": 2**31}, "horizon must be an integer of at least 1 and at most 2147483647, got 2147483648"),
        ({"replicates": 0}, "replicates must be an integer of at least 1, got 0"),
        ({"replicates": "2"}, "replicates must be an integer of at least 1, got '2'"),
        ({"seed": -1}, "seed must be an integer of at least 0, got -1"),
        ({"seed": 0.5}, "seed must be an integer of at least 0, got 0.5"),
        ({"rules": "fair"}, "rules must be one of sound, published; got 'fair'"),
        ({"rules": None}, "rules must be one of sound, published; got None"),
        ({"engine": "fast"}, "engine must be one of auto, reference, compiled; got 'fast'"),
        ({"policy": 3}, "policy must be a policy such as UCB(), or one for each agent, got 3"),
        ({"policy": bm.UCB}, "policy must be a policy such as UCB(), or one for each agent, got <class"),
        ({"policy": [bm.UCB(), 3, bm.UCB()]}, "policy must be a policy such as UCB(), or one for each agent, got ["),
        ({"policy": [bm.UCB()] * 2}, "policy must be one policy, or one for each of 3 agents, got 2"),
        ({"every": 0}, "every must be an integer of at least 1 and at most 4294967295, got 0"),
        ({"every": [1, 2]}, "every must be one number, or one for each of 3 agents, got 2"),
        ({"every": [1, 2, 0]}, "every must be an integer of at least 1 and at most 4294967295, got 0"),
        ({"every": [1, 2, 1.5]}, "every must be an integer of at least 1 and at most 4294967295, got 1.5"),
        ({"record_every": 0}, "record_every must be an integer of at least 1, got 0"),
        ({"progress": 3}, "progress must be True, False or a callable, got 3"),
        ({"watch": 3}, "watch must be a callable or None, got 3"),
        ({"rewards": np.zeros((4, 3, 2))}, "rewards must have the shape (horizon, agents, arms) = (5, 3, 2)"),
        ({"rewards": np.zeros((5, 2, 3))}, "rewards must have the shape (horizon, agents, arms) = (5, 3, 2)"),
        ({"rewards": np.zeros((2, 5, 3, 2))}, "or (1, 5, 3, 2) with one tape per replicate, got (2, 5, 3, 2)"),
        ({"rewards": 1.0}, "rewards must have the shape (horizon, agents, arms) = (5, 3, 2)"),
        ({"rewards": "tape"}, "rewards must be an array of real numbers, got <U4; convert it"),
        ({"rewards": [[1.0], [1.0, 2.0]]}, "rewards must be an array of real numbers, got [[1.0], [1.0, 2.0]]"),
        ({"rewards": TAPE + 0j}, "rewards must be an array of real numbers, got complex128; take its real part"),
        ({"rewards": TAPE.astype(str)}, "rewards must be an array of real numbers, got <U32; convert it"),
        ({"rewards": TAPE.astype(object)}, "rewards must be an array of real numbers, got object; convert it"),
        ({"rewards": TAPE.astype("m8[s]")}, "rewards must be an array of real numbers, got timedelta64[s]; convert it"),
        ({"rewards": np.ma.masked_array(TAPE)}, "rewards must be an array without a mask, got a masked one; fill it"),
        ({"rewards": [np.ma.masked_array(row) for row in TAPE]}, "rewards must be an array without a mask"),
        ({"rewards": [[[0.0, np.ma.masked]] * 3] * 5}, "rewards must be an array without a mask"),
        ({"rewards": TAPE, "means": np.ma.masked_array([0.0, 1.0])}, "means must be an array without a mask"),
        ({"rewards": TAPE, "means": [0.0, 1j]}, "means must be an array of real numbers, got complex128"),
        ({"rewards": TAPE, "means": [0.0, None]}, "means must be an array of real numbers, got object"),
        ({"rewards": TAPE, "means": [0.0, np.nan]}, "means must be numbers between -1e+100 and 1e+100, got nan"),
        ({"rewards": TAPE, "means": [0.0] * 3}, "means must have the shape (arms,) = (2,) or (horizon, arms) = (5, 2)"),
        ({"means": [0.0, 1.0]}, "means go with rewards, got no rewards; leave them out"),
        ({"every": np.ma.masked_array([1, 1, 1], mask=[0, 1, 0])}, "every must be an integer of at least 1"),
        ({"every": [1, 1 + 0j, 1]}, "every must be an integer of at least 1"),
        (
            {"rewards": tape_with(np.nan, (2, 1, 0))},
            "rewards must be numbers between -1e+100 and 1e+100 wherever an agent has the arm, got nan in round 3 for "
            "agent 1 and arm 0",
        ),
        ({"rewards": tape_with(np.inf, (0, 0, 0))}, "got inf in round 1 for agent 0 and arm 0"),
        (
            {"problem": SEQUENCE},
            "the network must last for all 5 rounds, got 4; give more rounds or shorten the horizon",
        ),
    ],
)
def test_bad_settings_of_a_simulation_are_refused(changes, message):
    settings = {"problem": PROBLEM, "protocol": bm.FwA(2), "horizon": 5, "seed": 0, **changes}
    refuses(InputError, message, lambda: bm.simulate(**settings))


def test_network_that_lasts_just_long_enough_is_taken():
    assert bm.simulate(SEQUENCE, bm.FwA(2), horizon=4, seed=0).horizon == 4


@pytest.mark.parametrize(
    "protocols, message",
    [
        ([], "protocols must hold at least one protocol, got none"),
        ([bm.FwA(2), bm.IRS(), bm.FwA(2)], "protocols must differ from each other, got the same one twice"),
    ],
)
def test_bad_comparisons_are_refused(protocols, message):
    refuses(InputError, message, lambda: bm.compare(PROBLEM, protocols, horizon=2))


@pytest.mark.parametrize(
    "content, message",
    [
        ("0 1\n1 2 3 4\n", "line 2: an edge list has two agents on a line, got 4 entries"),
        ("0 1\n\n2 2\n", "line 3: network must have no self-loops, got a link from '2' to itself"),
        ("0 1 0.5\n", "line 1: network must be unweighted, got the weight '0.5'"),
        ("", "must describe a network, got an empty file"),
    ],
)
def test_malformed_network_file_is_refused_with_its_line(tmp_path, content, message):
    path = tmp_path / "links.txt"
    path.write_text(content)
    refuses(FileError, message, lambda: bm.networks.read(path))
    refuses(FileError, str(path), lambda: bm.networks.read(path))


def test_unreadable_network_file_is_refused(tmp_path):
    refuses(FileError, "got no such file", lambda: bm.networks.read(tmp_path / "none.gml"))
    refuses(FileError, "got a folder", lambda: bm.networks.read(tmp_path))


def test_what_is_no_path_and_no_text_is_refused():
    result = bm.simulate(PROBLEM, "irs", horizon=2, seed=0, engine="reference")
    refuses(FileError, "path must name a .npz file, got 3", lambda: result.save(3))
    refuses(bm.SpecError, "a spec must be TOML text, got {}; read a file with read_spec", lambda: bm.parse_spec({}))


def test_what_cannot_be_written_is_one_line(tmp_path):
    settings = {"horizon": 2, "replicates": 2, "seed": 0, "engine": "reference"}
    compared, gone = bm.compare(PROBLEM, ["irs", "none"], **settings), tmp_path / "gone"
    refuses(FileError, f"cannot write {gone / 'a.html'}: No such file", lambda: compared.report(gone / "a.html"))
    refuses(FileError, f"cannot write {gone / 'a.png'}: No such file", lambda: plots.save(compared.plot(), gone / "a"))
    kept = Kept(tmp_path / "kept", 1)
    shutil.rmtree(tmp_path / "kept")
    refuses(FileError, "cannot write", lambda: kept.keep({}, "key"))


def test_one_except_clause_catches_them_all():
    for error in (ArmError, FileError, InputError, NetworkError):
        assert issubclass(error, bm.BanditmeshError)
        assert issubclass(error, ValueError)


@pytest.mark.parametrize("read", [bm.arms.read_log, bm.networks.read, bm.networks.read_any])
def test_a_progress_that_cannot_be_called_is_refused_before_reading(read, tmp_path):
    refuses(InputError, "progress must be a callable or None, got True", lambda: read(tmp_path / "x", progress=True))


def test_warnings_show_the_line_of_the_user(monkeypatch):
    monkeypatch.setattr("banditmesh.policies.choice._said", False)
    rates = [bm.arms.Bernoulli(p) for p in (0.1, 0.2)]
    problem = bm.Problem([(0, 1)], [[0, 1], [0, 1]], rates)
    with pytest.warns(bm.BanditmeshWarning, match="policy=KLUCB") as caught:
        bm.compare(problem, "irs", horizon=2, replicates=1, engine="reference")
    assert [one.filename for one in caught] == [__file__]
