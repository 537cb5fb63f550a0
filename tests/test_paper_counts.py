"""The counts that the paper's networks must give exactly: they do not depend on rewards.

A message lives for ttl rounds, so traffic is steady from round ttl on. The quick tests prove the steadiness over some
rounds and extend it to the paper's horizon; the compiled engine runs the horizon in full, and in the slow tests the
reference engine does so too.
"""

import numpy as np
import pytest

import banditmesh as bm

TTL, SHORT, HORIZON = 4, 8, 1000

FLOODING = {
    ("er", "published"): 11_006_490,
    ("ba", "published"): 31_820_660,
    ("sbm", "published"): 32_947_270,
    ("er", "sound"): 7_810_364,
    ("ba", "sound"): 24_403_730,
    ("sbm", "sound"): 28_006_210,
}
# Per round on the paper's watched link, both directions together.
WATCHED = {
    ("er", "published"): 88,
    ("ba", "published"): 200,
    ("sbm", "published"): 121,
    ("er", "sound"): 59,
    ("ba", "sound"): 138,
    ("sbm", "sound"): 70,
}
IRS = {"er": 306_000, "ba": 392_000, "sbm": 722_000}

full_horizon = pytest.mark.parametrize("engine", [pytest.param("reference", marks=pytest.mark.slow), "compiled"])


def on_watched_link(result, name):
    """Transmissions in every round on the paper's watched link."""
    i, j = bm.networks.PAPER_WATCHED_LINKS[name]
    columns = [result.links.index(link) for link in ((i, j), (j, i))]
    return result.link_traffic[0][:, columns].sum(axis=1).tolist()


@pytest.mark.parametrize("name, rules", FLOODING)
def test_flooding_transmissions_by_steadiness(name, rules, engine):
    problem = bm.Problem.paper(name, seed=0)
    settings = {"horizon": SHORT, "seed": 0, "rules": rules, "link_traffic": True, "engine": engine}
    result = bm.simulate(problem, bm.Flooding(TTL), **settings)
    per_round = np.diff(result.transmissions[0], prepend=0).tolist()
    steady = per_round[TTL - 1 :]
    assert per_round[TTL - 2] < steady[0]
    assert len(steady) == 5
    assert set(steady) == {steady[0]}
    assert result.transmissions[0, -1] + (HORIZON - SHORT) * steady[0] == FLOODING[name, rules]
    assert on_watched_link(result, name)[TTL - 1 :] == [WATCHED[name, rules]] * 5


@pytest.mark.parametrize("name", IRS)
def test_irs_transmissions_by_steadiness(name, rules, engine):
    result = bm.simulate(bm.Problem.paper(name, seed=0), bm.IRS(), horizon=5, seed=0, rules=rules, engine=engine)
    per_round = IRS[name] // HORIZON
    assert result.transmissions[0].tolist() == [per_round * t for t in range(1, 6)]


@full_horizon
@pytest.mark.parametrize("name, rules", FLOODING)
def test_flooding_transmissions_over_the_whole_horizon(name, rules, engine):
    problem = bm.Problem.paper(name, seed=0)
    settings = {"horizon": HORIZON, "seed": 0, "rules": rules, "link_traffic": True, "engine": engine}
    result = bm.simulate(problem, bm.Flooding(TTL), **settings)
    assert result.transmissions[0, -1] == result.traffic["sent"][0] == FLOODING[name, rules]
    assert set(on_watched_link(result, name)[TTL - 1 :]) == {WATCHED[name, rules]}


@full_horizon
@pytest.mark.parametrize("name", IRS)
def test_irs_transmissions_over_the_whole_horizon(name, rules, engine):
    result = bm.simulate(bm.Problem.paper(name, seed=0), bm.IRS(), horizon=HORIZON, seed=0, rules=rules, engine=engine)
    assert result.transmissions[0, -1] == IRS[name]
