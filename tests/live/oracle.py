"""An oracle that knows every reward, and what nodes may therefore say at any moment.

It is told of each observation that is reported, of each transaction at the moment when it is durable, and of each
answer. From that it knows, for each (origin, epoch, arm), which counts exist and which sum each of them has. Rewards
are multiples of 1/64, so sums are exact in any order and any mistake shows.

A disk that is copied forks a life: then either branch's values are allowed, and never both together.
"""

from __future__ import annotations

import copy
import math
from collections import defaultdict
from fractions import Fraction
from itertools import combinations

from banditmesh.live.statistics import Values


class Violation(AssertionError):
    """A promise was broken."""


def by_the_text(own, others, f, sigma):
    """Tested merging: who is in and what is known then, the text's sentences in its order, in exact numbers."""
    own_count, own_sum = own
    mean = {name: Fraction(total) / Fraction(count) for name, (count, total) in others.items()}
    # "The counts of other origins are capped at C, the larger of the own count and the (f+1)-th largest of the others."
    largest = sorted((Fraction(count) for count, _ in others.values()), reverse=True)
    cap = max([Fraction(own_count), *largest[f : f + 1]])
    capped = {name: min(Fraction(count), cap) for name, (count, _) in others.items()}
    # "M is the sum of these and the own count."
    m = sum(capped.values()) + Fraction(own_count)
    if len(others) <= 2 * f or m < 4 * f * cap:
        # "The own mean is the centre, N the own count, and no other count is above the own one."
        if not own_count:
            return set(), own
        centre, n = Fraction(own_sum) / Fraction(own_count), Fraction(own_count)
        capped = {name: min(Fraction(count), n) for name, (count, _) in others.items()}
    else:
        # "The centre is the weighted median of all means": half of all weight is at or below it, and of none below it.
        weight = dict(mean)
        points = [(mean[name], capped[name]) for name in weight]
        points += [(Fraction(own_sum) / Fraction(own_count), Fraction(own_count))] if own_count else []
        centre = min(x for x, _ in points if 2 * sum(w for y, w in points if y <= x) >= m)
        n = max(Fraction(own_count), m - 2 * f * cap)
    inside = set()
    count, total = Fraction(own_count), Fraction(own_sum)
    for name, (told, _) in others.items():
        width = 3 * sigma * (1 / math.sqrt(max(told, 1)) + 1 / math.sqrt(max(n, 1)))
        if capped[name] and abs(float(mean[name] - centre)) <= width:
            inside.add(name)
            count, total = count + capped[name], total + capped[name] * mean[name]
    return inside, (float(count), float(total))


def check_belief(name, arm, own, others, f, sigma, estimate, left_out):
    """What a node believes of an arm, and whom it leaves out, is what the text says."""
    inside, (count, total) = by_the_text(own, others, f, sigma)
    is_close = math.isclose(estimate[0], count, rel_tol=1e-9)
    is_close &= math.isclose(estimate[1], total, rel_tol=1e-9, abs_tol=1e-6)
    if not is_close or {*left_out} != others.keys() - inside:
        raise Violation(
            f"{name} believes {estimate} of {arm}, without {left_out}; of own {own} and {others} the text with "
            f"{f} liars and sigma {sigma} believes {(count, total)}, with {inside}"
        )


class Branch:
    """What is durable on one disk: the present life's own statistics, and the tickets and keys that were counted.

    `given` are all tickets that were ever given by a process on it.
    """

    def __init__(self):
        self.epoch = None
        self.own = {}
        self.counted = set()
        self.given = set()
        #: By name: from before when its certificates are known to be void.
        self.expelled = {}

    def copy(self):
        return copy.deepcopy(self)


class Report:
    """An observation that was reported and not answered yet."""

    def __init__(self, arm, reward, name):
        self.arm, self.reward, self.name = arm, reward, name
        self.is_durable = False


class Oracle:
    """Knows everything.

    Attributes
    ----------
    allowed : dict
        By (origin, epoch, arm): by count, the sums that the first so many rewards have, in each branch.
    forked : set
        Lives (origin, epoch) of which there have been two disks.
    retired : set
        Lives (origin, epoch) that the authority has retired, whoever knows.
    liars : set
        Names of members that may say of themselves what they like.
    """

    def __init__(self):
        self.allowed = defaultdict(lambda: defaultdict(set))
        #: By key: all values, weights included, that its origin committed.
        self.values = defaultdict(set)
        self.forked = set()
        self.retired = set()
        self.liars = set()

    # --- what happens

    def committed(self, branch, origin, changes, reports, lapse_reward=None):
        """A transaction is durable: what it counts must be rewards that were reported and not counted before.

        With a `lapse_reward`, a ticket that was given and is closed by it may count as that, too.
        """
        if changes.life is not None and changes.life.epoch != branch.epoch:
            self._check_new_life(branch, origin, changes)
            branch.epoch = changes.life.epoch
            branch.own = {}
        if lapse_reward is not None:
            reports = [*reports, *self._lapses(branch, changes, lapse_reward)]
        for row in changes.own:
            if row.count:
                self.values[origin, branch.epoch, row.arm].add(row.values)
            count, total = branch.own.get(row.arm, (0, 0.0))
            if (row.count, row.total) != (count, total):
                more = self._explain(row, count, total, reports, branch)
                for report in more:
                    report.is_durable = True
                    branch.counted.add(report.name)
                    count, total = count + 1, total + report.reward
                    self.allowed[origin, branch.epoch, row.arm][count].add(total)
                branch.own[row.arm] = count, total
            if (row.told_count, row.told_total) != (0, 0.0):
                self.check_value((origin, branch.epoch, row.arm), row.told_count, row.told_total, f"{origin} told")

    @staticmethod
    def _lapses(branch, changes, lapse_reward):
        """What tickets that this transaction closes would count as if nothing had settled them."""
        for ticket in branch.given:
            name = ticket.epoch, ticket.start, ticket.number
            is_closed = any(
                one.start == ticket.start and one.first <= ticket.number <= one.last for one in changes.closed
            )
            if ticket.epoch == branch.epoch and is_closed and name not in branch.counted:
                yield Report(ticket.arm, lapse_reward, name)

    def _check_new_life(self, branch, origin, changes):
        """Promise 2 at a new life: what the old one observed, or more, is in the table from then on."""
        moved = {tuple(entry.key): (entry.count, entry.total) for entry in changes.entries}
        for arm, value in branch.own.items():
            if moved.get((origin, branch.epoch, arm), (0, 0.0)) < value and (origin, branch.epoch) not in self.retired:
                raise Violation(f"{origin} begins a new life and leaves {value} of {arm} behind")

    def gave(self, branch, ticket):
        """A ticket was given: no other one is the same."""
        if ticket in branch.given:
            raise Violation(f"ticket {ticket} was given twice")
        branch.given.add(ticket)

    @staticmethod
    def _explain(row, count, total, reports, branch):
        waiting = [
            report
            for report in reports
            if report.arm == row.arm and not report.is_durable and report.name not in branch.counted
        ]
        for more in combinations(waiting, row.count - count):
            is_once = len({report.name for report in more}) == len(more)
            if is_once and total + sum(report.reward for report in more) == row.total:
                return more
        raise Violation(
            f"{row.arm} went from {(count, total)} to {(row.count, row.total)}, which is no sum of what was reported"
        )

    def answered(self, report, is_counted, is_already, branch):
        """An observation was answered."""
        if is_counted and not report.is_durable:
            raise Violation(f"{report.name} was acknowledged before it was durable")
        if is_already and report.name not in branch.counted:
            raise Violation(f"{report.name} was called already counted, and never was")
        if not is_counted and report.is_durable:
            raise Violation(f"{report.name} was counted, and the caller was told that it was not")

    # --- what must hold

    def check_value(self, key, count, total, where):
        """Promise 1: a count with exactly the sum of the first so many rewards."""
        sums = self.allowed[key].get(count, ()) if key in self.allowed else ()
        if total not in sums:
            raise Violation(f"{where}: {key} has {count} rewards with sum {total}, the truth is {set(sums) or 'none'}")

    def check_values(self, key, values, where):
        """Promise 1 of weights: what was told was committed just so, unless a link of version 1 left weights out."""
        is_stripped = values == Values.of(values.count, values.total)
        if key[0] not in self.liars and not is_stripped and values not in self.values[key]:
            raise Violation(f"{where}: {key} has {values}, which its origin never committed")

    def check_node(self, name, own, table, estimates, epoch, lies=(), trust=None):
        """Promise 1 at one node: its own statistics, its table but for lies, and its estimates, which are their sum.

        Where it bears liars they are of what it believes; `trust` has how many, sigma, and whom it leaves out, by arm.
        """
        mine, others = {arm: [0, 0.0] for arm in estimates}, {arm: {} for arm in estimates}
        for arm, (count, total, told_count, told_total) in own.items():
            if count:
                self.check_value((name, epoch, arm), count, total, f"own of {name}")
            if told_count:
                self.check_value((name, epoch, arm), told_count, told_total, f"told by {name}")
            if told_count > count:
                raise Violation(f"{name} told {told_count} of {arm} and has {count}")
            if arm in mine:
                mine[arm] = [count, total]
        for key, (count, total) in table.items():
            if key[0] not in self.liars and key not in lies:
                self.check_value(key, count, total, f"table of {name}")
            if (key[0], key[1]) == (name, epoch):
                raise Violation(f"{name} has its present life in its table: {key}")
            if key[2] in mine:
                sums = mine[key[2]] if key[0] == name else others[key[2]].setdefault(key[0], [0, 0.0])
                sums[0] += count
                sums[1] += total
        for arm, estimate in estimates.items():
            if trust is None:
                parts = [mine[arm], *others[arm].values()]
                if (sum(part[0] for part in parts), sum(part[1] for part in parts)) != estimate:
                    raise Violation(f"{name} estimates {arm} by {estimate}, own and table have {parts}")
            else:
                f, sigma, left_out = trust
                check_belief(name, arm, mine[arm], others[arm], f, sigma, estimate, left_out.get(arm, ()))

    def check_restart(self, name, own, branch):
        """Promise 2: what was durable is there again."""
        found = {arm: (count, total) for arm, (count, total, *_) in own.items() if count}
        if found != branch.own:
            raise Violation(f"{name} restarted with {found}, on its disk was {branch.own}")
