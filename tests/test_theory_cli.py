"""The `bounds` verb."""

import json

import networkx as nx
import pytest

import banditmesh as bm
from banditmesh.cli import main


def run(capsys, *arguments, code=0):
    with pytest.raises(SystemExit) as ended:
        main(["bounds", *arguments])
    assert ended.value.code == code
    return capsys.readouterr()


def test_bounds_are_printed_beside_each_other(capsys):
    out = run(capsys, "--network", "sbm", "--protocols", "fwa", "--cover", "greedy").out
    bounds = bm.bounds(bm.Problem.paper("sbm", seed=0), bm.FwA(4), cover="greedy")
    [line] = [line for line in out.splitlines() if line.startswith("group regret") and "at most" in line]
    uppers = (bounds.upper_published, bounds.upper_corrected, bounds.upper_sharp)
    assert line.split()[-3:] == [f"{value:,.0f}" for value in uppers]
    assert bounds.theorem in out
    assert (
        "delta" not in run(capsys, "--arms", "6", "--per-agent", "2", "--protocols", "gossip", "--cover", "greedy").out
    )
    assert "alpha > 2 sigma^2 = 2" in out


def test_json_holds_the_bounds_of_every_protocol(capsys, tmp_path):
    nx.write_edgelist(nx.path_graph(6), tmp_path / "line.edgelist", data=False)
    arguments = ["--network", str(tmp_path / "line.edgelist"), "--arms", "4", "--per-agent", "2", "--ttl", "2"]
    out = run(capsys, *arguments, "--protocols", "none,irs,gossip", "--alpha", "2.5", "--horizon", "50", "--json").out
    told = json.loads(out)["line"]
    assert list(told) == ["none", "irs", "gossip"]
    assert told["irs"]["alpha"] == 2.5
    assert told["irs"]["upper_corrected"] > 0
    assert told["gossip"]["upper_corrected"] == told["gossip"]["upper_sharp"] > 0
    assert told["gossip"]["theorem"] == "delivery theorem: a share arrives by chance"
    assert told["irs"]["traffic"]["within_ttl"] == 2 * 5 * 50


def test_plot_draws_bounds_and_a_simulation(capsys, tmp_path):
    picture = tmp_path / "bounds.svg"
    arguments = ["--arms", "6", "--per-agent", "2", "--protocols", "irs", "--horizon", "20", "--replicates", "1"]
    run(capsys, *arguments, "--plot", str(picture))
    assert picture.read_text().startswith("<?xml")
    error = run(capsys, "--protocols", "irs,fwa", "--plot", str(picture), code=2).err
    assert "--plot draws one protocol" in error


def test_unfinished_covers_are_told_in_one_line(capsys):
    told = run(capsys, "--protocols", "flooding", "--time-limit", "0.000001")
    assert len(told.err.splitlines()) == 1
    assert "sum of 1 / Delta_a is between" in told.err
    assert "FAILS: clique covers" in told.out


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--network", "dynamic-er"], "static network"),
        (["--protocols", "fwa,magic"], "magic"),
        (["--alpha", "-1"], "alpha"),
        (["--cover", "best"], "--cover"),
    ],
)
def test_wrong_use_is_one_line_and_exit_2(capsys, arguments, message):
    error = run(capsys, *arguments, code=2).err
    assert message in error
    assert len(error.splitlines()) == 1


def test_published_rules_are_warned_of(capsys):
    told = run(capsys, "--protocols", "irs", "--cover", "greedy", "--rules", "published")
    assert "sound rules" in told.err
