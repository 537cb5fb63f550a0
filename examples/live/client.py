"""A service that learns which of its arms pays best, with a node beside it.

python client.py [http://127.0.0.1:7780 | unix:/run/banditmesh/api.sock] [N_PULLS]
"""

import random
import sys

from banditmesh.live import Client

MEANS = {"red": 0.2, "green": 0.5, "blue": 0.8}


def main(url="http://127.0.0.1:7780", n_pulls="200"):
    rng = random.Random(0)
    with Client(url) as node:
        for _ in range(int(n_pulls)):
            arm, ticket = node.choose()
            reward = float(rng.random() < MEANS.get(arm, 0.5))  # this is where a service would do its work
            node.observe(ticket, reward)
        for arm in node.state()["arms"]:
            print(
                f"{arm['name']:10} {arm['own_count']:6} own {arm['heard_count']:6} heard, mean {arm['mean'] or 0:.2f}"
            )


if __name__ == "__main__":
    main(*sys.argv[1:])
