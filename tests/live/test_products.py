"""What products ask of a node: first pulls, withdrawals, and what becomes of rewards that never come."""

from members import counted, hear, make, observe
from processes import NodeProcess

import banditmesh as bm
from banditmesh.live.member import ALREADY_COUNTED, COUNTED, REFUSED, WITHDRAWN, Observation


def withdraw(member, ticket, now=0.0):
    """What becomes of a withdrawal."""
    [answer] = observe(member, Observation(0.0, ticket, withdraws=True), now=now)
    return answer.outcome


# --- first pulls


def test_arms_that_others_tried_are_not_tried_first_if_the_policy_says_so():
    arms = ("a", "b", "c")
    heard = [("p", 5, arm, 1000, total, 4) for arm, total in (("a", 500.0), ("b", 900.0))]
    each, unknown = (make(arms=arms, policy=bm.UCB(first_pulls=which)) for which in ("each", "unknown"))
    for member in (each, unknown):
        hear(member, "p", *heard)
    assert [each.choose(0.0)[0] for _ in range(3)] == ["a", "b", "c"]
    arm, ticket = unknown.choose(0.0)
    assert arm == "c"
    observe(unknown, Observation(0.0, ticket))
    # All three are known: the policy is asked, which would have tried c, of one observation, next.
    assert unknown.choose(0.0)[0] == "c"
    for _ in range(200):
        observe(unknown, ("c", 0.0))
    assert unknown.choose(0.0)[0] == "b"


# --- withdrawals


def test_a_withdrawal_closes_its_ticket_and_counts_nothing():
    member = make(links=("p",))
    _, ticket = member.choose(0.0)
    commit, answers = member.plan([Observation(0.0, ticket, withdraws=True)] * 2, 0.0)
    assert [one.outcome for one in answers] == [WITHDRAWN, ALREADY_COUNTED]
    assert [(one.first, one.last) for one in commit.changes.closed] == [(1, 1)]
    member.committed(commit)
    assert withdraw(member, ticket) == ALREADY_COUNTED
    assert observe(member, Observation(1.0, ticket))[0].outcome == ALREADY_COUNTED
    assert member.estimates() == {"red": (0, 0.0), "blue": (0, 0.0)}
    assert member.take("p", 10**6) == []
    assert counted(member, "observations_withdrawn", "observations_counted") == (1, 0)


def test_what_was_counted_or_never_given_is_not_withdrawn():
    member = make()
    _, ticket = member.choose(0.0)
    assert observe(member, Observation(1.0, ticket))[0].outcome == COUNTED
    assert withdraw(member, ticket) == ALREADY_COUNTED
    assert withdraw(member, ticket._replace(number=7)) == REFUSED
    assert member.estimates()["red"] == (1, 1.0)


def test_a_withdrawal_that_could_not_be_stored_has_not_happened():
    member = make()
    _, ticket = member.choose(0.0)
    commit, _ = member.plan([Observation(0.0, ticket, withdraws=True)], 0.0)
    member.failed(commit)
    assert observe(member, Observation(1.0, ticket))[0].outcome == COUNTED


def test_a_withdrawal_outlives_kill(tmp_path):
    node = NodeProcess(tmp_path / "a", "a", more='[policy]\nname = "ucb"\nfirst_pulls = "unknown"\n')
    with node, node.client() as client:
        never_shown, shown = client.choose(), client.choose()
        assert client.withdraw(never_shown) == "withdrawn"
        node.kill()
        node.start()
        assert client.observe(never_shown, 1.0) == "already_counted"
        assert client.withdraw(never_shown) == "already_closed"
        assert client.observe(shown, 1.0) == "counted"
        assert {one["name"]: one["own_count"] for one in client.state()["arms"]} == {"red": 0, "blue": 1}
        node.leave()
