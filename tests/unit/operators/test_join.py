"""Laws of the join."""

from collections import Counter
from datetime import timedelta

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from pipeline_runtime.batch.batched import GateStates
from pipeline_runtime.batch.held_states import TaskStates
from pipeline_runtime.operators import join as join_module
from pipeline_runtime.operators.join import Join, JoinParams, pair_places
from pipeline_runtime.operators.sdk import OperatorContext
from pipeline_runtime.trial import StatesInMemory, processed
from tests.unit.operators.conftest import at, dicts, schema_of

LEFT = schema_of(key="k", k="string", x="integer")
RIGHT = schema_of(key="id", id="string", x="number", note="string")
BOTH = {"left": LEFT, "right": RIGHT}
PARAMS = {"left_key": "k", "right_key": "id", "within_s": 2}


def pairs(params, batches, schemas=BOTH):
    """Returns the output rows, in order, for batches of rows (seconds, *columns) by port."""
    given_rows = [{port: dicts(rows, schemas[port]) for port, rows in batch.items()} for batch in batches]
    return processed(Join(JoinParams(**params)), given_rows, schemas).rows


def test_rows_pair_by_key_within_the_time():
    left = [(0, "a", 1), (10, "a", 2), (20, "b", 3), (30, None, 4)]
    right = [
        (2, "a", 0.5, "late"),
        (7.9, "a", 0.6, "too early"),
        (9, "a", 0.7, "early"),
        (20, "c", 1.0, ""),
        (30, None, 1.0, ""),
    ]
    found = pairs(PARAMS, [{"left": left, "right": right}])
    assert [(r["k"], r["x"], r["right_x"], r["note"], r["_time"]) for r in found] == [
        ("a", 1, 0.5, "late", at(2)),
        ("a", 2, 0.7, "early", at(10)),
    ]


def test_the_right_key_is_left_out_and_a_taken_name_gets_the_prefix(operator):
    schema = operator("join", PARAMS).output_schema(BOTH)
    assert (schema.names, schema.key) == (("k", "x", "right_x", "note"), "k")


def test_keys_of_different_types_and_missing_ones_are_told(operator, mismatch):
    def paths(**params):
        return mismatch(operator("join", PARAMS | params), left=LEFT, right=RIGHT)

    assert paths(left_key="x") == ["params.right_key"]
    assert paths(left_key="y", right_key="z") == ["params.left_key", "params.right_key"]


def test_numbers_of_either_kind_pair_and_there_is_one_zero():
    schemas = {"left": schema_of(k="integer"), "right": schema_of(k="number")}
    params = {"left_key": "k", "right_key": "k", "within_s": 0}
    batch = {"left": [(0, 1), (0, 0), (0, 2)], "right": [(0, 1.0), (0, -0.0), (0, 2.5)]}
    assert [row["k"] for row in pairs(params, [batch], schemas)] == [1, 0]


@pytest.mark.parametrize(("type_", "value"), [("boolean", True), ("timestamp", at(5)), ("string", "ü\x00")])
def test_rows_pair_by_keys_of_any_type_also_in_a_later_batch(type_, value):
    schemas = {"left": schema_of(k=type_), "right": schema_of(k=type_, t="timestamp")}
    params = {"left_key": "k", "right_key": "k", "within_s": 1}
    batches = [{"right": [(0, value, at(7)), (0, None, None)]}, {"left": [(1, value)]}]
    [row] = pairs(params, batches, schemas)
    assert row["t"] == at(7)
    assert row["_time"] == at(1)


def test_a_stream_pairs_rows_of_different_batches_and_forgets_the_old():
    batches = [
        {"left": [(0, "a", 1)], "right": []},
        {"left": [], "right": [(1, "a", 0.5, "next batch")]},
        {"left": [(60, "z", 0)], "right": [(60, "y", 0.0, "")]},
        {"left": [], "right": [(61, "z", 0.1, "")]},
        {"left": [(0.5, "a", 2)], "right": []},  # far behind: its partners are forgotten
    ]
    found = pairs(PARAMS, batches)
    assert [(row["x"], row["note"]) for row in found] == [(1, "next batch"), (0, "")]


def test_rows_that_come_late_on_their_side_go_to_the_dead_letters():
    given_rows = {"left": dicts([(5, "a", 1), (3.9, "a", 2), (4, None, 3), (0, None, 4)], LEFT)}
    given_rows["right"] = dicts([(0, "b", 1.0, "the other side is ahead of it")], RIGHT)
    found = processed(Join(JoinParams(**PARAMS | {"delay_s": 1})), [given_rows], BOTH)
    told = "s newer came before it, and the delay is 1 s"
    assert found.rejected == [f"it came late: a row that is {each} {told}" for each in ("1.100", "5.000")]


def keys_after(params, batches):
    """What is kept behind them, readable."""
    join, gate = Join(JoinParams(**params)), StatesInMemory()
    context = OperatorContext("e", join.output_schema(BOTH), BOTH, None, None)
    for batch in batches:
        tables = {}
        for port, schema in BOTH.items():
            rows = dicts(batch.get(port, []), schema)
            types = {"k": pa.string(), "id": pa.string(), "note": pa.string()}
            types |= {"x": pa.int64() if port == "left" else pa.float64()}
            columns = {name: pa.array([row[name] for row in rows], types[name]) for name in schema.names}
            times = pa.array([row["_time"] for row in rows], pa.timestamp("us", "UTC"))
            partitions = pa.array([0] * len(rows), pa.int32())
            tables[port] = pa.table({**columns, "_time": times, "_partition": partitions})
        states = GateStates(TaskStates(gate, 0, None), join)
        join.process_batch(tables, states, context, at_end=False)
        states.hand_over()
    return [join.readable_key(key) for key in gate.kept if key is not None]


def test_rows_are_kept_until_the_other_stream_is_past_them():
    waits = {"left": [(0, "a", 1)]}
    assert keys_after(PARAMS, [waits]) == ["left, 2024-05-01 12:00:00 to 2024-05-01 12:00:02 UTC, a"]
    # Its own stream may go on as far as it likes.
    assert len(keys_after(PARAMS, [waits, {"left": [(1000, "a", 1)]}])) == 2
    assert len(keys_after(PARAMS, [waits, {"right": [(3.9, "b", 1.0, "")]}])) == 2
    [kept] = keys_after(PARAMS, [waits, {"right": [(4, "b", 1.0, "")]}])
    assert kept.startswith("right, ")
    assert len(keys_after(PARAMS | {"delay_s": 1}, [waits, {"right": [(4, "b", 1.0, "")]}])) == 2


def test_what_waited_for_a_stream_that_stood_still_is_dropped_in_parts(monkeypatch):
    monkeypatch.setattr(join_module, "_DROPPED_MAX", 2)
    waiting = {"left": [(0, "a", 1), (0, "b", 1), (0, "c", 1), (4, "a", 1), (8, "a", 1)]}
    behind = [waiting, {"right": [(1000, "x", 1.0, "")]}]
    left = [sum(key.startswith("left") for key in keys_after(PARAMS, behind + more)) for more in MORE]
    assert left == [3, 1, 0]


MORE = [[], [{"right": [(1000, "x", 1.0, "")]}], [{"right": [(1000, "x", 1.0, "")]}] * 2]


def rows_of(columns):
    row = st.tuples(
        st.integers(0, 300).map(lambda tenths: tenths / 10), st.sampled_from(["a", "b", None]), *columns
    )
    return st.lists(row, max_size=30)


def expected(params, left, right):
    """Each pair, of rows that come in time; also one without a key makes others late."""

    def in_time(rows):
        newest = -1e9
        for row in rows:
            if row[0] >= newest - params["delay_s"] - 1e-9:
                yield row
            newest = max(newest, row[0])

    return Counter(
        (a[1], a[2], b[2], max(at(a[0]), at(b[0])))
        for a in in_time(left)
        for b in in_time(right)
        if a[1] is not None
        and a[1] == b[1]
        and abs(at(a[0]) - at(b[0])) <= timedelta(seconds=params["within_s"])
    )


@given(
    rows_of([st.integers(0, 9)]),
    rows_of([st.floats(0, 9), st.just("")]),
    st.sampled_from([0, 0.3, 2, 20]),
    st.sampled_from([0, 1, 30]),
    st.data(),
)
def test_however_batches_are_cut_each_pair_leaves_once(left, right, within_s, delay_s, data):
    params = PARAMS | {"within_s": within_s, "delay_s": delay_s}
    rows, batches = {"left": left, "right": right}, []
    while any(rows.values()):
        count = {port: data.draw(st.integers(0, len(each))) for port, each in rows.items()}
        batches.append({port: each[: count[port]] for port, each in rows.items()})
        rows = {port: each[count[port] :] for port, each in rows.items()}
    found = pairs(params, batches)
    assert Counter((r["k"], r["x"], r["right_x"], r["_time"]) for r in found) == expected(params, left, right)


def test_pairs_of_a_batch_leave_by_their_time():
    batch = {
        "left": [(1, "a", 1), (2, "b", 2), (3, "a", 3)],
        "right": [(1, "a", 0.1, ""), (2, "b", 0.2, ""), (3, "a", 0.3, "")],
    }
    found = pairs(PARAMS | {"within_s": 5}, [batch])
    assert [row["_time"] for row in found] == sorted(row["_time"] for row in found)


def test_a_clock_that_is_far_off_pairs_nothing_that_is_not_a_pair():
    def side(rows):
        times, keys = zip(*rows, strict=True)
        return pa.table({"_time": pa.array(times, pa.timestamp("us", "UTC")), "_pairs_by": list(keys)})

    far = 2**61
    left, right = side([(0, "a"), (far, "b"), (-far, "b")]), side([(1, "b"), (far, "a"), (far - 1, "b")])
    first, second = pair_places(left, right, 1)
    assert (first.tolist(), second.tolist()) == ([1], [2])
