"""Rows are found by their times, whatever time the markers of transactions have."""

from __future__ import annotations

import pytest

from pipeline_runtime.kafka.admin import Topic, ensure_topics
from pipeline_runtime.kafka.arrived import read_arrived
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.kafka.peek import read_span
from pipeline_runtime.kafka.transactions import OutgoingRecord
from tests.contract.kafka.test_transactions import opened
from tests.waiting import PATIENCE_S

pytestmark = pytest.mark.integration

FIRST_MS, STEP_MS = 1_329_929_000_000, 10  # in 2012, long before the markers are written
TRANSACTIONS, ROWS = 30, 150
LAST_MS = FIRST_MS + (TRANSACTIONS * ROWS - 1) * STEP_MS


def test_rows_of_a_recording_are_found_by_their_own_times(kafka: str) -> None:
    settings, topic = KafkaSettings(kafka), "a-recording"
    ensure_topics(settings, [Topic(topic)])
    owner = opened(kafka, "recorded")
    times_ms = [FIRST_MS + number * STEP_MS for number in range(TRANSACTIONS * ROWS)]
    for at in range(0, len(times_ms), ROWS):
        owner.commit([OutgoingRecord(topic, b"{}", None, each) for each in times_ms[at : at + ROWS]])
    owner.close()

    for begin_ms in (FIRST_MS, FIRST_MS + 7_777, LAST_MS - 1_000, LAST_MS):
        end_ms = min(LAST_MS, begin_ms + 2_000)
        wanted = [each for each in times_ms if begin_ms <= each <= end_ms]
        span = read_span(settings, topic, begin_ms, end_ms, 10_000)
        assert [record.timestamp_ms for record in span.records] == wanted
        found = read_arrived(settings, topic, begin_ms, end_ms, end_ms, 30_000).records
        assert [each.timestamp_ms for each in found if each.timestamp_ms <= end_ms] == wanted
    assert not read_span(settings, topic, LAST_MS + 1, LAST_MS + 2_000, 10_000).records
    for begin_ms, end_ms in ((None, None), (FIRST_MS, None), (None, LAST_MS)):
        around = read_arrived(settings, topic, begin_ms, end_ms, times_ms[1_000], 400)
        assert {*times_ms[850:1_150]} <= {record.timestamp_ms for record in around.records}
        assert len(around.records) <= 400
        assert around.left_out
    whole = read_arrived(settings, topic, None, None, LAST_MS, 30_000, timeout_s=PATIENCE_S)
    assert (len(whole.records), whole.left_out, whole.late) == (len(times_ms), False, False)
    none = read_arrived(settings, topic, None, None, LAST_MS, 30_000, timeout_s=0.0)
    assert (none.records, none.late) == ([], True)
