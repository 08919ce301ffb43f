"""When a replica claims."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from pipeline_runtime.handover.ownership import CommitPermit, Ownership
from pipeline_runtime.handover.protocol import JournalEnd
from pipeline_runtime.journal.records import Claim
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.model.desired import ClaimOrder
from pipeline_runtime.model.ids import Epoch, Seq
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.replica.gate import GateServer
from pipeline_runtime.replica.grants import Grants
from pipeline_runtime.replica.pacing import CpuLoad
from pipeline_runtime.replica.positions import Positions
from pipeline_runtime.replica.release import OwnerRelease
from pipeline_runtime.replica.roles import Roles
from pipeline_runtime.replica.state import ReplicaState
from pipeline_runtime.spark.gate_client import GateClient

pytestmark = pytest.mark.timeout(60)
LIMIT_S = 20.0
NOWHERE = KafkaSettings("none:1")
SPEC = GroupSpec(deployment="d1", pipeline="p", group="g", elements=())


def no_journal(order: str, whole: bool) -> JournalEnd:
    raise AssertionError("nothing reads it here")


class Claims(Ownership):
    """Takes note of the orders by which it was to claim; a broker is not needed for that."""

    def __init__(self) -> None:
        super().__init__(SPEC, NOWHERE, "a", no_journal, dict)
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
    """Also the first claim of all, which says where the group begins: its query waits for that."""
    state, ownership = ReplicaState(), Claims()
    roles = Roles(SPEC.id, state, ownership, lambda: None, lambda: None)
    grants = Grants(
        SPEC, (), state, Positions(NOWHERE, (), {}, 1, state.poke), CpuLoad(), {},
        flushes=False, release=OwnerRelease(state, ownership), asked=lambda _: None,
    )  # fmt: skip
    address = gate.open(SPEC.id, grants)
    state.wishes.order = ClaimOrder(id="first", over=Epoch(0))
    assert state.caught_up

    roles.step()
    assert ownership.orders == [], "its query does not run yet"

    starts: list[dict[str, object]] = []
    query = threading.Thread(target=lambda: starts.append(GateClient(address).ask("initial")), daemon=True)
    query.start()
    assert state.connected.wait(LIMIT_S)
    roles.step()
    assert ownership.orders == ["first"]
    assert starts == []

    with state.changed:
        state.view.apply(Claim(Epoch(1), "first", "a", {"in-0": 7}))
        state.tell()
    query.join(LIMIT_S)
    assert starts[0]["seq"] == Seq(0)
