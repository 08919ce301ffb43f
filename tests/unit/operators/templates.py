"""A template's elements over the whole of its recording, one after the other, without Kafka."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from pipeline_runtime.model.document import parse_reference
from pipeline_runtime.model.schema import FieldType, StreamSchema
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


def streams_of(name: str, given: Mapping[str, list[Row]] | None = None) -> dict[str, list[Row]]:
    """Element -> its rows, of sources and of all that puts rows out; what has not reached its end when the
    rows do, such as the last window, is not there. AssertionError when an element rejects a row. `given`: the
    rows of sources that play no recording."""
    rows: dict[str, list[Row]] = dict(given or {})
    schemas: dict[str, StreamSchema] = {}
    for element in load_template(name).spec.elements:
        operator = default_registry().create(element.type, element.params)
        if isinstance(operator, SinkOperator | ViewOperator):
            continue
        sources = {port: parse_reference(reference)[0] for port, reference in element.inputs.items()}
        inputs = {port: schemas[source] for port, source in sources.items()}
        schemas[element.id] = operator.output_schema(inputs)
        if element.id in (given or {}):
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
