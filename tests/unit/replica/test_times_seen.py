"""Event times that are likely to be wrong are told, once for each episode."""

from __future__ import annotations

from pipeline_runtime.batch.gate_messages import SliceRead
from pipeline_runtime.batch.inputs import GroupInput
from pipeline_runtime.model.schema import StreamSchema
from pipeline_runtime.model.spec import RecordReading, TimeReading
from pipeline_runtime.replica.batch_inputs import BatchInputs
from pipeline_runtime.replica.times_seen import FAR_AHEAD_MS, TimesSeen
from tests.unit.replica.one_run import Arrived

NOW_MS = 1_790_000_000_000
MINUTE_MS = 60_000


def test_a_time_far_ahead_is_told_with_how_far_and_until_when() -> None:
    told = TimesSeen("readings", is_field=True).add(NOW_MS + 50 * MINUTE_MS, NOW_MS)
    assert told is not None
    assert "A row of readings has the event time 2026-09-21 15:03:20 UTC, which is 50 minutes after" in told
    assert "a few minutes are enough" in told


def test_usual_times_are_not_told() -> None:
    times = TimesSeen("readings", is_field=True)
    for ahead_ms in (-86_400_000, -1, 0, 1000, FAR_AHEAD_MS):
        assert times.add(NOW_MS + ahead_ms, NOW_MS) is None


def test_it_is_told_again_when_the_clock_has_passed_the_newest_of_such_times() -> None:
    times = TimesSeen("readings", is_field=True)

    def is_told(ahead: int, minute: int) -> bool:
        return times.add(NOW_MS + (minute + ahead) * MINUTE_MS, NOW_MS + minute * MINUTE_MS) is not None

    assert is_told(ahead=50, minute=0)
    assert not is_told(ahead=50, minute=10)
    assert not is_told(ahead=0, minute=30)
    assert not is_told(ahead=20, minute=59)
    assert is_told(ahead=20, minute=80)


def test_a_topic_in_the_local_time_of_a_zone_is_told_once() -> None:
    times = TimesSeen("readings", is_field=True)
    days = [times.add(NOW_MS + (hour + 2) * 3_600_000, NOW_MS + hour * 3_600_000) for hour in range(100)]
    assert days[0] is not None
    assert "2.0 hours after its arrival" in days[0]
    assert not any(days[1:])


def test_seconds_that_are_read_as_milliseconds_are_asked_about_once() -> None:
    times = TimesSeen("readings", is_field=True)
    told = times.add(NOW_MS // 1000, NOW_MS)
    assert told == (
        "The newest event time that was read of readings is 1970-01-21 17:13:20 UTC. Is the unit of the field"
        " right?"
    )
    assert times.add(NOW_MS // 1000 + 1, NOW_MS) is None
    assert TimesSeen("readings", is_field=False).add(0, NOW_MS) is None, "a record's time has no unit to set"


def test_it_is_told_of_what_a_task_has_read() -> None:
    reading = RecordReading(columns=(), time=TimeReading(path=("at",)))
    item = GroupInput(
        0, "a.out", StreamSchema(fields=()), "readings", consumer="a", external=True, reading=reading
    )
    told: list[str] = []
    inputs = BatchInputs([item], Arrived(), flushes=False, note=told.append)  # type: ignore[arg-type]
    ahead_ms = NOW_MS + 50 * MINUTE_MS
    for newest_ms in (None, NOW_MS, ahead_ms, ahead_ms):
        inputs.noted(SliceRead(0, 0, 1, 0, [], False, [], newest_ms, NOW_MS))
    [text] = told
    assert "50 minutes after its arrival" in text
