"""One bad report or row: control takes in all others, and reports the bad one to people."""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import redis
from django.db import OperationalError, transaction
from django.utils import timezone

from pipeline_runtime.model.desired import NodeLoad, NodeReport, ReplicaStatus, Role
from pipeline_runtime.model.ids import Epoch, Seq
from pipeline_runtime.wire import keys, tasks
from pipeline_runtime.wire.reports import BYTES_MAX, packed
from tests.contract.control.conftest import move_ordered
from webapp.audit.models import Event
from webapp.handovers.models import Handover
from webapp.nodes.models import Node
from webapp.placements.models import GroupPlacement, Replica
from workers.control import bulkhead as bulkhead_module
from workers.control.bulkhead import TELL_AGAIN_S, Bulkhead
from workers.control.context import ControlContext
from workers.control.desired import DesiredSender
from workers.control.handovers.driver import drive_handover
from workers.control.handovers.restorations import order_restorations
from workers.control.reports import silence
from workers.control.reports.ingest import Ingest

Deployed = Callable[..., GroupPlacement]
TOO_LARGE = 2**70  # no column of a database holds it
SECRET = "hunter2-in-a-row"
LOAD = NodeLoad(
    cpu_ratio=0.5,
    memory_bytes=1,
    java_bytes=0,
    memory_total_bytes=2,
    memory_ratio=0.5,
    disk_free_bytes=10**12,
    disk_ratio=0.1,
)


def sent(
    client: redis.Redis,
    node: str,
    number: int,
    *replicas: ReplicaStatus,
    heard_ms: int | None = None,
    **fields: Any,
) -> None:
    """`heard_ms` is by Redis's clock; without it the report is heard now."""
    whole = NodeReport(
        node=node,
        run_id=f"run-of-{node}",
        number=number,
        at_ms=int(time.time() * 1000),
        version="1",
        url=f"http://{node}:1",
        revision=0,
        cores=2,
        ready=True,
        load=LOAD,
        replicas=replicas,
    ).model_dump(mode="json")
    entry = {keys.REPORT_FIELD: packed(json.dumps(whole | fields))}
    client.xadd(keys.REPORTS_STREAM, entry, id="*" if heard_ms is None else f"{heard_ms}-0")


def status(placement: GroupPlacement, seq: int) -> ReplicaStatus:
    group = f"{placement.deployment_id}.{placement.group}"
    return ReplicaStatus(group=group, role=Role.OWNER, phase="owning", epoch=Epoch(1), seq=Seq(seq))


def numbers() -> dict[str, int]:
    return dict(Node.objects.values_list("name", "report_number"))


def alerts(node: str) -> list[str]:
    return list(Event.objects.filter(kind="node.alert", node=node).values_list("message", flat=True))


# -- reports -----------------------------------------------------------------------------------------


def test_a_report_that_cannot_be_taken_in_stops_no_other(
    context: ControlContext,
    nodes: dict[str, Node],
    real_redis: redis.Redis,
    caplog: pytest.LogCaptureFixture,
) -> None:
    ingest = Ingest(context)
    for extra in (0, 1):
        sent(real_redis, "edge-a", TOO_LARGE + extra)
        sent(real_redis, "edge-b", 1 + extra)
        ingest._round()
    assert numbers() == {"edge-a": 0, "edge-b": 2, "edge-c": 0}
    [alert] = alerts("edge-a")
    assert "cannot be stored" in alert
    [record] = [record for record in caplog.records if record.name == "workers.control.bulkhead"]
    assert "nodes.py" in record.getMessage(), "the traceback is there"
    assert "OverflowError" in record.getMessage()


@pytest.mark.parametrize("wrong", [{"cores": TOO_LARGE}, {"cores": "many"}], ids=["row", "form"])
def test_a_node_that_was_heard_is_not_silent_for_what_is_wrong_with_its_report(
    context: ControlContext, nodes: dict[str, Node], real_redis: redis.Redis, wrong: dict[str, Any]
) -> None:
    Node.objects.update(last_seen_at=timezone.now() - timedelta(hours=1))
    ingest = Ingest(context)
    ingest._silence.since_ms = 0
    sent(real_redis, "edge-a", 1, **wrong)
    sent(real_redis, "edge-b", 1)
    ingest._round()
    assert dict(Node.objects.values_list("name", "up")) == {"edge-a": True, "edge-b": True, "edge-c": False}


def test_silence_that_cannot_be_noted_of_one_node_is_noted_of_the_other(
    context: ControlContext,
    nodes: dict[str, Node],
    real_redis: redis.Redis,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Node.objects.update(last_seen_at=timezone.now() - timedelta(hours=1))
    told = silence.record_event

    def fails_for_edge_a(kind: str, message: str, **fields: Any) -> Any:
        assert (kind, fields["node"]) != ("node.silent", "edge-a"), "a fault of that row"
        return told(kind, message, **fields)

    monkeypatch.setattr(silence, "record_event", fails_for_edge_a)
    ingest = Ingest(context)
    ingest._silence.since_ms = 0
    sent(real_redis, "edge-c", 1)
    ingest._round()
    assert dict(Node.objects.values_list("name", "up")) == {"edge-a": True, "edge-b": False, "edge-c": True}
    assert len(alerts("edge-a")) == 1


def test_a_replica_that_cannot_be_taken_in_stops_neither_its_node_nor_its_neighbour(
    context: ControlContext, deployed: Deployed, real_redis: redis.Redis
) -> None:
    bad, good = deployed("bad", "edge-a"), deployed("good", "edge-a")
    sent(real_redis, "edge-a", 5, status(bad, TOO_LARGE), status(good, 9))
    Ingest(context)._round()
    assert numbers()["edge-a"] == 5
    assert dict(Replica.objects.values_list("group", "seq")) == {"bad": 7, "good": 9}
    [alert] = alerts("edge-a")
    assert "The report of edge-a about bad cannot be stored" in alert


def test_an_old_row_that_cannot_be_read_is_replaced_by_the_new_report(
    context: ControlContext,
    deployed: Deployed,
    real_redis: redis.Redis,
    caplog: pytest.LogCaptureFixture,
) -> None:
    placement = deployed("power", "edge-a")
    Replica.objects.update(status={"role": SECRET})
    sent(real_redis, "edge-a", 1, status(placement, 8))
    Ingest(context)._round()
    assert Replica.objects.get().status["seq"] == 8
    assert "counts as none" in caplog.text
    assert SECRET not in caplog.text


def test_a_report_that_cannot_be_read_is_told_once_and_shows_no_value(
    context: ControlContext,
    nodes: dict[str, Node],
    real_redis: redis.Redis,
    caplog: pytest.LogCaptureFixture,
) -> None:
    ingest = Ingest(context)
    for number in (1, 2):
        sent(real_redis, "edge-a", number, cores=SECRET)
        sent(real_redis, "edge-b", number)
        real_redis.xadd(keys.REPORTS_STREAM, {"other": "field"})
        ingest._round()
    assert numbers() == {"edge-a": 0, "edge-b": 2, "edge-c": 0}
    assert len(alerts("edge-a")) == 1
    assert "cores: Input should be a valid integer" in caplog.text
    assert SECRET not in caplog.text
    assert len(caplog.records) == 2, "one of edge-a, one of nobody"


def test_what_was_not_packed_as_a_report_is_stops_nobody(
    context: ControlContext, nodes: dict[str, Node], real_redis: redis.Redis
) -> None:
    whole = zlib.compress(b'{"node": "edge-a"}')
    for raw in (b"\x00", b"", whole[:-6], zlib.compress(b" " * (BYTES_MAX + 1))):
        real_redis.xadd(keys.REPORTS_STREAM, {keys.REPORT_FIELD: raw})
    sent(real_redis, "edge-b", 1)
    Ingest(context)._round()
    assert numbers()["edge-b"] == 1


@pytest.mark.parametrize("name", [r"\ud800", r"\u0000"])
def test_a_sender_that_no_database_can_name_stops_nobody(
    context: ControlContext, nodes: dict[str, Node], real_redis: redis.Redis, name: str
) -> None:
    real_redis.xadd(keys.REPORTS_STREAM, {keys.REPORT_FIELD: packed(f'{{"node": "{name}"}}')})
    sent(real_redis, "edge-b", 1)
    Ingest(context)._round()
    assert numbers()["edge-b"] == 1


def test_a_node_whose_clock_is_wrong_is_told_of_once_and_heard_all_the_same(
    context: ControlContext, nodes: dict[str, Node], real_redis: redis.Redis
) -> None:
    ingest = Ingest(context)
    for number in range(1, 6):
        sent(real_redis, "edge-a", number, at_ms=int(time.time() * 1000) + 60_000)
        sent(real_redis, "edge-b", number)
        ingest._round()
    assert numbers() == {"edge-a": 5, "edge-b": 5, "edge-c": 0}
    [alert] = alerts("edge-a")
    assert "ahead of" in alert
    assert alerts("edge-b") == []
    [first] = Node.objects.get(name="edge-a").alerts
    sent(real_redis, "edge-a", 6, at_ms=int(time.time() * 1000) + 60_000)
    Ingest(context)._round()
    assert Node.objects.get(name="edge-a").alerts == [first], "also after a start of control"
    assert alerts("edge-a") == [alert]


# -- what is told ------------------------------------------------------------------------------------


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """[now], seconds."""
    now = [1000.0]
    monkeypatch.setattr(bulkhead_module, "monotonic", lambda: now[0])
    return now


def fail(bulkhead: Bulkhead) -> None:
    with bulkhead.only("a thing", "It broke.", "edge-a"):
        raise ValueError("of that row")


def test_what_fails_is_told_once_while_it_lasts(clock: list[float], nodes: dict[str, Node]) -> None:
    bulkhead = Bulkhead()
    for _ in range(3):
        fail(bulkhead)
        clock[0] += 2 * TELL_AGAIN_S
    assert len(alerts("edge-a")) == 1


def test_what_fails_again_soon_and_lasts_is_told_in_the_end(
    clock: list[float], nodes: dict[str, Node]
) -> None:
    bulkhead = Bulkhead()
    fail(bulkhead)
    bulkhead.works("a thing")
    fail(bulkhead)
    assert len(alerts("edge-a")) == 1
    clock[0] += TELL_AGAIN_S
    fail(bulkhead)
    assert len(alerts("edge-a")) == 2


def test_an_alert_that_was_rolled_back_is_told_again(nodes: dict[str, Node]) -> None:
    bulkhead = Bulkhead()
    with transaction.atomic():
        fail(bulkhead)
        transaction.set_rollback(True)
    assert alerts("edge-a") == []
    fail(bulkhead)
    assert len(alerts("edge-a")) == 1


def test_a_group_that_cannot_be_restored_keeps_nothing_from_the_others(
    context: ControlContext, deployed: Deployed
) -> None:
    for group in ("bad", "good"):
        deployed(group, "edge-a")
    Node.objects.filter(name="edge-a").update(up=False, silent_at=timezone.now())
    Replica.objects.filter(group="bad").update(status="unreadable", role="owner")
    order_restorations(context, Bulkhead())
    assert "good" in Handover.objects.values_list("group", flat=True)


def test_a_row_that_cannot_be_read_does_not_hold_a_handover_up(
    context: ControlContext, deployed: Deployed
) -> None:
    placement = deployed("power", "edge-a")
    Node.objects.filter(name="edge-a").update(up=False)
    Replica.objects.update(status={"role": SECRET})
    handover = move_ordered(placement, "edge-a", "edge-b")
    drive_handover(str(handover.pk), context)
    handover.refresh_from_db()
    assert handover.outcome == "failed"
    assert "does not answer" in handover.message


def test_a_report_is_read_again_when_the_database_was_away(
    context: ControlContext,
    nodes: dict[str, Node],
    real_redis: redis.Redis,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def away(*_: object) -> None:
        raise OperationalError("database is locked")

    ingest = Ingest(context)
    sent(real_redis, "edge-a", 3)
    with monkeypatch.context() as patched:
        patched.setattr(ingest._nodes, "write", away)
        with pytest.raises(OperationalError):
            ingest._round()
    assert alerts("edge-a") == []
    ingest._round()
    assert numbers()["edge-a"] == 3


# -- desired state -----------------------------------------------------------------------------------


def test_a_desired_state_never_expires_by_the_clock_of_its_node(
    context: ControlContext, deployed: Deployed, real_redis: redis.Redis
) -> None:
    deployed("power", "edge-a")
    DesiredSender(context)._round()
    [message] = real_redis.lrange(tasks.node_queue("edge-a"), 0, -1)
    assert json.loads(message)["headers"]["expires"] is None


def told(client: redis.Redis, node: str) -> int:
    return int(client.llen(tasks.node_queue(node)))


def test_a_group_that_cannot_be_read_keeps_nothing_from_the_other_nodes(
    context: ControlContext,
    deployed: Deployed,
    real_redis: redis.Redis,
    caplog: pytest.LogCaptureFixture,
) -> None:
    bad, _ = deployed("bad", "edge-a"), deployed("good", "edge-b")
    spec = bad.spec
    GroupPlacement.objects.filter(pk=bad.pk).update(spec=spec | {"elements": SECRET})
    sender = DesiredSender(context)
    sender._round()
    sender._round()
    assert (told(real_redis, "edge-a"), told(real_redis, "edge-b")) == (0, 1)
    [alert] = alerts("edge-a")
    assert "The node keeps its last desired state" in alert
    assert "replicas_of" in caplog.text, "the traceback is there"
    assert "elements: Input should be a valid tuple" in caplog.text
    assert SECRET not in caplog.text
    GroupPlacement.objects.filter(pk=bad.pk).update(spec=spec)
    sender._round()
    assert told(real_redis, "edge-a") == 1


def test_a_node_whose_row_cannot_be_read_keeps_its_backups_and_gets_no_others(
    context: ControlContext, deployed: Deployed, nodes: dict[str, Node]
) -> None:
    Node.objects.update(load=LOAD.model_dump(mode="json"))
    sender = DesiredSender(context)
    for group in ("first", "second"):
        deployed(group, "edge-a")
        before = sender._backups.plan().places
    assert {place.node for place in before.values()} == {"edge-b", "edge-c"}
    Node.objects.filter(name="edge-b").update(load=[SECRET])
    for group in ("third", "fourth", "fifth"):
        deployed(group, "edge-a")
    after = sender._backups.plan().places
    assert {group: after[group] for group in before} == before
    assert {place.node for group, place in after.items() if group not in before} == {"edge-c"}
    assert len(alerts("edge-b")) == 1


def test_a_backup_goes_to_another_site(context: ControlContext, deployed: Deployed) -> None:
    Node.objects.update(load=LOAD.model_dump(mode="json"))
    Node.objects.filter(name__in=["edge-a", "edge-b"]).update(site="hall 1")
    for group in ("first", "second"):
        deployed(group, "edge-a")
    places = DesiredSender(context)._backups.plan().places
    assert {place.node for place in places.values()} == {"edge-c"}


def test_a_group_whose_report_cannot_be_read_is_backed_up_all_the_same(
    context: ControlContext, deployed: Deployed
) -> None:
    Node.objects.update(load=LOAD.model_dump(mode="json"))
    bad, good = deployed("bad", "edge-a"), deployed("good", "edge-a")
    Replica.objects.filter(group="bad").update(status=[SECRET])
    places = DesiredSender(context)._backups.plan().places
    assert set(places) == {f"{each.deployment_id}.{each.group}" for each in (bad, good)}
    assert len(alerts("edge-a")) == 1
