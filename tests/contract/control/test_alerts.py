"""The alerts of a node about itself: control keeps them as long as the node reports them, and makes an event
of each new one."""

from __future__ import annotations

import redis

from tests.contract.control.test_bad_rows import alerts, sent
from webapp.nodes.models import Node
from workers.control.context import ControlContext
from workers.control.reports.ingest import Ingest

FULL = "The disk is full."
AWAY = "Checkpoints do not reach the central store."


def kept() -> list[str]:
    return [alert["message"] for alert in Node.objects.get(name="edge-a").alerts]


def test_an_alert_is_kept_until_the_node_reports_it_no_more(
    context: ControlContext, nodes: dict[str, Node], real_redis: redis.Redis
) -> None:
    ingest = Ingest(context)
    sent(real_redis, "edge-a", 1, alerts=[FULL])
    ingest._round()
    [first] = Node.objects.get(name="edge-a").alerts
    sent(real_redis, "edge-a", 2, alerts=[FULL, AWAY])
    ingest._round()
    assert kept() == [FULL, AWAY]
    assert Node.objects.get(name="edge-a").alerts[0] == first, "with the time since when it is so"
    assert alerts("edge-a") == [f"edge-a: {AWAY}", f"edge-a: {FULL}"]
    sent(real_redis, "edge-a", 3, alerts=[AWAY])
    ingest._round()
    assert kept() == [AWAY]
    sent(real_redis, "edge-a", 4)
    ingest._round()
    assert kept() == []


def test_another_control_process_knows_what_was_told(
    context: ControlContext, nodes: dict[str, Node], real_redis: redis.Redis
) -> None:
    for number in (1, 2):
        sent(real_redis, "edge-a", number, alerts=[FULL])
        Ingest(context)._round()
    assert alerts("edge-a") == [f"edge-a: {FULL}"]
    assert kept() == [FULL]


def test_a_node_that_was_stopped_has_no_alerts(
    context: ControlContext, nodes: dict[str, Node], real_redis: redis.Redis
) -> None:
    sent(real_redis, "edge-a", 1, alerts=[FULL])
    Ingest(context)._round()
    sent(real_redis, "edge-a", 2, alerts=[FULL], kind="bye")
    Ingest(context)._round()
    assert kept() == []
