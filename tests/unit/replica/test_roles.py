"""When a replica claims."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import cast

import pytest

from pipeline_runtime.batch.gate import GateServer
from pipeline_runtime.batch.gate_client import GateClient
from pipeline_runtime.batch.gate_messages import FirstToken
from pipeline_runtime.handover.ownership import CommitPermit, Ownership
from pipeline_runtime.handover.protocol import JournalEnd, Owning, Refused
from pipeline_runtime.journal.records import Boundary, Claim, Commit
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.kafka.transactions import Transactions
from pipeline_runtime.model.desired import ClaimOrder, Role
from pipeline_runtime.model.ids import Epoch, Seq
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.replica.roles import Roles
from pipeline_runtime.replica.state import ReplicaState
from tests.permits import unused_permit
from tests.unit.replica.one_run import one_run

NOWHERE = KafkaSettings("none:1")
NO_TRANSACTIONS = cast(Transactions, None)  # nothing is committed here
SPEC = GroupSpec(deployment="d1", pipeline="p", group="g", elements=())


class NoJournal:
    """Nothing reads it here."""

    def read_for(self, order_id: str, whole: bool) -> JournalEnd:
        raise AssertionError

    def listen(self, round_trip_ms: float) -> bool:
        raise AssertionError

    def stop_listening(self) -> None: ...


class Claims(Ownership):
    """Takes note of the orders by which it was to claim; a broker is not needed for that."""

    def __init__(self) -> None:
        super().__init__(SPEC, NOWHERE, "a", NoJournal(), lambda _: {}, bool, lambda _: None)
        self.orders: list[str] = []

    def claim(self, order: ClaimOrder) -> CommitPermit | None:
        self.orders.append(order.id)
        return None


@pytest.fixture
def gate() -> Iterator[GateServer]:
    server = GateServer()
    yield server
    server.close()


def test_a_new_groups_replica_claims_once_its_query_has_connected_to_the_gate(gate: GateServer) -> None:
    """Also the first claim of all, which says where the group begins: its first batch waits for that."""
    state, ownership = ReplicaState(), Claims()
    roles = Roles(SPEC.id, state, ownership, lambda: None, lambda: None)
    run = one_run(state, ownership=ownership)
    address = gate.open(SPEC.id, run.keeper)
    state.order = ClaimOrder(id="first", over=Epoch(0))
    assert state.caught_up

    roles.step()
    assert ownership.orders == [], "its query does not run yet"

    query = GateClient(address)
    query.ask(FirstToken())
    roles.step()
    assert ownership.orders == ["first"]
    assert run.planner._start().ends == {"in-0": 0, "in-1": 0}
    state.view.apply(Claim(Epoch(1), "first", "a", {"in-0": 7}))
    assert run.planner._start() == Boundary(Seq(0), {"in-0": 7}, 0)
    query.close()


@pytest.mark.parametrize(
    ("behind", "claims_at"),
    [
        ([0], 0),
        ([3, 2, 1, 0], 3),  # nobody commits meanwhile
        ([8, 8, 8, 8, 8, 8, 8, 8, 8, 8], 8),  # an owner that is as fast: one round, no more
        ([4, 5, 6, 7, 8, 9, 10], 4),  # a faster one, too
        ([8, 7, 7, 6, 6, 5, 5, 4, 4, 4, 4, 4, 4], 12),  # half was gained, so there is another round
    ],
)
def test_who_is_to_claim_follows_as_long_as_it_gains_on_an_owner_that_goes_on(
    behind: list[int], claims_at: int
) -> None:
    """`behind`: how many batches, each time that it has processed one more."""
    state, ownership = ReplicaState(), Claims()
    roles = Roles(SPEC.id, state, ownership, lambda: None, lambda: None)
    state.connected.set()
    state.view.apply(Claim(Epoch(1), "first", "a", {}))
    state.order = ClaimOrder(id="second", over=Epoch(1))
    claimed = []
    for processed, ahead in enumerate(behind):
        state.local = Seq(processed)
        for seq in range(state.view.last_seq + 1, processed + ahead + 1):
            state.view.apply(Commit(Epoch(1), Boundary(Seq(seq), {}, seq)))
        roles.step()
        if ownership.orders and not claimed:
            claimed.append(processed)
    assert claimed == [claims_at]


def test_who_has_to_follow_another_definition_first_claims_only_when_it_is_level() -> None:
    state, ownership = ReplicaState(wanted_definition="v2"), Claims()
    roles = Roles(SPEC.id, state, ownership, lambda: None, lambda: None)
    state.connected.set()
    state.view.apply(Claim(Epoch(1), "first", "a", {}, definition="v1"))
    state.order = ClaimOrder(id="second", over=Epoch(1))
    for seq in range(1, 11):
        state.view.apply(Commit(Epoch(1), Boundary(Seq(seq), {}, seq), definition="v1"))
        state.local = Seq(seq - 1)
        roles.step()
    assert ownership.orders == []
    state.local = Seq(10)
    roles.step()
    assert ownership.orders == ["second"]


class OvertakenOnce(Claims):
    """Somebody else initialises in between, at its first claim."""

    def claim(self, order: ClaimOrder) -> CommitPermit | None:
        super().claim(order)
        if len(self.orders) == 1:
            self.state = Refused(order, "another replica claimed at the same time")
            return None
        return unused_permit(order.over + 1)


def test_an_idle_owner_stands_down_as_soon_as_its_journal_grants_another() -> None:
    state, ownership = ReplicaState(), Claims()
    roles = Roles(SPEC.id, state, ownership, lambda: None, lambda: None)
    ownership.state = Owning(ClaimOrder(id="first", over=Epoch(2)), Epoch(3))
    state.permit = unused_permit(3)
    roles.set(Role.OWNER, "owning")
    state.view.apply(Claim(Epoch(3), "first", "a", {}))
    roles.step()
    assert roles.role is Role.OWNER

    state.view.apply(Claim(Epoch(4), "second", "b", {}))
    roles.step()
    assert (roles.role, roles.phase) == (Role.STOPPED, "fenced")
    assert state.permit is None


@pytest.mark.parametrize(
    ("newest", "stands_down"),
    [
        (Claim(Epoch(3), "first", "a", {}), False),
        (Claim(Epoch(4), "first", "a", {}), False),  # its own, whose answer was lost
        (Claim(Epoch(4), "second", "b", {}), True),
    ],
)
def test_an_owner_in_doubt_stands_down_only_for_one_that_was_granted(
    newest: Claim, stands_down: bool
) -> None:
    state, ownership = ReplicaState(), OvertakenOnce()
    roles = Roles(SPEC.id, state, ownership, lambda: None, lambda: None)
    state.connected.set()
    state.permit = unused_permit(3)
    roles.order_done = "first"
    state.view.apply(Claim(Epoch(3), "first", "a", {}))
    roles.claim_again("its commit was not answered")
    state.view.apply(newest)

    roles.step()
    if stands_down:
        assert roles.phase == "fenced"
        return
    assert not roles.ended
    roles.step()
    assert roles.role is Role.OWNER
    assert ownership.orders == ["first", "first"]


class Refusing(Claims):
    """The order is out of date."""

    def claim(self, order: ClaimOrder) -> CommitPermit | None:
        self.state = Refused(order, "it came too late")
        return super().claim(order)


class Watched(Roles):
    """Takes note of what another thread can read of it, each time that something has changed."""

    seen: list[tuple[str | None, str]]

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, value)
        if hasattr(self, "seen"):
            reader = threading.Thread(target=self._look)
            reader.start()
            reader.join()

    def _look(self) -> None:
        if self._state.changed.acquire(blocking=False):
            self.seen.append((self._state.order_refused, self.phase))
            self._state.changed.release()


def test_who_reads_of_a_refusal_reads_what_came_of_it() -> None:
    state = ReplicaState()
    told: list[tuple[str | None, str]] = []
    roles = Watched(
        SPEC.id, state, Refusing(), lambda: None, lambda: told.append((state.order_refused, roles.phase))
    )
    roles.seen = []
    state.connected.set()
    state.order = ClaimOrder(id="late", over=Epoch(0))

    roles.step()
    assert {read for read in roles.seen if read[0] is not None} <= {("it came too late", "following")}
    assert told[-1] == ("it came too late", "following")
