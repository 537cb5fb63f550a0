"""Make the pictures of README and docs again: `python docs/make_images.py`.

Each is drawn by the package's own plots from a run whose settings stand here; the same versions give the same files.
"""

from pathlib import Path

import banditmesh as bm
from banditmesh import plots
from banditmesh.protocols.notation import write

IMAGES = Path(__file__).parent / "images"
PROTOCOLS = [
    bm.NoCooperation(),
    bm.IRS(),
    bm.Gossip(4),
    bm.ProbabilisticFlooding(4, stop=0.5),
    bm.FwA(4),
    bm.Flooding(4),
]
NETWORKS = ("er", "ba", "sbm")
STATIC = {"horizon": 1000, "replicates": 10, "seed": 0, "record_every": 1000}
OVER_TIME = {"horizon": 1000, "replicates": 10, "seed": 0, "record_every": 10}
FRONTIER = {"horizon": 1000, "replicates": 10, "seed": 0}
LONG = {"horizon": 10_000, "replicates": 10, "seed": 0, "record_every": 100}


def growing(factor: float) -> bm.Protocol:
    """Flooding that sends when a count has grown by the factor."""
    return bm.Flooding(4, emission=bm.Growth(factor))


#: The pictures of the protocols' pages: regret against transmissions on three networks ...
TRADEOFFS = {
    "irs": [bm.NoCooperation(), bm.IRS(), bm.Gossip(4), bm.Flooding(2)],
    "gossip": [bm.IRS(), *(bm.Gossip(4, fanout=n) for n in (1, 2, 3)), bm.Gossip(8), bm.Flooding(4)],
    "probabilistic": [
        bm.IRS(),
        *(bm.ProbabilisticFlooding(4, stop=stop) for stop in (0.2, 0.4, 0.5, 0.6, 0.8)),
        bm.Flooding(4),
    ],
    "fwa": [bm.NoCooperation(), *(bm.FwA(ttl) for ttl in (1, 2, 4, 8)), bm.Flooding(4)],
    "flooding": [bm.NoCooperation(), *(bm.Flooding(ttl) for ttl in (1, 2, 4, 8)), bm.FwA(4)],
    "tree": [
        bm.FwA(4),
        bm.Flooding(8, emission=bm.Growth(0.25)),
        *(bm.TreeAggregation(pause, emission=bm.Growth(factor)) for pause, factor in ((1, 0.02), (8, 0.05), (16, 0.1))),
    ],
}
#: ... and both over time on the paper's ER network.
CURVES = {
    "none": ([bm.NoCooperation(), bm.IRS(), bm.Flooding(4), bm.Centralised()], OVER_TIME),
    "centralised": ([bm.Flooding(4), bm.Flooding(8), bm.Centralised()], OVER_TIME),
    "every-pull": ([bm.IRS(), bm.FwA(4), bm.Flooding(4)], OVER_TIME),
    "growth": ([bm.Flooding(4), growing(0.1), growing(0.25), growing(1.0)], LONG),
    "contested": (
        [kind(4, emission=one) for kind in (bm.FwA, bm.Flooding) for one in (bm.EveryPull(), bm.Contested())],
        OVER_TIME,
    ),
}


LOSSES = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)


def over_loss(problem: bm.Problem) -> None:
    """Regret and transmissions over the loss of transmissions."""
    protocols = {"irs": bm.IRS(), "fwa(4)": bm.FwA(4), "flooding(4)": bm.Flooding(4)}
    emissions = (bm.Growth(0.25), bm.Growth(0.25, echoes=1))
    added = [bm.Flooding(8, emission=one) for one in emissions]
    added += [bm.TreeAggregation(emission=bm.Growth(0.05, echoes=echoes)) for echoes in (0, 1)]
    protocols |= {write(protocol): protocol for protocol in added}
    series = {}
    for name, protocol in protocols.items():
        runs = [
            bm.simulate(
                problem, protocol, faults=bm.Faults(loss=loss), horizon=1000, replicates=10, seed=0, record_every=1000
            )
            for loss in LOSSES
        ]
        series[name] = LOSSES, [run.regret[:, -1] for run in runs], [run.transmissions[:, -1] for run in runs]
    plots.save(plots.over_key("loss", series), IMAGES / "er-loss", kinds=("svg",))


def over_changes() -> None:
    """Regret where arms change twice: alone and shared, with and without forgetting."""
    network = bm.networks.paper("er")
    problem = bm.Problem.random(network, n_arms=20, per_agent=7, seed=0, change="piecewise(1001, 2001)")
    settings = {"horizon": 3000, "replicates": 5, "seed": 0, "record_every": 20}
    policies = ["ucb(0.5)", "ucb(0.5)+discount(0.995)"]
    comparison = bm.compare(problem, [bm.NoCooperation(), bm.Flooding(4)], policies=policies, **settings)
    plots.save(comparison.plot(), IMAGES / "er-changing", kinds=("svg",))


def who_hears_whom() -> None:
    """On a line of nine nodes with the same four arms: whose rewards each of them hears."""
    from matplotlib.figure import Figure

    problem = bm.Problem.random(bm.networks.path(9), n_arms=4, per_agent=4, seed=0)
    figure = Figure(figsize=(6.4, 3.2), layout="constrained")
    for axes, protocol in zip(figure.subplots(1, 2, sharey=True), (bm.FwA(4), bm.Flooding(4)), strict=True):
        trace = bm.simulate(problem, protocol, horizon=40, seed=0, trace=True).trace
        heard = {(event.receiver, event.origin) for event in trace if event.learned}
        shown = [[float((one, other) in heard or one == other) for other in range(9)] for one in range(9)]
        axes.imshow(shown, cmap="Blues", vmin=0.0, vmax=1.4, origin="lower")
        axes.set(title=f"{write(protocol)}: {len(heard) / 9:.1f} others", xlabel="whose rewards", xticks=range(9))
    figure.axes[0].set(ylabel="node", yticks=range(9))
    plots.save(figure, IMAGES / "same-arms", kinds=("svg",))


def main() -> None:
    """Draw everything."""
    who_hears_whom()
    (IMAGES / "protocols").mkdir(parents=True, exist_ok=True)
    problem = bm.Problem.paper("er", seed=0)
    over_changes()
    comparison = bm.compare(problem, PROTOCOLS, horizon=1000, replicates=10, seed=0, record_every=10)
    for figure, name in ((comparison.plot(), "er-comparison"), (comparison.plot("tradeoff"), "er-tradeoff")):
        plots.save(figure, IMAGES / name, kinds=("svg",))
    over_loss(problem)
    for name, (protocols, settings) in CURVES.items():
        figure = bm.compare(problem, protocols, **settings).plot()
        if settings is LONG:
            # Beside every pull the others would be a line at the bottom.
            figure.axes[1].set_yscale("log")
            figure.axes[1].set_ylim(bottom=1e5)
        plots.save(figure, IMAGES / "protocols" / name, kinds=("svg",))
    for name, protocols in TRADEOFFS.items():
        found = {network: bm.compare(bm.Problem.paper(network, seed=0), protocols, **STATIC) for network in NETWORKS}
        points = {
            network: {label: (run.transmissions[:, -1], run.regret[:, -1]) for label, run in comparison.results.items()}
            for network, comparison in found.items()
        }
        plots.save(plots.tradeoff(points), IMAGES / "protocols" / name, kinds=("svg",))
    frontier = bm.frontier(bm.Problem.paper("ba", seed=0), max_messages_per_round=3000, **FRONTIER)
    plots.save(frontier.plot(), IMAGES / "ba-frontier", kinds=("svg",))


if __name__ == "__main__":
    main()
