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


def main() -> None:
    """Draw everything."""
    IMAGES.mkdir(exist_ok=True)
    problem = bm.Problem.paper("er", seed=0)
    comparison = bm.compare(problem, PROTOCOLS, horizon=1000, replicates=10, seed=0, record_every=10)
    for figure, name in ((comparison.plot(), "er-comparison"), (comparison.plot("tradeoff"), "er-tradeoff")):
        plots.save(figure, IMAGES / name, kinds=("svg",))


if __name__ == "__main__":
    main()
