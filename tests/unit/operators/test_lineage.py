"""Law of lineage: the rows that an output row is traced to, given to a new operator, make that row again."""

import random
from datetime import datetime

import pytest

from pipeline_runtime.operators.expressions.casts import text_of
from pipeline_runtime.operators.lineage import TracedRow, first_place
from pipeline_runtime.operators.registry import built_in, default_registry
from pipeline_runtime.operators.sdk import SourceOperator
from pipeline_runtime.trial import at, trial
from tests.unit.operators.conftest import schema_of

SCHEMA = schema_of(key="k", k="string", x="number", n="integer", b="boolean", s="string")
_EXACT = [
    {"function": "max", "column": "n", "as": "most"},
    {"function": "count", "as": "rows"},
    {"function": "first", "column": "s", "as": "first"},
]
CASES = [
    ("filter", {"condition": "n > 0"}),
    ("derive", {"columns": [{"name": "x", "expression": "n + 1"}, {"name": "new", "expression": "x * 2"}]}),
    ("select", {"columns": [{"column": "n", "as": "m"}, {"column": "k"}, {"column": "s", "as": "n"}]}),
    (
        "model",
        {
            "path": "demo:beats",
            "inputs": [{"columns": ["n", "n", "n"]}],
            "outputs": [{"name": "beat", "output": "label"}],
        },
    ),
    ("kafka-out", {"topic": "results", "key": "s"}),
    ("threshold-alert", {"columns": ["x", "n"], "operator": ">", "limit": 0}),
    ("merge", {}),
    ("window-aggregate", {"size_s": 2, "keys": ["k"], "aggregates": _EXACT}),
    ("window-aggregate", {"size_s": 3, "slide_s": 1, "delay_s": 1, "aggregates": _EXACT}),
    ("keyed-aggregate", {"keys": ["k", "b"], "aggregates": _EXACT}),
    ("count-window-aggregate", {"size": 3, "aggregates": _EXACT}),
    ("count-window-aggregate", {"size": 3, "every": 2, "partial": True, "aggregates": _EXACT}),
    ("running-statistics", {"column": "x"}),
    ("running-statistics", {"column": "x", "every_s": 2}),
    ("running-statistics", {"column": "x", "every_s": 2, "reset": True}),
    ("edge-detection", {"columns": ["b", "x"], "threshold": 0.5}),
    ("edge-detection", {"columns": ["n"]}),
    ("time-between", {"column": "s", "first": "a", "second": "b", "within_s": 2}),
    ("time-between", {"column": "s", "first": "a", "second": "b", "delay_s": 1, "debounce_s": 0.5}),
    ("difference", {"column": "x", "name": "d", "periods": 2}),
    ("difference", {"column": "n", "name": "d", "gives": "derivative", "key": "s"}),
    ("last-values", {"column": "x", "size": 3}),
    ("last-values", {"column": "x", "size": 3, "every": 2}),
    ("baseline-change", {"column": "x", "window_s": 2, "baseline": "median"}),
    ("trend", {"column": "x", "window_s": 2}),
    ("deduplicate", {"columns": ["s"], "within_s": 2}),
    (
        "frequency-filter",
        {"column": "x", "kind": "low-pass", "sample_rate_hz": 4, "high_cutoff_hz": 1},
    ),
    ("peak-detection", {"column": "x", "height": 0}),
    ("peak-detection", {"column": "x", "height": 0, "distance_s": 1, "also": ["s"]}),
    ("record-around", {"event": "b", "before_s": 1, "after_s": 2}),
    ("record-around-events", {"event": "b", "before_s": 1, "after_s": 2}),
    ("join", {"left_key": "k", "right_key": "k", "within_s": 1}),
    ("hysteresis-alarm", {"column": "x", "raise_at": 1, "clear_at": 0}),
    ("hysteresis-alarm", {"column": "x", "raise_at": 0.5, "clear_at": 0.5, "for_s": 1, "clear_for_s": 1}),
    ("hysteresis-alarm", {"column": "x", "direction": "below", "raise_at": 0, "clear_at": 1}),
]
_NOT_REPLAYED = {"silence-alarm"}  # it goes by the clock: see test_silence_alarm
_COUNTS_ALL = ("recording",)
"""Columns that count what came before the traced rows."""

SEEDS, ROWS, TRACED = 12, 40, 5


def _rows(chance, steps):
    """Rows with a step of event time from each to the next, in quarters of a second."""
    quarters, rows = 20, []
    for _ in range(ROWS):
        quarters = max(0, quarters + chance.choice(steps))
        rows.append(
            {
                "_time": at(quarters / 4),
                "k": chance.choice("ab"),
                "x": chance.choice([None, *(each / 4 for each in range(-8, 9))]),
                "n": chance.randint(-3, 3),
                "b": chance.random() < 0.3,
                "s": chance.choice("abc"),
            }
        )
    return rows


def test_the_cases_are_all_operators():
    types = {each.type for each in built_in().values() if each.inputs and not _takes_rows_out(each)}
    assert {type_ for type_, _ in CASES} | _NOT_REPLAYED == types


def _takes_rows_out(operator):
    return issubclass(operator, SourceOperator) or (not operator.outputs and operator.external is None)


def opened(type_, params):
    operator = default_registry().create(type_, params)
    schemas = {port.name: SCHEMA for port in operator.inputs[:2]}
    return type(operator)(operator.resolve(schemas)), schemas


def traced(row, offset=0):
    """A row of a trial as its record has it."""
    values = {
        name: text_of(value) if isinstance(value, datetime) else value
        for name, value in row.items()
        if name != "_time"
    }
    return TracedRow(round(row["_time"].timestamp() * 1000), values, offset=offset)


def told(operator, schemas, inputs, seed=None):
    (first, rows), *others = inputs.items()
    more = {port: (each, schemas[port]) for port, each in others}
    return trial(operator, rows, schemas[first], others=more, seed=seed).rows


def rows_behind(operator, schemas, inputs, made):
    """The rows of the trial that `made` is traced to, by port, and why there may be more than needed."""
    found, bounds = {}, []
    for port, came in operator.came_from(traced(made), schemas).items():
        all_rows = [traced(row, offset) for offset, row in enumerate(inputs[port])]
        # as the web reads a topic: from the first row of that time on
        looked = all_rows if came.from_ms is None else all_rows[first_place(all_rows, came.from_ms) :]
        chosen = came.chosen(looked)
        found[port] = [inputs[port][row.offset] for row in chosen.rows]
        bounds += [chosen.bound] if chosen.bound else []
    return found, bounds


def plain(row):
    return {name: value for name, value in row.items() if name not in _COUNTS_ALL}


def inputs_of(schemas, rows, chance):
    """The rows of each input. Two inputs have different ones."""
    if len(schemas) == 1:
        return dict.fromkeys(schemas, rows)
    first, second = schemas
    is_first = [chance.random() < 0.5 for _ in rows]
    return {
        first: [row for row, mine in zip(rows, is_first, strict=True) if mine],
        second: [row for row, mine in zip(rows, is_first, strict=True) if not mine],
    }


def some_rows(type_, params, steps):
    """Yields output rows of random inputs, each with the operator, the inputs, what it is traced to, and why
    that may be more than needed."""
    operator, schemas = opened(type_, params)
    for seed in range(SEEDS):
        chance = random.Random(seed)
        inputs = inputs_of(schemas, _rows(chance, steps), chance)
        output = told(operator, schemas, inputs, seed=chance.choice([None, seed]))
        for made in chance.sample(output, min(TRACED, len(output))):
            found, bounds = rows_behind(operator, schemas, inputs, made)
            yield made, found, bounds, [plain(row) for row in told(operator, schemas, found)]


EACH = pytest.mark.parametrize(
    ("type_", "params"), CASES, ids=[f"{type_}-{place}" for place, (type_, _) in enumerate(CASES)]
)


@EACH
def test_the_traced_rows_make_the_row_again(type_, params):
    count = 0
    for made, _, bounds, again in some_rows(type_, params, steps=[1, 1, 2, 3]):
        assert not bounds  # the rows come in turn, and no two have one time
        assert plain(made) in again
        count += 1
    assert count >= SEEDS


def test_an_alarm_that_is_raised_is_looked_for_from_the_time_on_that_it_names():
    operator, schemas = opened("hysteresis-alarm", {"column": "x", "raise_at": 1, "clear_at": 0, "for_s": 2})
    raised = {"alarm": "raised", "x": 2.0, "since": at(7), "lasted": None, "worst": 2.0, "_time": at(9)}
    came = operator.came_from(traced(raised), schemas)["in"]
    assert (came.from_ms, came.until_ms) == tuple(round(at(s).timestamp() * 1000) for s in (7, 9))
    cleared = operator.came_from(traced({**raised, "alarm": "cleared", "lasted": 1.0}), schemas)["in"]
    assert cleared.from_ms is None


@EACH
def test_rows_that_come_late_make_it_again_or_it_is_said(type_, params):
    count = 0
    for made, found, bounds, again in some_rows(type_, params, steps=[-6, -2, -1, 0, 1, 2, 3, 5]):
        assert any(found.values())
        if not bounds:
            assert plain(made) in again
            count += 1
    assert count >= SEEDS / 2
