"""From a row back through several elements, over streams that lie in lists."""

from dataclasses import dataclass, field
from datetime import datetime

import pytest

from pipeline_runtime.model.document import parse_document
from pipeline_runtime.operators.expressions.casts import text_of
from pipeline_runtime.operators.filter import Filter
from pipeline_runtime.operators.lineage import Came, TracedRow, may_be_all
from pipeline_runtime.operators.registry import Registry, built_in, default_registry
from pipeline_runtime.planning.lineage import AS_ONE, FOLLOWED_MAX, Looked, latest, trace
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


def planned(*elements, groups=(), registry=None):
    document = {
        "apiVersion": "fogline/v1",
        "kind": "Pipeline",
        "metadata": {"name": "drawn"},
        "spec": {"elements": list(elements), "groups": list(groups)},
    }
    return plan_groups(parse_document(document), "d", registry or default_registry(), {})


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
    assert (inside.kept, inside.rows, inside.bounds) == (False, (), ())
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


def test_a_stream_inside_a_group_that_a_view_shows_too_lies_in_a_topic_and_its_rows_are_found(topics):
    groups = [{"id": "watch", "elements": ["big", "average"]}]
    table = {"id": "table", "type": "live-table", "params": {"columns": ["x"]}, "inputs": {"in": "big"}}
    window = topics.rows["average.out"][2]
    apart = steps(topics, READINGS, BIG, AVERAGE, row=window, source="average.out")
    as_one = steps(topics, READINGS, BIG, AVERAGE, table, row=window, source="average.out", groups=groups)
    assert as_one == apart
    assert all(each.kept and each.rows for each in as_one)


def test_behind_a_stream_inside_a_group_the_trace_goes_on_also_if_any_time_may_count(topics):
    peaks = {
        "id": "peaks",
        "type": "peak-detection",
        "params": {"column": "x", "height": 1, "key": "key"},
        "inputs": {"in": "big"},
    }
    groups = [{"id": "watch", "elements": ["big", "peaks"]}]
    peak = topics.rows["big.out"][5]
    inside, readings = steps(topics, READINGS, BIG, peaks, row=peak, source="peaks.out", groups=groups)
    assert (inside.element, inside.kept) == ("peaks", False)
    assert (readings.element, readings.bounds) == ("big", (AS_ONE,))
    assert [*readings.rows] == topics.rows["readings.out"]
    assert topics.asked == [("readings.out", None, None)]


def test_two_ways_to_one_stream_inside_a_group_lead_to_the_time_of_both(topics):
    def looking_back(ms):
        def came_from(self, made, inputs):
            return {"in": Came(made.time_ms - ms, made.time_ms, may_be_all)}

        return type("LooksBack", (Filter,), {"came_from": came_from})

    registry = Registry({**built_in(), "far": looking_back(8000), "near": looking_back(2000)})
    far, near = ({**BIG, "id": each, "type": each, "inputs": {"in": "big"}} for each in ("far", "near"))
    both = {"id": "both", "type": "merge", "inputs": {"in1": "near", "in2": "far"}}
    groups = [{"id": "watch", "elements": ["big", "far", "near", "both"]}]
    specs = planned(READINGS, BIG, near, far, both, groups=groups, registry=registry)
    row = topics.rows["readings.out"][30]
    assert [*trace(specs, registry, row, "both.out", topics.read)]
    assert topics.asked == [("readings.out", row.time_ms - 8000, row.time_ms)]


def test_records_that_are_read_by_paths_are_no_rows_yet(topics):
    machines = {
        "id": "machines",
        "type": "kafka-in",
        "params": {"topic": "machines", "columns": [{"name": "x", "type": "number", "from": "values.x"}]},
    }
    big = {**BIG, "inputs": {"in": "machines"}}
    groups = [{"id": "watch", "elements": ["machines", "big"]}]
    row = TracedRow(1_714_564_800_000, {"x": 1.0})
    [inside] = steps(topics, machines, big, row=row, source="big.out", groups=groups)
    assert (inside.source, inside.kept) == ("machines.out", False)
    machines["params"]["columns"][0].pop("from")
    topics.rows["machines.out"] = [row]
    [records] = steps(topics, machines, big, row=row, source="big.out", groups=groups)
    assert (records.kept, [*records.rows]) == (True, [row])


def test_the_latest_rows_are_those_of_the_latest_times_in_the_order_in_which_they_came():
    rows = [
        TracedRow(time_ms, {}, None, partition) for partition, time_ms in ((0, 5), (0, 9), (1, 7), (1, 1))
    ]
    assert latest(rows, 2) == rows[1:3]
    assert latest(rows, 3) == rows[:3]
    assert latest(rows, 9) == rows
    assert latest(rows, 0) == []


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
