"""Columns that nothing is read into are told, once."""

from __future__ import annotations

from pipeline_runtime.batch.gate_messages import SliceRead
from pipeline_runtime.batch.inputs import GroupInput
from pipeline_runtime.model.schema import Field, FieldType, StreamSchema
from pipeline_runtime.model.spec import RecordReading
from pipeline_runtime.replica.batch_inputs import BatchInputs
from pipeline_runtime.replica.fields_seen import FieldsSeen
from tests.unit.replica.one_run import Arrived


def test_a_column_without_a_value_in_the_first_thousand_rows_is_told_once() -> None:
    fields = FieldsSeen(("a", "b", "c"))
    assert fields.add(600, ["a"]) == ()
    assert fields.add(399, ["c"]) == ()
    assert fields.add(1, []) == ("b",)
    assert fields.add(5000, []) == ()


def test_nothing_is_told_where_each_column_has_had_a_value() -> None:
    assert FieldsSeen(("a",)).add(2000, ["a"]) == ()


def test_what_is_told_names_the_topic_and_the_columns() -> None:
    schema = StreamSchema(
        fields=tuple(Field(name=name, type=FieldType.NUMBER) for name in ("power", "pover"))
    )
    item = GroupInput(
        0, "a.out", schema, "readings", consumer="a", external=True, reading=RecordReading(columns=())
    )
    told: list[str] = []
    inputs = BatchInputs([item], Arrived(), flushes=False, note=told.append)  # type: ignore[arg-type]
    inputs.noted(SliceRead(0, 0, 1200, 0, [], False, ["power"]))
    [text] = told
    assert "first 1,000 records of readings" in text
    assert '"pover"' in text
    assert '"power"' not in text
