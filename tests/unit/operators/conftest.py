"""Factories of operators, tables and contexts."""

from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pytest

from pipeline_runtime.model.schema import Field, FieldType, StreamSchema
from pipeline_runtime.operators import tables
from pipeline_runtime.operators.recording import arrow_type
from pipeline_runtime.operators.registry import default_registry
from pipeline_runtime.operators.sdk import OperatorContext, SchemaMismatch
from pipeline_runtime.trial import at, processed


@pytest.fixture(scope="session")
def registry():
    return default_registry()


def schema_of(key=None, **types):
    return StreamSchema(fields=tuple(Field(name=n, type=t) for n, t in types.items()), key=key)


def dicts(rows, schema):
    """Rows as tuples (seconds, *data columns) as `trial` takes them."""
    return [
        {"_time": at(seconds), **dict(zip(schema.names, values, strict=True))} for seconds, *values in rows
    ]


def arrow_values(values, type_):
    return pa.chunked_array([pa.array(values, arrow_type(FieldType(type_)))])


def table(schema, rows, **more):
    """Rows as tuples (seconds, *data columns) of a schema as an operator is given them."""
    columns = {
        field.name: arrow_values([row[i + 1] for row in rows], field.type)
        for i, field in enumerate(schema.fields)
    }
    times = pa.array([at(row[0]) for row in rows], pa.timestamp("us", "UTC"))
    keys = [None if schema.key is None else str(row[1 + schema.names.index(schema.key)]) for row in rows]
    meta = {
        "_key": pa.array(keys, pa.string()),
        "_time": times,
        "_batch_time": times,
        "_partition": pa.array([0] * len(rows), pa.int32()),
        "_offset": pa.array(range(len(rows)), pa.int64()),
    }
    return pa.table({**columns, **meta, **more})


def evaluated(compiled, schema, rows):
    """The value of an expression for each row; "failed" where it has none but should have one."""
    found = tables.evaluated(compiled, table(schema, rows))
    values = found.values.to_pylist()
    failed = [False] * len(values) if found.failed is None else found.failed.to_pylist()
    assert None not in failed
    return ["failed" if is_failed else value for value, is_failed in zip(values, failed, strict=True)]


@pytest.fixture
def operator(registry):
    def make(type_, params=None, **options):
        return registry.create(type_, params or {}, **options)

    return make


@pytest.fixture
def run(tmp_path):
    """Run a transform operator over rows; gives its output rows as dicts, ordered by time. It gives the same
    however the rows are cut into tables."""

    def of(operator, rows, schema, **more):
        inputs = {"in": schema} if isinstance(schema, StreamSchema) else schema
        given = {"in": rows} if isinstance(schema, StreamSchema) else rows
        output = operator.output_schema(inputs)
        context = OperatorContext("element", output, inputs, tmp_path, lambda reference: Path(reference))
        frames = {port: table(inputs[port], given[port], **more) for port in inputs}
        made = operator.arrow(context)(frames)
        apart = [
            operator.arrow(context)({port: rows.slice(at, 1) for port, rows in frames.items()})
            for at in range(max(map(len, frames.values()), default=0))
        ]
        if apart:
            together = pa.concat_tables(apart, promote_options="default")
            assert sorted(map(str, together.select(output.names).to_pylist())) == sorted(
                map(str, made.select(output.names).to_pylist())
            )
        assert set(made.column_names) >= {*output.names, "_time"}
        for field in output.fields:
            assert made.schema.field(field.name).type == arrow_type(field.type), field.name
        if tables.REJECT not in made.column_names:
            made = made.append_column(tables.REJECT, pa.nulls(made.num_rows, pa.string()))
        return made.sort_by("_time").to_pylist()

    return of


@pytest.fixture
def context(tmp_path):
    def make(operator, **inputs):
        return OperatorContext(
            "element", operator.output_schema(inputs), inputs, tmp_path, lambda ref: tmp_path / ref
        )

    return make


@pytest.fixture
def process():
    return keyed_output


class Rejected(Exception):
    """An operator has put a row into its dead letters."""


def keyed_output(operator, rows):
    """What a processor makes of (seconds, row) pairs, which are cut into batches of 1, 2, 3, ... rows. Raises
    Rejected when a row goes to the dead letters."""
    if not rows:
        return []
    types = {}
    for _, row in rows:
        for name, value in row.items():
            types[name] = max(types.get(name, ""), _TYPES[type(value)])  # number is behind integer
    schema = schema_of(**{name: type_ or "number" for name, type_ in types.items()})
    batches, given, size = [], [{"_time": at(seconds), **row} for seconds, row in rows], 1
    while given:
        batches.append({"in": given[:size]})
        given, size = given[size:], size + 1
    made = processed(operator, batches, {"in": schema})
    if made.rejected:
        raise Rejected(made.rejected)
    return made.rows


_TYPES = {
    type(None): "",
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    datetime: "timestamp",
}


@pytest.fixture
def mismatch():
    """The paths of all that an operator's output_schema complains about."""

    def of(operator, **inputs):
        with pytest.raises(SchemaMismatch) as caught:
            operator.output_schema(inputs)
        return [caught.value.path, *(fault.path for fault in caught.value.more)]

    return of
