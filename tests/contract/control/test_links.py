"""The peers that control orders nodes to probe, and the rows that it makes of their reports."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import redis
from django.db import connection
from django.test.utils import CaptureQueriesContext

from pipeline_runtime.model.desired import BrokerReport, LinkReport
from pipeline_runtime.placement.links import WEIGHT
from tests.contract.control.test_bad_rows import sent
from webapp.nodes.links import broker_ways, links_now, site_links, stream_ways
from webapp.nodes.models import GivenLatency, Link, Node
from webapp.placements.fleet import Fleet
from workers.control.context import ControlContext
from workers.control.desired import peers_of
from workers.control.reports.ingest import Ingest

T0 = 1_700_000_000_000


def reported(ingest: Ingest, client: redis.Redis, number: int, *links: LinkReport) -> None:
    sent(client, "edge-a", number, links=[link.model_dump(mode="json") for link in links])
    ingest._round()


def of(peer: str, at_ms: int, rtt_ms: float | None, rate: float | None = None, **more: Any) -> LinkReport:
    bytes_at_ms = more.pop("bytes_at_ms", None if rate is None else at_ms)
    return LinkReport(
        peer=peer, at_ms=at_ms, rtt_ms=rtt_ms, bytes_per_s=rate, bytes_at_ms=bytes_at_ms, **more
    )


def test_a_node_is_told_its_peers_whether_they_are_up_or_not(nodes: dict[str, Node]) -> None:
    Node.objects.filter(name="edge-b").update(up=False)
    Node.objects.create(name="edge-d")  # never heard: nobody knows where it can be reached
    found = peers_of(nodes["edge-a"], Node.objects.all())
    assert [(peer.node, peer.url) for peer in found] == [
        ("edge-b", "http://edge-b:1"),
        ("edge-c", "http://edge-c:1"),
    ]
    Node.objects.filter(name__in=["edge-a", "edge-b"]).update(site="hall")
    found = peers_of(Node.objects.get(name="edge-a"), Node.objects.all())
    assert [peer.node for peer in found] == ["edge-c"]


def test_the_way_to_the_broker_is_smoothed_and_counts_for_streams(
    context: ControlContext, nodes: dict[str, Node], real_redis: redis.Redis
) -> None:
    assert broker_ways() == []
    ingest = Ingest(context)
    for number, (at_ms, rtt_ms) in enumerate([(T0, 40), (T0, 40), (T0 + 30_000, 50)]):
        probe = BrokerReport(at_ms=at_ms, rtt_ms=rtt_ms).model_dump()
        sent(real_redis, "edge-a", number + 1, broker=probe)
        sent(real_redis, "edge-b", number + 1, broker=BrokerReport(at_ms=T0, rtt_ms=1).model_dump())
        ingest._round()
    sent(real_redis, "edge-a", 4)  # an older one, or one that has just started
    ingest._round()
    smoothed_ms = 40 + WEIGHT * 10
    assert [(way.site, way.latency_ms) for way in broker_ways()] == [
        ("edge-a", smoothed_ms / 2),
        ("edge-b", 0.5),
    ]
    assert Fleet().ground(None, {}, {}).by_broker(["edge-a", "edge-b"])
    GivenLatency.objects.create(origin="edge-b", target="edge-a", ms=3.0)
    GivenLatency.objects.create(origin="edge-b", target="edge-b", ms=7.0)  # the diagonal is not used
    assert stream_ways() == {
        ("edge-a", "edge-a"): 0.0,
        ("edge-a", "edge-b"): smoothed_ms / 2 + 0.5,
        ("edge-b", "edge-a"): 3.0,
        ("edge-b", "edge-b"): 0.0,
    }
    assert not Fleet().ground(None, {}, {}).by_broker(["edge-a", "edge-b"])


def test_probes_are_smoothed_each_once_and_what_is_probed_no_more_is_gone(
    context: ControlContext, nodes: dict[str, Node], real_redis: redis.Redis
) -> None:
    ingest = Ingest(context)
    reported(ingest, real_redis, 1, of("edge-b", T0, 10, 1e6), of("edge-c", T0, 2))
    first = of("edge-b", T0 + 30_000, 20, 1e6, bytes_at_ms=T0)
    for number in (2, 3):  # the same probe in two reports
        reported(ingest, real_redis, number, first, of("edge-c", T0, 2))
    link = Link.objects.get(target=nodes["edge-b"])
    assert link.rtt_ms == 10 + WEIGHT * 10
    assert link.bytes_per_s == 1e6
    assert link.measured_at == datetime.fromtimestamp(T0 / 1000 + 30, UTC)
    # Control starts again. Then a new rate comes, and one peer is no longer probed.
    reported(Ingest(context), real_redis, 4, first, of("edge-c", T0, 2))
    assert Link.objects.get(target=nodes["edge-b"]).rtt_ms == 10 + WEIGHT * 10
    reported(ingest, real_redis, 5, of("edge-b", T0 + 60_000, 13, 2e6))
    [link] = Link.objects.all()
    assert link.bytes_per_s == 1e6 + WEIGHT * 1e6


def test_what_does_not_answer_is_unreachable_since_then_and_begins_fresh(
    context: ControlContext, nodes: dict[str, Node], real_redis: redis.Redis
) -> None:
    ingest = Ingest(context)
    reported(ingest, real_redis, 1, of("edge-b", T0, 10, 1e6))
    for number in (2, 3):
        reported(ingest, real_redis, number, of("edge-b", T0 + number * 30_000, None, error="timed out"))
    [broken] = links_now()[1]
    assert (broken.a, broken.b) == ("edge-a", "edge-b")
    assert broken.since == datetime.fromtimestamp(T0 / 1000 + 60, UTC)
    assert site_links() == []
    Node.objects.filter(name="edge-b").update(up=False)
    assert links_now()[1] == [], "a node that is down says nothing of the line"
    assert {link.latency_ms for link in site_links()} == {5}, "what was known of it holds"
    reported(ingest, real_redis, 4, of("edge-b", T0 + 120_000, 40))
    assert Link.objects.get().rtt_ms == 40
    assert Link.objects.get().unreachable_since is None


def test_a_report_without_links_is_taken_and_the_same_links_cost_no_query(
    context: ControlContext, nodes: dict[str, Node], real_redis: redis.Redis
) -> None:
    ingest = Ingest(context)
    reported(ingest, real_redis, 1, of("edge-b", T0, 10), of("edge-a", T0, 1), of("unknown", T0, 1))
    assert Link.objects.count() == 1, "neither to itself nor to a node that nobody knows"
    sent(real_redis, "edge-a", 2)
    ingest._round()
    assert Node.objects.get(name="edge-a").report_number == 2
    assert Link.objects.count() == 1, "a node that has just started has not measured yet"
    with CaptureQueriesContext(
        connection,
    ) as queries:
        reported(ingest, real_redis, 3, of("edge-b", T0, 10), of("edge-a", T0, 1), of("unknown", T0, 1))
    assert not [query for query in queries if "nodes_link" in query["sql"]]
