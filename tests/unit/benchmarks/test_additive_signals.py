"""The source of bench-debs: one signal changes at a time, each cycle is answered; each rise is found."""

from itertools import pairwise

from tests.benchmarks.additive_signals import (
    GROUPS,
    INTERVAL_MS,
    SIGNALS,
    document,
    levels,
    rises,
    samples,
)

BEGIN_MS = 1_700_000_000_000


def test_never_do_two_signals_change_in_one_sample() -> None:
    found = [levels(n * INTERVAL_MS) for n in range(20_000)]
    changes = [sum(was != now for was, now in zip(a, b, strict=True)) for a, b in pairwise(found)]
    assert max(changes) == 1
    assert sum(changes) > 300


def test_each_sensor_is_answered_by_its_valve_two_and_a_half_seconds_later() -> None:
    found = rises(BEGIN_MS, 20_000)
    for sensor, valve in zip(SIGNALS[:3], SIGNALS[3:], strict=True):
        # The first sensor is up when the source begins, which is no edge.
        asked = [BEGIN_MS, *(rise.time_ms for rise in found if rise.signal == sensor)]
        answered = [rise.time_ms for rise in found if rise.signal == valve]
        assert len(answered) > 25
        for answer in answered:
            assert any(2_490 <= answer - ask <= 2_510 for ask in asked), answer


def test_samples_come_at_the_published_pace() -> None:
    sent = list(samples(BEGIN_MS, 0, 1000))
    assert sent[-1].time_ms - sent[0].time_ms == int(999 * 9.4782)


def test_the_document_is_the_templates_query_on_another_source() -> None:
    elements = document("raw", dict.fromkeys(GROUPS, "a"))["spec"]["elements"]
    assert {each["id"] for each in elements} >= {"readings", "edges", "answers", "growth", "alarm", "trend"}
    assert {each["node"] for each in elements} == {"a"}
    assert elements[0]["type"] == "kafka-in"
