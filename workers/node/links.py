"""Measures the links to the node's peers and to the Kafka broker.

For a peer it measures how long a small request takes and how fast the peer sends; for the broker, how long a
request takes. One probe runs at a time, for no more peers than control has named, and each takes at most some
seconds. docs/explanation/map.md says what that costs.
"""

from __future__ import annotations

import http.client
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from pipeline_runtime.checkpoint import access
from pipeline_runtime.kafka.clients import KafkaError, KafkaSettings
from pipeline_runtime.kafka.health import round_trip_ms
from pipeline_runtime.model.desired import BrokerReport, LinkReport, Peer

log = logging.getLogger(__name__)

EVERY_S = 30.0
RATE_EVERY_S = 600.0
RATE_AFTER_S = 60.0
"""A node that has just started is busy, and would measure that."""
ROUND_TRIPS = 3
"""The smallest of them counts: the rest is time in one of the two processes."""
ANSWER_S = 2.0
"""A peer that takes longer for one step counts as unreachable."""
RATE_S = 5.0
"""A slower link is measured by what has come until then."""
RATE_BYTES_MAX = 1 << 20
_PIECE_BYTES = 1 << 16


@dataclass(frozen=True)
class Rate:
    bytes_per_s: float | None  # None if the peer does not offer it
    at_ms: int
    at_s: float  # monotonic


def rate_of(received_bytes: int, elapsed_s: float, rtt_ms: float) -> float | None:
    """Returns the bytes per second of an answer that was complete `elapsed_s` after it was asked for.

    The round trip before the first byte does not count, but at least half of the time does.
    """
    if received_bytes <= 0 or elapsed_s <= 0:
        return None
    return received_bytes / max(elapsed_s - rtt_ms / 1000, elapsed_s / 2)


class LinkProbe:
    """A thread that probes the peers, and follows a change of the peers at once."""

    def __init__(
        self,
        tokens: Callable[[str], str],
        kafka: KafkaSettings,
        every_s: float = EVERY_S,
        rate_after_s: float = RATE_AFTER_S,
    ) -> None:
        """`tokens(scope)` makes the token that a peer's service asks for."""
        self._tokens = tokens
        self._kafka = kafka
        self._every_s = every_s
        self._rates_from_s = time.monotonic() + rate_after_s
        self._peers: tuple[Peer, ...] = ()
        self._links: tuple[LinkReport, ...] = ()  # replaced as a whole, so it is read without a lock
        self._broker: BrokerReport | None = None
        self._rates: dict[Peer, Rate] = {}
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="link probes", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Starts no further probe. One that runs ends with the process."""
        self._closing.set()
        self._wake.set()

    def direct(self, peers: tuple[Peer, ...]) -> None:
        if peers != self._peers:
            self._peers = peers
            self._wake.set()

    def links(self) -> tuple[LinkReport, ...]:
        """Returns the probes of the newest round, one for each peer at that time."""
        return self._links

    def broker(self) -> BrokerReport | None:
        """Returns the newest probe of the broker that was answered, or None."""
        return self._broker

    def _run(self) -> None:
        while not self._closing.is_set():
            self._wake.clear()
            self._round(self._peers)
            if not self._closing.is_set():
                self._probe_broker()
            self._wake.wait(self._every_s)

    def _round(self, peers: tuple[Peer, ...]) -> None:
        self._rates = {peer: rate for peer, rate in self._rates.items() if peer in peers}
        found = []
        for peer in peers:
            if self._closing.is_set():
                return
            found.append(self._probed(peer))
        self._links = tuple(found)

    def _probe_broker(self) -> None:
        try:
            rtt_ms = round_trip_ms(self._kafka, ROUND_TRIPS, ANSWER_S)
        except (KafkaError, OSError) as error:
            log.debug("the broker does not answer a probe: %s", error)
            return
        except Exception:
            # The links to the peers are measured whatever kafka-python does with a broker.
            log.warning("the way to the broker could not be measured", exc_info=True)
            return
        self._broker = BrokerReport(rtt_ms=round(rtt_ms, 3), at_ms=_now_ms())

    def _probed(self, peer: Peer) -> LinkReport:
        try:
            rtt_ms, rate = self._measured(peer)
        except (OSError, http.client.HTTPException, ValueError) as error:  # ValueError: an impossible URL
            log.debug("%s does not answer at %s: %s", peer.node, peer.url, error)
            return LinkReport(peer=peer.node, at_ms=_now_ms(), error=str(error) or type(error).__name__)
        return LinkReport(
            peer=peer.node,
            rtt_ms=rtt_ms,
            bytes_per_s=rate.bytes_per_s if rate else None,
            at_ms=_now_ms(),
            bytes_at_ms=rate.at_ms if rate else None,
        )

    def _measured(self, peer: Peer) -> tuple[float, Rate | None]:
        url = urlsplit(peer.url)
        kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
        connection = kind(url.hostname or "", url.port, timeout=ANSWER_S)
        try:
            connection.connect()  # not part of any round trip
            rtt_ms = round(min(_round_trip_ms(connection) for _ in range(ROUND_TRIPS)), 3)
            if self._rate_is_due(peer):
                measured = _fetched_rate(connection, self._tokens(access.PROBE), rtt_ms)
                self._rates[peer] = Rate(measured, _now_ms(), time.monotonic())
            return rtt_ms, self._rates.get(peer)
        finally:
            connection.close()

    def _rate_is_due(self, peer: Peer) -> bool:
        now_s, rate = time.monotonic(), self._rates.get(peer)
        return now_s >= self._rates_from_s if rate is None else now_s - rate.at_s >= RATE_EVERY_S


def _round_trip_ms(connection: http.client.HTTPConnection) -> float:
    started = time.perf_counter()
    connection.request("GET", "/health")
    answer = connection.getresponse()
    answer.read(_PIECE_BYTES)
    return (time.perf_counter() - started) * 1000


def _fetched_rate(connection: http.client.HTTPConnection, token: str, rtt_ms: float) -> float | None:
    started = time.perf_counter()
    connection.request("GET", "/probe", headers={"Authorization": f"Bearer {token}"})
    answer = connection.getresponse()
    if answer.status != http.client.OK:
        return None  # the peer refuses, but the link works
    received = 0
    while received < RATE_BYTES_MAX and time.perf_counter() - started < RATE_S:
        piece = answer.read1(min(_PIECE_BYTES, RATE_BYTES_MAX - received))
        if not piece:
            if answer.length:  # more bytes were to come
                raise ConnectionError("the line broke")
            break
        received += len(piece)
    return rate_of(received, time.perf_counter() - started, rtt_ms)


def _now_ms() -> int:
    return int(time.time() * 1000)
