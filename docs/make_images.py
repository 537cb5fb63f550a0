"""Make the pictures of README and docs again: `python docs/make_images.py`.

Each is drawn by the package's own plots from a run whose settings stand here; the same versions give the same files.
"""

from pathlib import Path

import banditmesh as bm
from banditmesh import plots

IMAGES = Path(__file__).parent / "images"
PROTOCOLS = [
    bm.NoCooperation(),
    bm.IRS(),
    bm.Gossip(4),
    bm.ProbabilisticFlooding(4, stop=0.5),
    bm.FwA(4),
    bm.Flooding(4),
]


LOSSES = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)


def over_loss(problem: bm.Problem) -> None:
    """Regret and transmissions over the loss of transmissions."""
    protocols = {"irs": bm.IRS(), "fwa(4)": bm.FwA(4), "flooding(4)": bm.Flooding(4)}
    protocols |= {f"flooding({ttl})+growth(0.25)": bm.Flooding(ttl, emission=bm.Growth(0.25)) for ttl in (4, 8)}
    series = {}
    for name, protocol in protocols.items():
        runs = [
            bm.simulate(
                problem, protocol, faults=bm.Faults(loss=loss), horizon=1000, replicates=10, seed=0, record_every=1000
            )
            for loss in LOSSES
        ]
        series[name] = LOSSES, [run.regret[:, -1] for run in runs], [run.messages[:, -1] for run in runs]
    plots.save(plots.over_key("loss", series), IMAGES / "er-loss", kinds=("svg",))


def main() -> None:
    """Draw everything."""
    IMAGES.mkdir(exist_ok=True)
    problem = bm.Problem.paper("er", seed=0)
    comparison = bm.compare(problem, PROTOCOLS, horizon=1000, replicates=10, seed=0, record_every=10)
    for figure, name in ((comparison.plot(), "er-comparison"), (comparison.plot("tradeoff"), "er-tradeoff")):
        plots.save(figure, IMAGES / name, kinds=("svg",))
    over_loss(problem)


if __name__ == "__main__":
    main()
