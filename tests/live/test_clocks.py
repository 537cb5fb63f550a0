"""A node whose clock is set back: real sockets and disk, and a time of day that is the test's own."""

import pytest
from embedded import a_node, estimates, is_linked, run, until

from banditmesh.errors import InputError


def n_known(node):
    return sum(count for count, _ in estimates(node).values())


def test_clock_that_is_set_back_refuses_no_good_ticket_and_counts_none_twice(tmp_path):
    now = [1_000_000.0]
    settings = {"ticket_lifetime": 100.0, "clock": lambda: now[0]}

    async def main():
        async with a_node(tmp_path, "a", **settings) as a, a_node(tmp_path, "b", {"a": a.address}) as b:
            await until(lambda: is_linked(a, "b"))
            early, open_ = a.choose(), a.choose()
            now[0] -= 500_000.0
            late, later = a.choose(), a.choose()
            for choice in (early, late):
                assert (await a.observe(choice, 0.5)).outcome == "counted"
                assert (await a.observe(choice, 0.5)).outcome == "already counted"
            now[0] += 101.0  # lifetimes go by what the clock says: what was given since it was set back lapses
            with pytest.raises(InputError, match="lapsed"):
                await a.observe(later, 0.5)
            await until(lambda: n_known(b) == 2)
            now[0] -= 1000.0
        async with a_node(tmp_path, "a", **settings) as a:  # a start that seems to be before the last one
            assert (await a.observe(open_, 0.25)).outcome == "counted"
            assert (await a.observe(early, 0.5)).outcome == "already counted"
            assert a.choose().ticket.start == 2
            assert n_known(a) == 3
            now[0] += 101.0  # a lifetime after the first restart that followed it
            with pytest.raises(InputError, match="lapsed"):
                await a.observe(later, 0.5)

    run(main())
