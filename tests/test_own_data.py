"""Arms from files: catalogues, laws and logs, in Python, in specs and on the command line."""

import gzip
import json
import pickle

import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import banditmesh as bm
from banditmesh.arms import Bernoulli, Beta, Empirical, Gaussian, read_catalogue, read_laws, read_log
from banditmesh.cli import main
from banditmesh.errors import ArmError, BanditmeshWarning, FileError, InputError, NetworkError

LINKS = [("ann", "bob"), ("bob", "carl")]
CLICKS = "agent,arm,reward,time\nann,red,1,9\nbob,red,0,8\nann,blue,0,7\ncarl,red,1,6\nbob,blue,1,5\n"


@pytest.fixture
def write(tmp_path):
    def writer(content, name="data.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return writer


@pytest.mark.parametrize(
    "text",
    [
        "agent,arm\nann,red\nann,blue\nbob,red\n",
        "Arm;note;Agent\n# more\nred;x;ann\n\nblue;;ann\n;;\nred;y;bob\n",
        '\ufeffagent\tarm\r\n"ann"\tred\r\nann\t blue \r\nbob\tred\r\n',
    ],
)
def test_catalogue_is_read(write, text):
    catalogue = read_catalogue(write(text))
    assert dict(catalogue) == {"ann": ("red", "blue"), "bob": ("red",)}
    assert repr(catalogue) == "Catalogue(2 agents, 2 arms)"
    assert read_catalogue(write(gzip.compress(text.encode()), "c.csv.gz")) == catalogue


def test_columns_may_have_other_names(write):
    path = write("user,item\n7,3\n8,03\n")
    assert dict(read_catalogue(path, columns={"agent": "user", "arm": "item"})) == {7: ("3",), 8: ("03",)}
    with pytest.raises(FileError, match="columns must say what agent, arm are called in the file"):
        read_catalogue(path, columns={"user": "agent"})


@pytest.mark.parametrize(
    "text, message",
    [
        (
            "ann,red\nbob,red\n",
            r"line 1: the columns must be named agent, arm, got \['ann', 'red'\]; name them so, or say in Python what "
            r"they are called: columns={'agent': \.\.\.}, and on the command line: --columns AGENT,ARM,REWARD$",
        ),
        ("agent,agent,arm\n", "line 1: the columns must be named agent, arm"),
        ("agent,arm\nann\n", r"line 2: an agent and an arm are required, got \['ann'\]"),
        ("agent,arm\nann,red\n\nann,red\n", "line 4: an agent has an arm once, got 'red' of 'ann' again"),
        ("agent,arm\nann,\n", "line 2: an arm must have a name, got an empty cell"),
        ("agent,arm\n", "must describe a catalogue, got nothing but a header"),
        ("# nothing\n", "must describe a catalogue, got nothing but comments"),
        ('agent,arm\nann,"red\n', "line 2: not valid CSV, unexpected end of data"),
        (f"agent,arm\nann,{'x' * 200_000}\n", "line 2: not valid CSV, field larger than field limit"),
        (b"agent,arm\n\xff\xfe,a\n", "must be a text file in UTF-8, got another encoding on line 2; if it is Latin-1,"),
        ("", "must describe a catalogue, got an empty file"),
    ],
)
def test_malformed_catalogue_is_refused_with_its_line(write, text, message):
    path = write(text)
    with pytest.raises(FileError, match=message) as caught:
        read_catalogue(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_missing_and_large_files_are_refused(write, tmp_path):
    with pytest.raises(FileError, match="must be a reward log file, got no such file"):
        read_log(tmp_path / "none.csv")
    with pytest.raises(FileError, match="must hold at most 10 bytes when unpacked"):
        read_log(write(gzip.compress(CLICKS.encode())), max_bytes=10)


@pytest.mark.parametrize(
    "text, laws",
    [
        ("arm,successes,trials\nred,3,200\nblue,0,5\n", {"red": Bernoulli(0.015), "blue": Bernoulli(0.0)}),
        (
            "arm,law,parameters\n1,bernoulli,0.25\n2,Gaussian,1,2\n3,beta,2,3\n4,gaussian,1\n",
            {1: Bernoulli(0.25), 2: Gaussian(1.0, 2.0), 3: Beta(2.0, 3.0), 4: Gaussian(1.0)},
        ),
        (
            "arm,law,p,mean,sigma\nred,bernoulli,0.25,,\nblue,gaussian,,1,2\n",
            {"red": Bernoulli(0.25), "blue": Gaussian(1, 2)},
        ),
    ],
)
def test_laws_are_read(write, text, laws):
    assert read_laws(write(text)) == laws


@pytest.mark.parametrize(
    "text, message",
    [
        (
            "arm,p\nred,0.5\n",
            r"line 1: the columns must be named arm, successes, trials or arm, law, parameters, got .*; name them so,",
        ),
        ("arm,successes,trials\nred,6,5\n", "line 2: successes must be an integer of at least 0 and at most 5, got 6"),
        ("arm,successes,trials\nred,1,0\n", "line 2: trials must be an integer of at least 1, got 0"),
        (
            "arm,successes,trials\nred,a,9\n",
            "line 2: successes must be an integer of at least 0 and at most 9, got 'a'",
        ),
        ("arm,successes,trials\nred,1\n", "line 2: a line must have arm, successes, trials"),
        ("arm,law,parameters\nred,bernoulli,2\n", "line 2: p must be a probability between 0 and 1, got 2"),
        (
            "arm,law,parameters\nred,cauchy,2\n",
            "line 2: law must be one of gaussian, bernoulli, uniform, beta; got 'cauchy'",
        ),
        ("arm,law,parameters\nred,bernoulli,0.5,1\n", "line 2: the law bernoulli has the parameters p, got 2"),
        ("arm,law,parameters\nred,bernoulli\n", "line 2: the parameters of the law bernoulli do not fit"),
        ("arm,law,p\nred,bernoulli,0.5,1\n", "line 2: a line must have at most 3 cells, got 4"),
        ("arm,law,q\nred,bernoulli,0.5\n", "line 2: the parameters of the law bernoulli do not fit"),
        ("arm,law,p\nred,bernoulli,0.5\nred,bernoulli,0.5\n", "line 3: an arm has one law, got another of 'red'"),
        ("arm,law,p\n", "got nothing but a header"),
    ],
)
def test_malformed_laws_are_refused_with_their_line(write, text, message):
    with pytest.raises(FileError, match=message):
        read_laws(write(text))


def parquet(path, **columns):
    pq.write_table(pa.table(columns), path)
    return path


def test_log_is_read_in_every_form(write, tmp_path):
    expected = {"ann": ("red", "blue"), "bob": ("red", "blue"), "carl": ("red",)}
    rows = [line.split(",")[:3] for line in CLICKS.splitlines()]
    columns = {name: list(cells) for name, *cells in zip(*rows, strict=True)}
    columns["reward"] = [float(reward) for reward in columns["reward"]]
    paths = [
        write(CLICKS),
        write(gzip.compress(CLICKS.encode()), "clicks.csv.gz"),
        write("\n".join(CLICKS.splitlines()[1:]).replace(",", "\t"), "u.data"),
        parquet(tmp_path / "clicks.parquet", **columns),
        write(gzip.compress(parquet(tmp_path / "b.parquet", **columns).read_bytes()), "c.parquet.gz"),
    ]
    for path in paths:
        log = read_log(path)
        assert repr(log) == "RewardLog(3 agents, 2 arms, 5 rewards)"
        assert dict(log.catalogue) == expected
        assert log.laws == {"red": Bernoulli(2 / 3), "blue": Bernoulli(0.5)}
        assert log.with_law("empirical").laws["blue"] == Empirical([0, 1])


def test_ratings_become_empirical_laws(write, tmp_path):
    log = read_log(write("1\t10\t3\t881\n1\t20\t5\t882\n2\t10\t4\t883\n", "u.data"))
    assert log.agents == (1, 2)
    assert log.laws == {10: Empirical([3, 4]), 20: Empirical([5])}
    with pytest.raises(
        ArmError, match=r"rewards of Bernoulli laws must be 0 or 1, got 3 in .*u\.data; use law='empirical'"
    ):
        log.with_law("bernoulli")
    path = parquet(tmp_path / "ratings.parquet", user=[1, 1, 2], item=[10, 20, 10], stars=[3, 5, 4])
    assert read_log(path, columns={"agent": "user", "arm": "item", "reward": "stars"}).laws == log.laws


@pytest.mark.parametrize(
    "text, message",
    [
        ("ann,red,much\n", r"line 1: the columns must be named agent, arm, reward, got \['ann', 'red', 'much'\]"),
        (CLICKS + "ann,red\n", r"line 7: an agent, an arm and a reward are required, got \['ann', 'red'\]"),
        (CLICKS + "ann,red,\n", "line 7: a reward must be a finite number, got ''"),
        (CLICKS + "\nann,red,nan\n", "line 8: a reward must be a finite number, got 'nan'"),
        (CLICKS + "new,red,1e101\n", "line 7: a reward must be a finite number, got '1e101'"),
        (CLICKS + ",red,1\n", "line 7: an agent must have a name, got an empty cell"),
        ("agent,arm,reward\n", "must describe a reward log, got nothing but a header"),
    ],
)
def test_malformed_log_is_refused_with_its_line(write, text, message):
    with pytest.raises(FileError, match=message):
        read_log(write(text))


def test_malformed_parquet_is_refused(write, tmp_path):
    with pytest.raises(FileError, match="must be a Parquet file, got: "):
        read_log(write(b"PAR1 cut short", "a.parquet"))
    path = parquet(tmp_path / "a.parquet", agent=["ann", None], arm=["red", "red"], reward=[1.0, 1.0])
    with pytest.raises(FileError, match="row 2: an agent must be named by a text or an integer, got None"):
        read_log(path)
    path = parquet(tmp_path / "b.parquet", agent=[1.5], arm=["red"], reward=[1.0])
    with pytest.raises(FileError, match=r"row 1: an agent must be named by a text or an integer, got 1\.5"):
        read_log(path)
    path = parquet(tmp_path / "c.parquet", agent=["ann"], arm=["red"], reward=[None])
    with pytest.raises(FileError, match="row 1: a reward must be a finite number, got None"):
        read_log(path)


def test_parquet_that_unpacks_to_too_much_is_refused_before_it_is_read(tmp_path):
    path = parquet(tmp_path / "a.parquet", agent=["a" * 1000] * 50_000, arm=[1] * 50_000, reward=[0.0] * 50_000)
    assert path.stat().st_size < 100_000
    with pytest.raises(FileError, match="must hold at most 1,000,000 bytes when unpacked"):
        read_log(path, max_bytes=1_000_000)
    assert len(read_log(path).rewards) == 50_000


def test_reading_a_log_tells_how_far_it_is(write, tmp_path):
    seen = []
    read_log(write("0,0,1\n" * 70_000), progress=lambda done, total: seen.append((done, total)))
    assert len(seen) == 3
    assert seen[-1] == (420_000, 420_000)
    rows = []
    path = parquet(tmp_path / "a.parquet", agent=[0] * 40_000, arm=[0] * 40_000, reward=[1] * 40_000)
    read_log(path, progress=lambda done, total: rows.append((done, total)))
    assert rows[-1] == (40_000, 40_000)


def test_problem_takes_a_log(write):
    log = read_log(write(CLICKS))
    problem = bm.Problem(LINKS, log)
    assert repr(problem) == "Problem(3 agents, 2 links, 2 arms, 1 to 2 per agent)"
    assert problem.holders == {"red": ("ann", "bob", "carl"), "blue": ("ann", "bob")}
    assert not problem.unmatched
    assert str(problem.unmatched) == "everything matched"
    by_hand = bm.Problem(LINKS, dict(log.catalogue), log.laws)
    settings = {"horizon": 50, "seed": 0, "engine": "reference"}
    assert bm.simulate(problem, bm.FwA(2), **settings) == bm.simulate(by_hand, bm.FwA(2), **settings)
    assert pickle.loads(pickle.dumps(problem)).laws == problem.laws


def test_names_match_as_they_are_written(write):
    catalogue = read_catalogue(write("agent,arm\n1,10\n2,20\n"))
    problem = bm.Problem([("1", "2")], catalogue, {"10": Bernoulli(0.5), "20": Bernoulli(0.1)})
    assert list(problem.agents) == ["1", "2"]
    assert problem.best_arms == ("10", "20")
    graph = nx.Graph([(1, "1"), (1, 2)])
    with pytest.raises(ArmError, match="agents of the network without arms: 1"):
        bm.Problem(graph, catalogue, {10: Bernoulli(0.5), 20: Bernoulli(0.1)})
    double = bm.arms.Catalogue({1: ["a"], "1": ["a"]})
    with pytest.raises(ArmError, match="agents of the data must differ as they are written, got '1' twice"):
        bm.Problem([("1", "2")], double, {"a": Bernoulli(0.5)})


def test_what_does_not_match_is_refused_or_left_out_and_told(write):
    catalogue = read_catalogue(write("agent,arm\nann,red\nann,old\nbob,red\neve,red\nfred,red\n"))
    laws = {"red": Bernoulli(0.5), "blue": Bernoulli(0.1)}
    with pytest.raises(ArmError) as caught:
        bm.Problem([*LINKS, ("carl", "ann")], catalogue, laws)
    assert str(caught.value) == (
        "agents and arms must match by name, got agents not in the network: 2 ('eve', 'fred'); agents of the network "
        "without arms: 1 ('carl'); arms without a law: 1 ('old'); arms that no agent has: 1 ('blue'); correct the "
        "names, or leave out what does not with unmatched='drop' (--unmatched drop on the command line)"
    )
    problem = bm.Problem([*LINKS, ("carl", "ann")], catalogue, laws, unmatched="drop")
    assert (list(problem.agents), problem.arms, problem.network.n_links) == (["ann", "bob"], ("red",), 1)
    assert problem.unmatched == bm.arms.Unmatched(("eve", "fred"), ("carl",), ("old",), ("blue",))
    with pytest.raises(
        ArmError, match=r"got agents not in the network: 4 \('ann', 'bob', 'eve', \.\.\.\).*; correct the names$"
    ):
        bm.Problem([("x", "y")], catalogue, laws, unmatched="drop")


def test_left_out_agents_take_their_places_with_them():
    graph = bm.networks.random_geometric(3, 2.0, seed=0)
    problem = bm.Problem(graph, bm.arms.Catalogue({0: ["a"], 2: ["a"]}), {"a": Bernoulli(0.5)}, unmatched="drop")
    assert list(problem.positions) == [0, 2]


@pytest.mark.parametrize(
    "make, message",
    [
        (
            lambda: bm.Problem(LINKS, [[0]] * 3, [Bernoulli(0.5)], unmatched="drop"),
            "unmatched is for a catalogue or a log",
        ),
        (
            lambda: bm.Problem(LINKS, bm.arms.Catalogue({"ann": ["a"]}), unmatched="drop"),
            "arms must be a sequence of laws or a mapping from arm to law, got none; read a file with arms.read_laws",
        ),
        (
            lambda: bm.Problem(LINKS, bm.arms.Catalogue({"ann": ["a"]}), {"a": Bernoulli(0.5)}, unmatched="keep"),
            "unmatched must be one of refuse, drop; got 'keep'",
        ),
        (
            lambda: bm.Problem(
                bm.networks.Churn(nx.path_graph(2), 0.1, 0.1),
                bm.arms.Catalogue({0: ["a"]}),
                {"a": Bernoulli(0.5)},
                unmatched="drop",
            ),
            "a dynamic network cannot lose the 1 agents that have no arms",
        ),
    ],
)
def test_wrong_use_of_data_is_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_catalogue_goes_with_the_laws_of_a_log(write):
    log = read_log(write(CLICKS))
    problem = bm.Problem(LINKS, bm.arms.Catalogue({"ann": ["blue"], "bob": ["red"], "carl": ["blue"]}), log)
    assert problem.laws == tuple(log.laws.values())
    assert bm.Problem(LINKS, [["red"], ["blue"], ["red"]], log).laws == problem.laws


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "links.txt.gz").write_bytes(gzip.compress(b"# SNAP\nann\tbob\nbob\tcarl\n"))
    (tmp_path / "clicks.csv").write_text(CLICKS)
    (tmp_path / "who.csv").write_text("agent,arm\nann,red\nbob,red\nbob,blue\ncarl,blue\neve,red\n")
    (tmp_path / "rates.csv").write_text("arm,successes,trials\nred,1,4\nblue,1,10\n")
    return tmp_path


@pytest.fixture
def run(capsys):
    def call(*arguments):
        with pytest.raises(SystemExit) as left:
            main(list(map(str, arguments)))
        return left.value.code, *capsys.readouterr()

    return call


def test_command_line_takes_files(run, folder):
    few = ("--network", folder / "links.txt.gz", "--horizon", 20, "--replicates", 2, "--protocols", "fwa", "--json")
    code, out, err = run("compare", *few, "--log", folder / "clicks.csv")
    assert code == 0
    assert "left out" not in err
    problem = bm.Problem(folder / "links.txt.gz", read_log(folder / "clicks.csv"))
    regret = bm.simulate(problem, bm.FwA(4), horizon=20, replicates=2, seed=0).regret[:, -1].mean()
    [told] = json.loads(out).values()
    assert told["fwa"]["regret"]["mean"] == pytest.approx(regret)
    files = ("--catalogue", folder / "who.csv", "--laws", folder / "rates.csv")
    code, _, err = run("compare", *few, *files)
    assert code == 2
    assert "agents not in the network: 1 ('eve')" in err
    code, out, err = run("compare", *few, *files, "--unmatched", "drop")
    assert code == 0
    assert "banditmesh: left out: agents not in the network: 1 ('eve')\n" in err


@pytest.mark.parametrize(
    "options, message",
    [
        (["--catalogue", "who.csv"], "neither --laws nor --log is given"),
        (["--laws", "rates.csv"], "--laws needs --catalogue"),
        (["--log", "clicks.csv", "--laws", "rates.csv"], "give --laws or --log, got both"),
        (["--log", "clicks.csv", "--arms", "5"], "--arms has no effect: a file gives the arms"),
        (["--log", "clicks.csv", "--per-agent", "5"], "--per-agent has no effect: a file gives the arms"),
        (["--unmatched", "drop"], "--unmatched has no effect: no file gives arms"),
        (["--catalogue", "who.csv", "--laws", "rates.csv", "--log-rewards", "auto"], "--log-rewards has no effect"),
        (["--log", "none.csv"], "none.csv must be a reward log file, got no such file"),
        (["--arms", "clicks.csv"], "Invalid value for '--arms'"),
    ],
)
def test_flags_that_do_not_go_together_are_refused(run, folder, monkeypatch, options, message):
    monkeypatch.chdir(folder)
    for verb in ("compare", "frontier", "bounds"):
        code, _, err = run(verb, "--network", "links.txt.gz", *options)
        assert code == 2
        assert message in err
        assert err.count("\n") == 1


SPEC = """\
engine = "reference"
horizon = 20
replicates = 2
network = {name = "file", path = "links.txt.gz"}
protocol = "fwa(2)"
"""


def test_spec_takes_files(folder):
    def first(arms):
        (folder / "study.toml").write_text(SPEC + f"[arms]\nlaw = 'data'\n{arms}\n")
        return bm.read_spec(folder / "study.toml")

    spec = first("log = 'clicks.csv'")
    assert set(spec.files().values()) == {folder / "links.txt.gz", folder / "clicks.csv"}
    study = bm.run_study(spec, folder / "out", workers=1)
    log = read_log(folder / "clicks.csv")
    result = bm.simulate(bm.Problem(LINKS, log), bm.FwA(2), horizon=20, seed=spec.seed_of(0), engine="reference")
    assert study.table()["regret"].iloc[0] == result.regret[0, -1]
    spec = first("catalogue = 'who.csv'\nlaws = 'rates.csv'\nunmatched = 'drop'")
    study = bm.run_study(spec, folder / "dropped", workers=1)
    assert np.isfinite(study.table()["regret"]).all()
    (folder / "rates.csv").write_text("arm,successes,trials\nred,2,4\nblue,1,10\n")
    with pytest.raises(bm.StudyError, match="the files of networks or arms have changed since"):
        bm.run_study(spec, folder / "dropped", workers=1)


@pytest.mark.parametrize(
    "arms, message",
    [
        ("", r"line 6: arms: laws or log must be given, and not both; name one file"),
        ("laws = 'rates.csv'", r"catalogue must be given with laws"),
        ("catalogue = 'who.csv'\nlaws = 'rates.csv'\nrewards = 'auto'", "arms.rewards must be given with log only"),
        (
            "log = 'clicks.csv'\nrewards = 'all'",
            "line 9: arms.rewards must be one of auto, bernoulli, empirical, replay",
        ),
        ("log = 'clicks.csv'\nunmatched = 'keep'", "line 9: arms.unmatched must be one of refuse, drop"),
        ("log = 'clicks.csv'\nn_arms = 4", "arms.n_arms is an unknown key, or has no effect"),
        ("log = 'none.csv'", "none.csv must be a reward log file, got no such file"),
        (
            "catalogue = 'who.csv'\nlaws = 'rates.csv'",
            "agents and arms must match by name, got agents not in the network",
        ),
        ("log = 5", "arms.log must be a string, got 5"),
    ],
)
def test_wrong_files_of_a_spec_are_refused_with_their_line(folder, arms, message):
    (folder / "study.toml").write_text(SPEC + f"[arms]\nlaw = 'data'\n{arms}\n")
    with pytest.raises(bm.SpecError, match=message) as caught:
        bm.read_spec(folder / "study.toml")
    assert "\n" not in str(caught.value)


def test_errors_of_networks_stay_their_own():
    with pytest.raises(NetworkError):
        bm.Problem([("a", "a")], bm.arms.Catalogue({"a": ["x"]}), {"x": Bernoulli(0.5)})


@pytest.mark.parametrize(
    "read, header, row",
    [
        (read_log, "agent,arm,reward", "ann,red,0,75"),
        (read_log, "ann,red,1", "ann,red,0,75"),
        (read_catalogue, "agent,arm", "ann,red,blue"),
        (read_laws, "arm,successes,trials", "red,1,000,2000"),
        (read_laws, "arm,law,p", "red,bernoulli,0,5"),
    ],
)
def test_row_longer_than_the_first_is_refused(write, read, header, row):
    with pytest.raises(
        FileError, match=r"line 2: a line must have at most \d cells, got \d, .*write decimals with a point"
    ):
        read(write(f"{header}\n{row}\n"))


def test_empty_cells_at_the_end_are_no_cells(write):
    assert read_log(write("agent,arm,reward\nann,red,0,\nbob,red,1,,\n")).laws == {"red": Bernoulli(0.5)}


RATINGS = ["1{0}10{0}3{0}881", "1{0}20{0}5{0}882", "2{0}10{0}4{0}883"]


@pytest.mark.parametrize("between", ["\t", "::", "|", ";", ","])
def test_ratings_are_read_however_they_are_separated(write, between):
    log = read_log(write("\n".join(RATINGS).format(between), "ratings.dat"))
    assert log.laws == {10: Empirical([3, 4]), 20: Empirical([5])}


@pytest.mark.parametrize(
    "content, message",
    [
        (b"PK\x03\x04" + bytes(26) + b"xl/workbook.xml", "got a spreadsheet or document; save its table as CSV"),
        (b"PK\x03\x04" + bytes(26) + b"ratings.csv", "got a zip archive; unpack it"),
        ("agent,arm,reward\nann,red,1\n".encode("utf-16"), "got UTF-16; save it as UTF-8"),
        ("agent,arm,reward\nRen\u00e9e,red,1\n".encode("latin1"), "got another encoding on line 2; if it is Latin-1"),
        (
            b'{"agent": "ann", "arm": "red", "reward": 1}\n',
            "line 1: .* must be CSV or Parquet, got JSON or XML; read it with",
        ),
        (b"<html></html>", "got an HTML page"),
        (b"agent;arm,reward\n", "line 1: entries must be separated in one way, got ';' and ','"),
    ],
)
def test_what_is_no_table_is_refused_by_name(write, content, message):
    for read in (read_log, read_catalogue, read_laws):
        with pytest.raises(FileError, match=message):
            read(write(content))


def test_data_frames_are_tables(write):
    frame = pd.DataFrame({"user": ["ann", "bob", "ann"], "movie": [7, 7, 8], "stars": [1.0, 0.0, 1.0]})
    with pytest.raises(FileError, match="must have a column for each of agent, arm, reward, got one for two of them"):
        read_log(frame, columns="user,user,stars")
    log = read_log(frame, columns="user,movie,stars")
    assert log.laws == {7: Bernoulli(0.5), 8: Bernoulli(1.0)}
    assert read_log(frame.set_index("user"), columns="user,movie,stars").laws == log.laws
    assert dict(read_catalogue(frame, columns={"agent": "user", "arm": "movie"})) == {"ann": (7, 8), "bob": (7,)}
    laws = read_laws(pd.DataFrame({"arm": ["red"], "successes": [1], "trials": [4]}))
    assert laws == {"red": Bernoulli(0.25)}
    with pytest.raises(FileError, match=r"the DataFrame, row 1: the columns must be named agent, arm, reward, got"):
        read_log(frame)
    frame["movie"] = [7.0, None, 8.0]
    with pytest.raises(FileError, match=r"the DataFrame, row 1: an arm must be named .* as with \.astype\('Int64'\)"):
        read_log(frame, columns="user,movie,stars")
    with pytest.raises(FileError, match="the DataFrame must describe a catalogue, got no rows"):
        read_catalogue(frame[:0])


def test_hints_tell_of_what_is_probably_meant(write):
    with pytest.warns(
        BanditmeshWarning, match="has no reward but 1, so that all arms pay the same; if it lists only successes"
    ):
        read_log(write("ann,red,1\nbob,blue,1\n"))
    with pytest.warns(BanditmeshWarning, match=r"has '1' and '1\.0', which are two names"):
        read_log(write("1,red,1\n1.0,red,0\n"))
    catalogue = bm.arms.Catalogue({"01": ["a"], "02": ["a"]})
    with pytest.raises(ArmError, match=r"; '01' and 1 may be one, written in two ways; correct the names$"):
        bm.Problem([(1, 2)], catalogue, {"a": Bernoulli(0.5)})


def test_columns_are_named_on_the_command_line_and_in_a_spec(run, folder, monkeypatch):
    monkeypatch.chdir(folder)
    named = CLICKS.replace("agent,arm,reward", "user,movie,rating")
    (folder / "ratings.csv").write_text(named)
    few = ("--network", "links.txt.gz", "--horizon", 5, "--replicates", 1, "--protocols", "fwa", "--json")
    expected = run("compare", *few, "--log", "clicks.csv")[1]
    code, out, _ = run("compare", *few, "--log", "ratings.csv", "--columns", "user,movie,rating")
    assert (code, out) == (0, expected)
    code, _, err = run("compare", *few, "--log", "ratings.csv")
    assert code == 2
    assert "on the command line: --columns AGENT,ARM,REWARD" in err
    code, _, err = run("compare", *few, "--log", "ratings.csv", "--columns", "user")
    assert code == 2
    required = "columns must name those of agent, arm, reward, time in this order, as in 'user,movie,rating'"
    assert f"{required}, got 'user'" in err
    assert "--columns has no effect: no file gives arms" in run("compare", *few, "--columns", "a,b")[2]
    (folder / "study.toml").write_text(
        SPEC + "[arms]\nlaw = 'data'\nlog = 'ratings.csv'\ncolumns = 'user,movie,rating'\n"
    )
    assert bm.read_spec(folder / "study.toml").n_points == 1


def test_self_loops_are_dropped_on_the_command_line_and_in_a_spec(run, folder, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / "soc.txt").write_text("# Directed graph: soc.txt\nann bob\nbob ann\nbob carl\ncarl carl\n")
    few = ("--network", "soc.txt", "--arms", 3, "--per-agent", 2)
    short = ("--horizon", 5, "--replicates", 1, "--protocols", "fwa")
    for verb in (("compare", *short), ("bounds", "--protocols", "fwa"), ("mesh", "up", "--horizon", 1)):
        code, _, err = run(*verb, *few)
        assert code == 2
        assert 'say self_loops="drop" (--self-loops drop on the command line)' in err
    code, _, err = run("compare", *short, *few, "--self-loops", "drop")
    assert code == 0
    assert err.splitlines()[0] == (
        "banditmesh: soc.txt was read as an undirected network: its comments call it directed; "
        "links in both directions, which count once: 1; self-loops that were dropped: 1"
    )
    assert (
        "--self-loops has no effect: ring:5 is no file"
        in run("compare", "--network", "ring:5", "--self-loops", "drop")[2]
    )
    spec = SPEC.replace("links.txt.gz'", "soc.txt'").replace('links.txt.gz"', 'soc.txt", self_loops = "drop"')
    (folder / "study.toml").write_text(spec + "arms = {n_arms = 3, per_agent = 2}\n")
    assert bm.read_spec(folder / "study.toml").n_points == 1


def test_forgotten_network_is_told(run, folder, monkeypatch):
    monkeypatch.chdir(folder)
    few = ("--log", "clicks.csv", "--horizon", 5, "--replicates", 1, "--protocols", "fwa")
    code, _, err = run("compare", *few)
    assert code == 2
    assert err.endswith("; --network is not given, so er is used, the paper's; name your file\n")
    (folder / "clicks.csv").write_text("1,red,1\n2,red,0\n")
    code, _, err = run("compare", *few, "--unmatched", "drop")
    assert code == 0
    assert "banditmesh: --network is not given, so er is used, the paper's\n" in err
