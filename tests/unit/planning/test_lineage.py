"""From a row back through several elements, over streams that lie in lists."""

from dataclasses import dataclass, field
from datetime import datetime

import pytest

from pipeline_runtime.model.document import parse_document
from pipeline_runtime.operators.expressions.casts import text_of
from pipeline_runtime.operators.lineage import TracedRow
from pipeline_runtime.operators.registry import default_registry
from pipeline_runtime.planning.lineage import AS_ONE, FOLLOWED_MAX, Looked, trace
from pipeline_runtime.planning.plan import plan_groups
from pipeline_runtime.trial import at, trial

READINGS = {
    "id": "readings",
    "type": "generator",
    "params": {"keys": 2, "signals": [{"name": "x"}]},
}
BIG = {"id": "big", "type": "filter", "params": {"condition": "x > 0"}, "inputs": {"in": "readings"}}
AVERAGE = {
    "id": "average",
    "type": "window-aggregate",
    "params": {
        "size_s": 4,
        "keys": ["key"],
        "aggregates": [{"function": "max", "column": "x", "as": "most"}],
    },
    "inputs": {"in": "big"},
}
ALARM = {
    "id": "alarm",
    "type": "threshold-alert",
    "params": {"columns": ["most"], "limit": 1},
    "inputs": {"in": "average"},
}


def planned(*elements, groups=()):
    document = {
        "apiVersion": "fogline/v1",
        "kind": "Pipeline",
        "metadata": {"name": "drawn"},
        "spec": {"elements": list(elements), "groups": list(groups)},
    }
    return plan_groups(parse_document(document), "d", default_registry(), {})


def traced(row, offset):
    values = {name: text_of(each) if isinstance(each, datetime) else each for name, each in row.items()}
    time_ms = round(row["_time"].timestamp() * 1000)
    return TracedRow(time_ms, {n: v for n, v in values.items() if n != "_time"}, row.get("key"), 0, offset)


@dataclass
class Topics:
    """The streams of a chain of elements, each with all of its rows."""

    rows: dict[str, list[TracedRow]] = field(default_factory=dict)
    asked: list[tuple[str, int | None, int | None]] = field(default_factory=list)

    def read(self, item, from_ms, until_ms, near_ms):
        self.asked.append((item.source, from_ms, until_ms))
        return Looked(self.rows[item.source])


@pytest.fixture
def topics():
    found, given = (
        Topics(),
        [{"_time": at(n / 2), "key": f"sensor-{n % 2}", "n": n, "x": float(n % 5 - 1)} for n in range(40)],
    )
    schemas = {
        source: each
        for spec in planned(READINGS, BIG, AVERAGE, ALARM)
        for source, each in spec.schemas.items()
    }
    found.rows["readings.out"] = [traced(row, n) for n, row in enumerate(given)]
    for element in (BIG, AVERAGE, ALARM):
        operator = default_registry().create(element["type"], element["params"])
        given = trial(operator, given, schemas[f"{element['inputs']['in']}.out"]).rows
        found.rows[f"{element['id']}.out"] = [traced(row, n) for n, row in enumerate(given)]
    return found


def steps(topics, *elements, row, source, groups=()):
    specs = planned(*elements, groups=groups)
    return [*trace(specs, default_registry(), row, source, topics.read)]


def test_an_alarm_is_traced_through_its_window_to_its_readings(topics):
    alarm = topics.rows["alarm.out"][1]
    to_average, to_big, to_readings = steps(
        topics, READINGS, BIG, AVERAGE, ALARM, row=alarm, source="alarm.out"
    )
    assert [(each.element, each.source) for each in (to_average, to_big, to_readings)] == [
        ("alarm", "average.out"),
        ("average", "big.out"),
        ("big", "readings.out"),
    ]
    [window] = to_average.rows
    assert window.values["most"] == alarm.values["most"]
    assert to_big.rows
    for row in to_big.rows:
        assert row.values["key"] == window.values["key"]
        assert window.time_ms - 4000 <= row.time_ms < window.time_ms
    assert [row.values for row in to_readings.rows] == [row.values for row in to_big.rows]
    assert not any(each.bounds for each in (to_average, to_big, to_readings))
    # only the window's time was looked through
    assert topics.asked[1] == ("big.out", window.time_ms - 4000, window.time_ms)


def test_a_stream_inside_a_group_has_no_rows_and_what_lies_behind_it_is_all_of_its_time(topics):
    groups = [{"id": "watch", "elements": ["big", "average"]}]
    window = topics.rows["average.out"][2]
    inside, readings = steps(topics, READINGS, BIG, AVERAGE, row=window, source="average.out", groups=groups)
    assert (inside.kept, inside.rows, inside.bounds) == (False, (), (AS_ONE,))
    assert (readings.element, readings.kept, readings.bounds) == ("big", True, (AS_ONE,))
    # what passes the filter is not known
    times = [row.time_ms for row in readings.rows]
    assert min(times) >= window.time_ms - 4000
    assert max(times) <= window.time_ms
    assert {row.values["x"] > 0 for row in readings.rows} == {True, False}


def test_a_row_that_passes_through_as_it_was_is_known_also_inside_a_group(topics):
    groups = [{"id": "watch", "elements": ["average", "alarm"]}]
    alarm = topics.rows["alarm.out"][1]
    inside, big, _ = steps(
        topics, READINGS, BIG, AVERAGE, ALARM, row=alarm, source="alarm.out", groups=groups
    )
    assert (inside.kept, inside.bounds) == (False, ())
    assert (big.element, big.kept, big.bounds) == ("average", True, ())
    assert {row.values["key"] for row in big.rows} == {alarm.values["key"]}


def test_of_many_rows_the_newest_are_followed_and_it_is_counted(topics):
    several = {**AVERAGE, "params": {**AVERAGE["params"], "size_s": 60}}
    window = TracedRow(
        1_714_564_860_000 + 60_000,
        {
            "window_start": "2024-05-01T12:00:00Z",
            "window_end": "2024-05-01T12:01:00Z",
            "key": "sensor-0",
        },
        "sensor-0",
    )
    topics.rows["big.out"] = [row for row in topics.rows["readings.out"] for _ in range(2)]
    topics.rows["big.out"] = [
        TracedRow(row.time_ms, row.values, row.key, 0, offset)
        for offset, row in enumerate(topics.rows["big.out"])
    ]
    big, readings = steps(topics, READINGS, BIG, several, row=window, source="average.out")
    assert (len(big.rows), big.followed, big.untraced) == (40, 1, 0)
    assert (readings.followed, readings.untraced) == (FOLLOWED_MAX, 40 - FOLLOWED_MAX)


def test_a_row_of_a_source_has_nothing_behind_it(topics):
    row = topics.rows["readings.out"][0]
    assert steps(topics, READINGS, BIG, row=row, source="readings.out") == []
