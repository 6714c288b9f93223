"""Job, task, attempt, order, lease and node, driven through the engine's own steps in any order that hypothesis thinks
of, beside a shop that forgets, lies, loses replies and takes machines back, with a server that dies at any named point.

For long, and to have a failure shrunk:
    CRUCIBLE_LIFECYCLES=2000 CRUCIBLE_STEPS=50 pytest --timeout=0 tests/property/test_lifecycle_machine.py"""

import os

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from crucible.engine.failpoints import POINTS
from crucible.engine.wakes import Kind
from crucible.model.job import Job
from crucible.model.lease import Lease, LeasePhase, Order
from crucible.model.task import Task
from property.lifecycle_invariants import broken_by, is_over
from property.lifecycle_world import Agent, LifeWorld, PretendRank
from property.shop import Buying, Deleting, Listing

LIFECYCLES = int(os.environ.get("CRUCIBLE_LIFECYCLES", "25"))
STEPS = int(os.environ.get("CRUCIBLE_STEPS", "30"))
# A failure is shown as it was found: to make it small takes minutes.
PHASES = tuple(Phase) if "CRUCIBLE_LIFECYCLES" in os.environ else (Phase.reuse, Phase.generate)
MOST_JOBS = 3
BUYING: tuple[Buying, ...] = ("answered", "answered", "lost reply", "error before", "refused")
DELETING: tuple[Deleting, ...] = ("done", "lying", "failing")
LISTING: tuple[Listing, ...] = ("whole", "whole", "lagging", "omitting", "failing")
# Where a server knows that it will buy, or has bought, and nobody else does.
PURCHASE = [point for point in sorted(POINTS) if point.startswith(("create.", "commit.order."))]
# Nothing in the policy waits for longer than the rounds of the end take together.
ROUNDS = 400
ROUND_S = 7.0

which = st.integers(0, 30)
sizes = st.sampled_from([0, 1, 2, 3, 4])


class Lifecycles(RuleBasedStateMachine):
    """At a cloud: what the catalog proposes is bought, spot machines among it, and a token is never bought twice."""

    is_cloud = True

    def __init__(self) -> None:
        super().__init__()
        self.world = LifeWorld(has_tokens=self.is_cloud, counts_stock=not self.is_cloud)
        self.is_broken = False

    # --- people -------------------------------------------------------------------------------------

    @initialize(gpus=sizes, limit=st.integers(0, 1), is_elastic=st.booleans())
    def somebody_begins(self, gpus: int, limit: int, is_elastic: bool) -> None:
        self.world.submit(gpus, limit, is_elastic)

    @precondition(lambda self: len(self.open(Job)) < MOST_JOBS)
    @rule(gpus=sizes, limit=st.integers(0, 1), is_elastic=st.booleans())
    def somebody_submits(self, gpus: int, limit: int, is_elastic: bool) -> None:
        self.world.submit(gpus, limit, is_elastic)

    @precondition(lambda self: self.open(Job))
    @rule(which=which, wish=st.sampled_from(["cancel", "hold", "release", "release"]))
    def somebody_wishes(self, which: int, wish: str) -> None:
        self.world.wish(pick(self.open(Job), which).id, wish)

    # --- the server ---------------------------------------------------------------------------------

    @rule()
    def the_cycle_places(self) -> None:
        self.world.place()

    @precondition(lambda self: self.world.seen.rows)
    @rule()
    def the_server_works(self) -> None:
        """As it does when nothing disturbs it, but for a look at the shop."""
        self.world.look_for_due()
        self.world.place()
        self.world.work_off()

    @precondition(lambda self: not self.world.context.wakes.is_idle)
    @rule(most=st.integers(1, 3))
    def somebody_looks_at_what_is_awake(self, most: int) -> None:
        self.world.work_off(most)

    @precondition(lambda self: self.world.seen.rows)
    @rule(kind=st.sampled_from(["task", "order", "job"]), which=which)
    def somebody_looks_at_a_row(self, kind: Kind, which: int) -> None:
        rows = self.world.seen.all({"task": Task, "order": Order, "job": Job}[kind])
        if rows:
            self.world.step(kind, pick(rows, which).id)

    @rule(buying=st.sampled_from(BUYING), deleting=st.sampled_from(DELETING), listing=st.sampled_from(LISTING))
    def the_shop_changes_its_mood(self, buying: Buying, deleting: Deleting, listing: Listing) -> None:
        """Until it changes again, or all comes to its end."""
        shop = self.world.shop
        shop.buying, shop.deleting, shop.listing = buying, deleting, listing

    @precondition(lambda self: self.open(Order))
    @rule(which=which, how=st.sampled_from(BUYING), point=st.none() | st.sampled_from(PURCHASE))
    def an_order_is_bought(self, which: int, how: Buying, point: str | None) -> None:
        shop, before = self.world.shop, self.world.shop.buying
        shop.buying, self.world.dies_at = how, point or self.world.dies_at
        self.world.step("order", pick(self.open(Order), which).id)
        shop.buying = before

    @precondition(lambda self: self.leaving())
    @rule(which=which, how=st.sampled_from(DELETING))
    def a_lease_is_given_back(self, which: int, how: Deleting) -> None:
        shop, before = self.world.shop, self.world.shop.deleting
        shop.deleting = how
        self.world.step("order", pick(self.leaving(), which).order_id)
        shop.deleting = before

    @precondition(lambda self: self.world.seen.rows)
    @rule(how=st.sampled_from(LISTING))
    def the_shop_is_listed(self, how: Listing) -> None:
        shop, before = self.world.shop, self.world.shop.listing
        shop.listing = how
        self.world.sweep()
        shop.listing = before

    @precondition(lambda self: self.world.dies_at is None)
    @rule(point=st.sampled_from(sorted(POINTS)))
    def the_server_will_die(self, point: str) -> None:
        self.world.dies_at = point

    @rule()
    def the_server_is_started_again(self) -> None:
        self.world.restart()

    # --- machines and nodes -------------------------------------------------------------------------

    @precondition(lambda self: self.agents())
    @rule(which=which)
    def a_node_talks(self, which: int) -> None:
        self.world.talk(pick(self.agents(), which))

    @precondition(lambda self: self.agents())
    @rule()
    def every_node_talks(self) -> None:
        for agent in self.agents():
            self.world.talk(agent)

    @precondition(lambda self: self.running())
    @rule(which=which, code=st.sampled_from([0, 0, 1]))
    def a_program_ends(self, which: int, code: int) -> None:
        self.world.exit_rank(pick(self.running(), which), code)

    @precondition(lambda self: self.agents())
    @rule(which=which, is_cut_off=st.booleans())
    def a_node_is_cut_off_or_back(self, which: int, is_cut_off: bool) -> None:
        pick(self.agents(), which).is_cut_off = is_cut_off

    @precondition(lambda self: self.agents())
    @rule(which=which, was_taken=st.booleans())
    def a_machine_ends(self, which: int, was_taken: bool) -> None:
        self.world.shop.end(pick(self.agents(), which).thing.id, "it ended", was_taken=was_taken)

    @precondition(lambda self: self.world.shop.alive())
    @rule(price=st.sampled_from([500_001, 777_777, 999_999]))
    def the_price_of_spot_machines_moves(self, price: int) -> None:
        self.world.shop.move_price(price)

    @rule(seconds=st.sampled_from([1, 5, 20, 60, 100, 700]))
    def time_passes(self, seconds: int) -> None:
        self.world.pass_time(seconds)

    @precondition(lambda self: self.is_unfinished())
    @rule(rounds=st.integers(1, 3))
    def life_goes_on(self, rounds: int) -> None:
        """Everybody does what is next, so that lives become long."""
        for _ in range(rounds):
            self.live_on()

    # --- what must be so ----------------------------------------------------------------------------

    @invariant()
    def nothing_is_broken(self) -> None:
        self.world.boot()
        broken = broken_by(self.world)
        self.is_broken = bool(broken)
        assert not broken, "\n".join(broken)

    def teardown(self) -> None:
        try:
            if not self.is_broken:
                self.come_to_an_end()
        finally:
            self.world.close()

    def come_to_an_end(self) -> None:
        """In a calm world everything ends by itself, nothing is left, and the database holds what was committed."""
        world = self.world
        world.dies_at = None
        world.shop.buying, world.shop.deleting, world.shop.listing = "answered", "done", "whole"
        for job in self.open(Job):
            world.wish(job.id, "release")
        for agent in self.agents():
            agent.is_cut_off = False
        rounds = 0
        while self.is_unfinished() and rounds < ROUNDS:
            rounds += 1
            self.live_on()
            self.programs_end()
        left = [row for row in world.seen.rows.values() if not is_over(row)]
        assert not left and not world.shop.alive(), f"not over after {rounds} rounds: {left} {world.shop.alive()}"
        self.nothing_is_broken()
        assert world.differences() == []

    def live_on(self) -> None:
        world = self.world
        world.pass_time(ROUND_S)
        world.look_for_due()
        world.sweep()
        world.place()
        world.work_off()
        world.boot()
        for agent in self.agents():
            world.talk(agent)
        world.work_off()
        self.nothing_is_broken()

    def programs_end(self) -> None:
        for rank in self.running():
            if not rank.is_told_to_stop:
                self.world.exit_rank(rank, 0)

    def is_unfinished(self) -> bool:
        return any(not is_over(row) for row in self.world.seen.rows.values()) or bool(self.world.shop.alive())

    def open(self, kind: type) -> list:
        return [row for row in self.world.seen.all(kind) if not is_over(row)]

    def leaving(self) -> list[Lease]:
        return [lease for lease in self.open(Lease) if lease.phase is LeasePhase.CLOSING]

    def agents(self) -> list[Agent]:
        return [agent for agent in self.world.agents.values() if agent.thing.is_alive]

    def running(self) -> list[PretendRank]:
        return [rank for agent in self.agents() for rank in agent.running]


class LifecyclesWithoutTokens(Lifecycles):
    """From a stock that is counted, and asking twice buys twice."""

    is_cloud = False


def pick(rows: list, which: int):
    return rows[which % len(rows)]


@pytest.mark.parametrize("machine", [Lifecycles, LifecyclesWithoutTokens])
def test_whatever_happens_nothing_is_leaked_lost_or_doubled(machine: type[Lifecycles]) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=LIFECYCLES,
            stateful_step_count=STEPS,
            phases=PHASES,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            print_blob=True,
        ),
    )
