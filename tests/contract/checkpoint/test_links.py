"""A node's probes of two real chunk services: one answers slowly, one dies; and of a real broker."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from pipeline_runtime.checkpoint.database import StateDatabase
from pipeline_runtime.checkpoint.service import PROBE_BYTES, chunk_service
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.model.desired import LinkReport, Peer
from tests.contract.checkpoint.services import KEY, breaking, serving
from tests.ports import free_ports
from tests.waiting import wait_until
from workers.node.checkpoints import token_minter
from workers.node.links import ROUND_TRIPS, LinkProbe, rate_of

DELAY_S = 0.2


class Slow:
    """Each answer of the service comes so much later; `asked`: the paths."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.asked: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.asked.append(Request(scope).url.path)
        await asyncio.sleep(DELAY_S)
        await self.app(scope, receive, send)


@contextmanager
def probing(bootstrap: str) -> Iterator[LinkProbe]:
    made = LinkProbe(token_minter(KEY), KafkaSettings(bootstrap), every_s=0.05, rate_after_s=0.0)
    made.start()
    yield made
    made.close()


@pytest.fixture
def probe(kafka: str) -> Iterator[LinkProbe]:
    with probing(kafka) as made:
        yield made


def test_the_way_to_the_broker_is_measured_whether_there_are_peers_or_not(probe: LinkProbe) -> None:
    wait_until(probe.broker, "a first answer")
    first = probe.broker()
    assert first is not None
    assert first.rtt_ms > 0
    wait_until(lambda: probe.broker() != first, "it is measured again")


def test_without_a_broker_peers_are_probed_on() -> None:
    (port,) = free_ports(1)
    with probing(f"127.0.0.1:{port}") as probe:
        probe.direct((Peer(node="a", url="http://127.0.0.1:99999"),))
        wait_until(lambda: probe.links(), "a round")
        probe.direct((Peer(node="b", url="http://127.0.0.1:99999"),))
        wait_until(lambda: "b" in links(probe), "another round")
        assert probe.broker() is None


def test_what_kafka_python_trips_over_ends_no_probe(kafka: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def trips(*_: object) -> float:
        raise KeyError("endpoint_type")

    monkeypatch.setattr("workers.node.links.round_trip_ms", trips)
    with probing(kafka) as probe:
        probe.direct((Peer(node="a", url="http://127.0.0.1:99999"),))
        wait_until(lambda: probe.links(), "a round")
        probe.direct((Peer(node="b", url="http://127.0.0.1:99999"),))
        wait_until(lambda: "b" in links(probe), "another round")


def links(probe: LinkProbe) -> dict[str, LinkReport]:
    return {link.peer: link for link in probe.links()}


def test_a_slow_and_a_dying_peer_are_told_apart_and_a_new_one_is_measured_at_once(
    central: StateDatabase, probe: LinkProbe
) -> None:
    slow = Slow(chunk_service(central, KEY))
    with serving(slow) as far, serving(chunk_service(central, KEY)) as near:
        probe.direct((Peer(node="far", url=far.url), Peer(node="near", url=near.url)))
        wait_until(lambda: len(probe.links()) == 2, "a round of both")
        found = links(probe)
        far_ms, near_ms = found["far"].rtt_ms, found["near"].rtt_ms
        assert far_ms is not None
        assert near_ms is not None
        assert far_ms >= DELAY_S * 1000 > near_ms
        assert found["near"].bytes_per_s
        assert found["far"].bytes_per_s
        assert slow.asked[: ROUND_TRIPS + 1] == ["/health"] * ROUND_TRIPS + ["/probe"]
        near.close()
        wait_until(lambda: links(probe)["near"].error, "the dead one is unreachable")
        assert links(probe)["near"].rtt_ms is None
        assert links(probe)["far"].error is None
        assert slow.asked.count("/probe") == 1, "the rate is measured more rarely than the round trip"
        probe.direct((Peer(node="far", url=far.url),))
        wait_until(lambda: list(links(probe)) == ["far"], "only the peer that is left")


def test_a_rate_that_breaks_off_counts_for_nothing_and_is_measured_again_by_its_bytes_alone(
    central: StateDatabase, probe: LinkProbe
) -> None:
    with serving(chunk_service(central, KEY)) as server, breaking(server.port, PROBE_BYTES // 2) as line:
        probe.direct((Peer(node="b", url=line.url),))
        wait_until(lambda: line.broken, "the line breaks")
        wait_until(lambda: probe.links() and links(probe)["b"].bytes_per_s, "it is measured")
        assert 1.5 * PROBE_BYTES <= line.passed < 2 * PROBE_BYTES


def test_a_peer_without_the_route_and_one_with_another_key_still_have_a_round_trip(
    central: StateDatabase, probe: LinkProbe
) -> None:
    with serving(chunk_service(central, "another key")) as server:
        probe.direct((Peer(node="b", url=server.url),))
        wait_until(lambda: probe.links(), "a round")
        [link] = probe.links()
        assert link.rtt_ms is not None
        assert (link.bytes_per_s, link.error) == (None, None)


def test_an_address_that_leads_nowhere_is_an_error_and_ends_no_thread(probe: LinkProbe) -> None:
    probe.direct((Peer(node="a", url="http://127.0.0.1:99999"), Peer(node="b", url="not a url")))
    wait_until(lambda: len(probe.links()) == 2, "a round")
    assert all(link.error and link.rtt_ms is None for link in probe.links())


@pytest.mark.parametrize(
    ("received", "elapsed_s", "rtt_ms", "rate"),
    [
        (1_000_000, 1.1, 100, 1_000_000),
        (1_000_000, 0.2, 190, 10_000_000),  # the round trip is at most half of it
        (0, 1.0, 1, None),
        (10, 0.0, 1, None),
    ],
)
def test_a_rate_is_of_the_bytes_and_the_time_without_the_round_trip(
    received: int, elapsed_s: float, rtt_ms: float, rate: float | None
) -> None:
    assert rate_of(received, elapsed_s, rtt_ms) == (None if rate is None else pytest.approx(rate))


def test_what_is_reported_is_json_that_is_read_again() -> None:
    link = LinkReport(peer="b", rtt_ms=1.5, bytes_per_s=None, at_ms=int(time.time() * 1000))
    assert LinkReport.model_validate(json.loads(link.model_dump_json())) == link
