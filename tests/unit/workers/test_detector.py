"""When a silent node counts as down, and when nobody can tell."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from workers.control.reports.detector import QUIET_MS, RETRY_MS, UNHEARD_MS, Hearing, Sighting, Verdict, judge

NOW = 100_000
SILENCE = 10_000
LONG_AGO = 0


@pytest.mark.parametrize(
    ("law", "seen", "hearing_since_ms", "verdict"),
    [
        ("nobody is up", {}, LONG_AGO, Verdict()),
        ("all are heard", {"a": NOW - 1000, "b": NOW - 9000}, LONG_AGO, Verdict()),
        ("one is silent", {"a": NOW - 1000, "b": NOW - 10_001}, LONG_AGO, Verdict(down=("b",))),
        ("exactly the limit is not over it", {"a": NOW, "b": NOW - 10_000}, LONG_AGO, Verdict()),
        ("two of three", {"a": 1, "b": 1, "c": NOW}, LONG_AGO, Verdict(down=("a", "b"))),
        ("all at once: blind", {"a": 1, "b": 1}, LONG_AGO, Verdict(blind="all 2 nodes fell silent at once")),
        ("the only one that is up", {"a": 1}, LONG_AGO, Verdict(down=("a",))),
        ("nobody is heard just now", {"a": 1, "b": NOW - QUIET_MS - 1}, LONG_AGO, Verdict()),
        ("one is heard just now", {"a": 1, "b": NOW - QUIET_MS}, LONG_AGO, Verdict(down=("a",))),
        ("Redis away: blind", {"a": 1, "b": NOW}, None, Verdict(blind="Redis does not answer")),
        ("Redis just back: no verdict", {"a": 1, "b": NOW}, NOW - 5000, Verdict()),
        ("not heard since: more time", {"a": 1, "b": NOW}, NOW - UNHEARD_MS, Verdict()),
        ("not heard since for long", {"a": 1, "b": NOW}, NOW - UNHEARD_MS - 1, Verdict(down=("a",))),
        ("heard since, then silent", {"a": NOW - 10_001, "b": NOW}, NOW - 10_002, Verdict(down=("a",))),
    ],
)
def test_verdict(law: str, seen: dict[str, int], hearing_since_ms: int | None, verdict: Verdict) -> None:
    up = [Sighting(node, at) for node, at in seen.items()]
    assert judge(up, NOW, SILENCE, hearing_since_ms) == verdict


@pytest.mark.parametrize(("deaf_ms", "down"), [(0, ("a",)), (9_999, ("a",)), (10_000, ())])
def test_while_redis_stood_still_nobody_could_be_heard(deaf_ms: int, down: tuple[str, ...]) -> None:
    up = [Sighting("a", NOW - 20_000, deaf_ms), Sighting("b", NOW)]
    assert judge(up, NOW, SILENCE, LONG_AGO) == Verdict(down=down)


# -- over time -----------------------------------------------------------------------------------------

REPORT_EACH_MS = 1_100
LOOK_EACH_MS = 200
RETRIES_MS = (1_000, 2_000, 4_000, 8_000, 10_000)  # as in workers/node/heartbeat.py
SILENCE_3_S = 3_000


@dataclass
class Sender:
    """A node that reports as long as it lives, and tries again ever more rarely while it cannot."""

    next_ms: int
    dies_ms: int = 10**9
    failures: int = 0

    def send(self, at_ms: int, reachable: bool) -> bool:
        if at_ms != self.next_ms or at_ms >= self.dies_ms:
            return False
        pause_ms = REPORT_EACH_MS if reachable else RETRIES_MS[min(self.failures, len(RETRIES_MS) - 1)]
        self.failures = 0 if reachable else self.failures + 1
        self.next_ms = at_ms + pause_ms
        return reachable


@dataclass
class Network:
    """Nodes, and control that looks as it does in ingest.py. Time goes in steps of 100 ms."""

    nodes: dict[str, Sender]
    hearing: Hearing = field(default_factory=Hearing)
    seen_ms: dict[str, int] = field(default_factory=dict)
    up: set[str] = field(default_factory=set)
    down_ms: dict[str, int] = field(default_factory=dict)  # when each was judged, ever

    def run(self, until_ms: int, broken_ms: range = range(0), asleep_ms: range = range(0)) -> None:
        """`broken_ms`: nobody reaches Redis; `asleep_ms`: of all machines, only their clock goes on."""
        for now_ms in range(0, until_ms, 100):
            if now_ms in asleep_ms:
                for node in self.nodes.values():
                    node.next_ms += 100
                continue
            for name, node in self.nodes.items():
                if node.send(now_ms, now_ms not in broken_ms):
                    self.hearing.heard(name, now_ms)
                    self.seen_ms[name] = now_ms
                    self.up.add(name)
            if now_ms % LOOK_EACH_MS == 0:
                self._look(now_ms)

    def _look(self, now_ms: int) -> None:
        sightings = [self.hearing.sighting(name, self.seen_ms[name]) for name in self.up]
        for name in judge(sightings, now_ms, SILENCE_3_S, 0).down:
            self.down_ms[name] = now_ms
            self.up.remove(name)


def network(count: int) -> Network:
    """Their reports are spread over the time between two of one node."""
    return Network({f"edge-{n}": Sender(n * (REPORT_EACH_MS // 100 // count) * 100) for n in range(count)})


@pytest.mark.parametrize("count", [2, 3, 5])
@pytest.mark.parametrize("broken_s", [1, 2, 3, 5, 10, 30, 300])
@pytest.mark.parametrize("from_ms", range(20_000, 21_100, 300))
def test_nobody_is_down_because_the_network_was(count: int, broken_s: int, from_ms: int) -> None:
    net = network(count)
    net.run(from_ms + broken_s * 1000 + 30_000, range(from_ms, from_ms + broken_s * 1000))
    assert net.down_ms == {}


@pytest.mark.parametrize("count", [2, 3, 5])
def test_nobody_is_down_because_all_machines_were_suspended(count: int) -> None:
    net = network(count)
    net.run(4_000_000, asleep_ms=range(20_000, 3_620_000))
    assert net.down_ms == {}


@pytest.mark.parametrize("count", [2, 3, 5])
@pytest.mark.parametrize("dies_ms", range(20_000, 21_100, 300))
def test_a_node_that_dies_is_down_after_its_silence(count: int, dies_ms: int) -> None:
    net = network(count)
    net.nodes["edge-1"].dies_ms = dies_ms
    net.run(60_000)
    assert list(net.down_ms) == ["edge-1"]
    assert net.down_ms["edge-1"] - net.seen_ms["edge-1"] <= SILENCE_3_S + LOOK_EACH_MS


def test_the_only_node_is_down_after_its_silence() -> None:
    net = network(1)
    net.nodes["edge-0"].dies_ms = 20_000
    net.run(60_000)
    assert net.down_ms["edge-0"] - net.seen_ms["edge-0"] <= SILENCE_3_S + LOOK_EACH_MS


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("broken_s", [2, 5, 30, 300])
def test_a_node_that_dies_while_the_network_is_broken_is_down_some_time_after(
    count: int, broken_s: int
) -> None:
    net = network(count)
    net.nodes["edge-1"].dies_ms = 22_000
    end_ms = 21_000 + broken_s * 1000
    net.run(end_ms + 60_000, range(21_000, end_ms))
    assert list(net.down_ms) == ["edge-1"]
    assert net.down_ms["edge-1"] - end_ms <= 30_000


@pytest.mark.parametrize(
    ("each_ms", "down_after_ms"),
    [(QUIET_MS + 100, 2 * SILENCE_3_S), (2_250, 30_000), (2_900, 40_000), (10_000, 130_000)],
)
def test_reports_that_are_all_late_delay_a_verdict_but_do_not_prevent_it(
    each_ms: int, down_after_ms: int
) -> None:
    hearing = Hearing()
    hearing.heard("a", 0)
    for at_ms in range(0, 1_000_000, each_ms):  # such as over a slow line
        hearing.heard("b", at_ms)
        up = [hearing.sighting("a", 0), Sighting("b", at_ms)]
        if judge(up, at_ms, SILENCE_3_S, 0).down:
            assert at_ms <= down_after_ms
            return
    raise AssertionError("a is never down")


def test_a_report_that_is_read_again_forgives_nothing() -> None:
    hearing = Hearing()
    for _ in range(2):
        hearing.heard("a", 0)
        hearing.heard("b", 1_000)
        hearing.heard("b", 11_000)
    assert hearing.sighting("a", 0).grace_ms == (10_000 - QUIET_MS) + RETRY_MS
    assert hearing.sighting("b", 11_000) == Sighting("b", 11_000)


def test_what_redis_kept_waiting_is_not_forgiven_twice() -> None:
    hearing = Hearing()
    hearing.heard("a", 0)
    hearing.heard("b", 1_000)
    hearing.waited(9_000)
    hearing.heard("b", 11_000)
    assert hearing.sighting("a", 0) == Sighting("a", 0, deaf_ms=9_000)
