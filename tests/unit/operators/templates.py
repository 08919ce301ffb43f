"""A template's elements over the whole of its recording, one after the other, without Kafka."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pipeline_runtime.model.document import parse_reference
from pipeline_runtime.model.schema import FieldType, StreamSchema
from pipeline_runtime.model.simulated import press_at, pump_at
from pipeline_runtime.model.templates import load_template
from pipeline_runtime.operators.csv_replay import CsvReplay
from pipeline_runtime.operators.recording import DATA
from pipeline_runtime.operators.registry import default_registry
from pipeline_runtime.operators.sdk import SinkOperator, ViewOperator
from pipeline_runtime.trial import trial
from tests.demos import SHIPPED

Row = dict[str, Any]
_READ_AS = {
    FieldType.INTEGER: int,
    FieldType.NUMBER: float,
    FieldType.STRING: str,
    FieldType.BOOLEAN: lambda text: text.lower() in ("1", "true", "yes"),
    FieldType.TIMESTAMP: lambda text: datetime.fromisoformat(text).astimezone(UTC),
}


def streams_of(name: str) -> dict[str, list[Row]]:
    """Element -> its rows, of sources and of all that puts rows out; what has not reached its end when the
    rows do, such as the last window, is not there. AssertionError when an element rejects a row."""
    rows = _SIMULATED[name]() if name in _SIMULATED else {}
    schemas: dict[str, StreamSchema] = {}
    for element in load_template(name).spec.elements:
        operator = default_registry().create(element.type, element.params)
        if isinstance(operator, SinkOperator | ViewOperator):
            continue
        sources = {port: parse_reference(reference)[0] for port, reference in element.inputs.items()}
        inputs = {port: schemas[source] for port, source in sources.items()}
        schemas[element.id] = operator.output_schema(inputs)
        if element.id in rows:
            continue
        if isinstance(operator, CsvReplay):
            rows[element.id] = recorded(operator, schemas[element.id])
            continue
        first, *more = [port.name for port in operator.inputs if port.name in sources]
        others = {port: (rows[sources[port]], inputs[port]) for port in more}
        found = trial(operator, rows[sources[first]], inputs[first], others=others)
        assert found.rejected == []
        rows[element.id] = found.rows
    return rows


def _measured(at: Callable[[float], Mapping[str, Any]], names: Mapping[str, str]) -> list[Row]:
    """Ten minutes of a machine, twice a second. `names`: the column of each of its values."""
    times = [_BEGIN + timedelta(seconds=number / 2) for number in range(1200)]
    return [
        {"_time": time, **{names.get(name, name): value for name, value in at(time.timestamp()).items()}}
        for time in times
    ]


_BEGIN = datetime(2026, 11, 30, tzinfo=UTC)
_OF_PRESS = {each: each.lower() for each in ("Temperature", "Pressure", "Strokes", "Running")}
_SIMULATED: dict[str, Callable[[], dict[str, list[Row]]]] = {
    "press-by-opcua": lambda: {"press": _measured(press_at, _OF_PRESS)},
    "pump-by-modbus": lambda: {"pump": _measured(pump_at, {})},
}
"""Template -> element -> its rows, of the sources that are simulated machines."""


def compared(rows: list[Row], like: Row) -> list[Row]:
    """The columns that the oracle knows of, floats to nine digits."""
    return [
        {
            name: pytest.approx(row[name], rel=1e-9) if isinstance(row[name], float) else row[name]
            for name in like
        }
        for row in rows
    ]


def recorded(operator: CsvReplay, schema: StreamSchema) -> list[Row]:
    """What a demo's original holds, read by nothing of Fogline; event time is that of the recording."""
    demo, facts = SHIPPED[operator.params.path], operator.facts
    with gzip.open(DATA / demo.file, "rt", newline="") as file:
        lines = csv.reader(file, delimiter=demo.reading.delimiter)
        if demo.reading.header_line:
            next(lines)
        found = []
        for cells in lines:
            texts = {field.name: text for field, text in zip(facts.columns, cells, strict=True)}
            row = {
                field.name: _READ_AS[field.type](texts[field.name]) if texts[field.name] else None
                for field in facts.columns
                if field.name in schema.names
            }
            found.append({**row, "_time": _READ_AS[FieldType.TIMESTAMP](cells[0])})
    return found
