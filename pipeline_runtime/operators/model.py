"""Transform: a trained model's answer to each row."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from pipeline_runtime.model.faults import did_you_mean, listed, words_for_pattern
from pipeline_runtime.model.schema import Field as SchemaField, FieldType, StreamSchema
from pipeline_runtime.operators.columns import NUMERIC, NewColumn, NumericColumn, SchemaCheck
from pipeline_runtime.operators.lineage import Came, TracedRow, named, same_row
from pipeline_runtime.operators.onnx_file import ModelUnreadable, Signature, Slot, read_signature
from pipeline_runtime.operators.recording import DATA, arrow_type
from pipeline_runtime.operators.sdk import (
    ArrowTransform,
    OperatorContext,
    Params,
    SchemaMismatch,
    TransformOperator,
)
from pipeline_runtime.operators.tables import REJECT, with_column

COLUMNS_MAX = 1000
DEMO_MODELS = {"demo:beats": "beats.onnx"}
_FILE: dict[str, JsonValue] = {
    "format": "file",
    "x-accept": [".onnx"],
    "x-files": [{"reference": "demo:beats", "name": "Sample: normal and abnormal heartbeats"}],
}
_NUMBERED = re.compile(r"(.*?)(0|[1-9]\d{0,8})")
_DTYPES: dict[str, Any] = {
    "float": np.float32,
    "double": np.float64,
    "int32": np.int32,
    "int64": np.int64,
}
_WHOLE = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_TYPES: dict[str, FieldType] = {
    **dict.fromkeys(("float", "double", "float16"), FieldType.NUMBER),
    **dict.fromkeys(_WHOLE, FieldType.INTEGER),
    "string": FieldType.STRING,
    "bool": FieldType.BOOLEAN,
}
_WHOLE_MAX = 2**63 - 1


class Fed(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    input: str | None = Field(
        default=None,
        max_length=200,
        title="The model's input",
        description="the name of one of the model's inputs; empty: its only one",
    )
    columns: tuple[NumericColumn, ...] = Field(
        min_length=1, max_length=COLUMNS_MAX, description="the columns that go in, in this order"
    )
    count: int | None = Field(
        default=None,
        ge=1,
        le=COLUMNS_MAX,
        description="how many numbered columns, from the one in columns on: v0 and 64 mean v0 to v63; empty:"
        " the columns alone",
    )

    @model_validator(mode="after")
    def _numbered(self) -> Fed:
        if self.count is not None and (len(self.columns) != 1 or not _NUMBERED.fullmatch(self.columns[0])):
            raise ValueError("count needs exactly one column whose name ends with a number, such as v0")
        return self

    @property
    def names(self) -> tuple[str, ...]:
        numbered = _NUMBERED.fullmatch(self.columns[0]) if self.count is not None else None
        if numbered is None or self.count is None:
            return self.columns
        return tuple(f"{numbered[1]}{int(numbered[2]) + more}" for more in range(self.count))


AnswerType = Literal[FieldType.NUMBER, FieldType.INTEGER, FieldType.STRING, FieldType.BOOLEAN]


class Answer(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    name: NewColumn = Field(description="the name of the new column")
    output: str | None = Field(
        default=None,
        max_length=200,
        title="The model's output",
        description="the name of one of the model's outputs; empty: its only one",
    )
    index: int | None = Field(
        default=None,
        ge=0,
        lt=100_000,
        description="which value to take if the output has several per row, counted from 0",
    )
    type: AnswerType | None = Field(
        default=None, description="the type of the new column; empty: the one that the model gives"
    )


class ModelParams(Params):
    path: str = Field(
        title="Model",
        pattern=words_for_pattern(r"^(demo|upload):[A-Za-z0-9._-]+$", "choose a file or upload one"),
        description="an ONNX file: demo:<name>, or upload:<id> for one that you uploaded",
        json_schema_extra=_FILE,
    )
    inputs: tuple[Fed, ...] = Field(
        min_length=1, max_length=100, description="which columns go into the model"
    )
    outputs: tuple[Answer, ...] = Field(
        min_length=1, max_length=100, description="the columns that hold the model's answers"
    )


class Model(TransformOperator):
    """Adds a trained model's answers to each row: a label, a probability, an estimate.

    The model is an ONNX file: `demo:beats`, or `upload:<id>` for one that you uploaded. It has at most 16 MiB
    and contains all its numbers. onnxruntime runs it on one core. The usual tools for training models can
    write such files: scikit-learn with skl2onnx (and `zipmap: False`), PyTorch, Keras, LightGBM and others.

    `inputs` says which columns go into which input of the model. An input takes one column, or a tensor of
    several columns in their order. A window of samples is a row with a column for each sample, as *Last
    values* makes it: `columns: [v0], count: 64` are v0 to v63. If an input has more dimensions, as for an
    image or a convolution, the columns fill it row by row. Inputs are of type `float`, `double`, `int32` or
    `int64`.

    `outputs` names the new columns. If an output has several values per row, such as the probability of each
    class, `index` says which one to take.

    The model sees one row at a time. So its answer depends only on the row: not on the batch in which the row
    arrives, and not on the node, except for last digits on different kinds of processor. A small model takes
    about 10 µs per row.

    A row goes to the dead letters with the reason if one of the columns has no value or one that is not
    finite, if the model fails, or if its answer is not a finite number.
    """

    type = "model"
    title = "Model"
    summary = "Asks a trained model (ONNX) about each row"
    category = "transform"
    icon = "brain-circuit"
    Params = ModelParams
    example = {
        "path": "demo:beats",
        "inputs": [{"columns": ["qrs", "ecg", "since_last_s"]}],
        "outputs": [
            {"name": "beat", "output": "label"},
            {"name": "abnormal", "output": "probabilities", "index": 1},
        ],
    }

    params: ModelParams

    def files(self) -> tuple[str, ...]:
        return (self.params.path,)

    @cached_property
    def signature(self) -> Signature | None:
        """Returns None if the file is not at hand, as on a node, which gets everything that follows from
        it."""
        path = self.params.path
        try:
            if path in DEMO_MODELS:
                return read_signature((DATA / DEMO_MODELS[path]).read_bytes())
            if path.startswith("demo:"):
                hint = did_you_mean(path, DEMO_MODELS)
                raise SchemaMismatch("params.path", f"there is no {path}{hint} ({listed(DEMO_MODELS)})")
            return None if self.describe_file is None else read_signature(self.describe_file(path))
        except (FileNotFoundError, ModelUnreadable) as error:
            raise SchemaMismatch("params.path", str(error)) from error

    def came_from(self, made: TracedRow, inputs: Mapping[str, StreamSchema]) -> Mapping[str, Came]:
        new = {answer.name for answer in self.params.outputs}
        return {"in": same_row(made, named(name for name in inputs["in"].names if name not in new))}

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        schema, signature = inputs["in"], self.signature
        with SchemaCheck() as check:
            for place, fed in enumerate(self.params.inputs):
                for name in fed.names:
                    index = 0 if fed.count is not None else fed.columns.index(name)
                    check.column(schema, name, f"params.inputs[{place}].columns[{index}]", NUMERIC)
            if signature is not None:
                _check_inputs(check, self.params.inputs, signature, schema)
                _check_outputs(check, self.params.outputs, signature)
            elif any(answer.type is None for answer in self.params.outputs):
                check.fail("params.outputs", "the types of the outputs are not known here; list them")
            answers = self._filled(signature) if not check.faults else ()
            new = (SchemaField(name=each.name, type=each.type or FieldType.NUMBER) for each in answers)
            fields = (*schema.fields, *new)
            check.unique([field.name for field in fields], "params.outputs")
        return StreamSchema(fields=fields, key=schema.key)

    def _filled(self, signature: Signature | None) -> tuple[Answer, ...]:
        """Returns the answers with the names and types that follow from the model."""
        if signature is None:
            return self.params.outputs
        found = []
        for answer in self.params.outputs:
            slot = _named(signature.outputs, answer.output)
            assert slot is not None  # checked before
            type_ = answer.type or _TYPES[slot.element]
            found.append(answer.model_copy(update={"output": slot.name, "type": type_}))
        return tuple(found)

    def resolve(self, inputs: Mapping[str, StreamSchema]) -> ModelParams:
        if self.signature is None:
            return self.params
        fed = []
        for each in self.params.inputs:
            slot = _named(self.signature.inputs, each.input)
            fed.append(each if slot is None else each.model_copy(update={"input": slot.name}))
        outputs = self._filled(self.signature)
        return self.params.model_copy(update={"inputs": tuple(fed), "outputs": outputs})

    def arrow(self, ctx: OperatorContext) -> ArrowTransform:
        params, path = self.resolve(ctx.input_schemas), self._path(ctx)

        def answered(inputs: Mapping[str, pa.Table]) -> pa.Table:
            rows = inputs["in"]
            columns, reasons = _answers(_open(path), params.inputs, params.outputs, rows)
            for answer, values in zip(params.outputs, columns, strict=True):
                type_ = arrow_type(answer.type or FieldType.NUMBER)
                rows = rows.append_column(answer.name, pa.array(values, type_))
            return with_column(rows, REJECT, pa.array(reasons, pa.string()))

        return answered

    def _path(self, ctx: OperatorContext) -> str:
        shipped = DEMO_MODELS.get(self.params.path)
        return str(DATA / shipped if shipped is not None else ctx.resolve_file(self.params.path))


def _named(slots: Sequence[Slot], name: str | None) -> Slot | None:
    if name is None:
        return slots[0] if len(slots) == 1 else None
    return next((slot for slot in slots if slot.name == name), None)


def _check_inputs(
    check: SchemaCheck, inputs: Sequence[Fed], signature: Signature, schema: StreamSchema
) -> None:
    known, taken = [slot.name for slot in signature.inputs], set()
    for place, fed in enumerate(inputs):
        path, slot = f"params.inputs[{place}]", _named(signature.inputs, fed.input)
        if slot is None:
            _unnamed(check, f"{path}.input", "input", fed.input, known)
        elif slot.name in taken:
            check.fail(f"{path}.input", f'the model\'s input "{slot.name}" is given twice')
        elif slot.element not in _DTYPES:
            what = slot.element or "something that is no tensor"
            check.fail(
                f"{path}.input",
                f'the model\'s input "{slot.name}" is of {what}, but only numbers can be given',
            )
        elif slot.shape_for(len(fed.names)) is None:
            message = f'the model\'s input "{slot.name}" {_shown(slot)}, but it gets {len(fed.names)}'
            check.fail(f"{path}.columns", message)
        elif slot.element.startswith("int"):
            for name in fed.names:
                field = schema.field(name)
                if field is not None and field.type is FieldType.NUMBER:
                    message = f'"{name}" is a number, but the model\'s input "{slot.name}" takes whole ones'
                    check.fail(f"{path}.columns", message)
        if slot is not None:
            taken.add(slot.name)
    missing = [name for name in known if name not in taken]
    if missing and not check.faults:
        check.fail("params.inputs", f"the model needs {listed(missing)}, too")


def _check_outputs(check: SchemaCheck, outputs: Sequence[Answer], signature: Signature) -> None:
    known = [slot.name for slot in signature.outputs]
    for place, answer in enumerate(outputs):
        path, slot = f"params.outputs[{place}]", _named(signature.outputs, answer.output)
        if slot is None:
            _unnamed(check, f"{path}.output", "output", answer.output, known)
            continue
        type_, per_row = _TYPES.get(slot.element), slot.per_row
        if type_ is None:
            why = "is no tensor (of scikit-learn: export it with zipmap=False)"
            why = f"is of {slot.element}" if slot.element else why
            check.fail(f"{path}.output", f'the model\'s output "{slot.name}" {why}')
        elif answer.type not in (None, type_) and (type_, answer.type) != (
            FieldType.INTEGER,
            FieldType.NUMBER,
        ):
            check.fail(f"{path}.type", f'the model\'s output "{slot.name}" is {type_.words}')
        if per_row is not None and answer.index is None and per_row != 1:
            message = f'the model\'s output "{slot.name}" has {per_row} values a row; say which by index'
            check.fail(f"{path}.index", message)
        if per_row is not None and answer.index is not None and answer.index >= per_row:
            message = f'the model\'s output "{slot.name}" has {per_row} values a row, counted from 0'
            check.fail(f"{path}.index", message)


def _unnamed(check: SchemaCheck, path: str, what: str, name: str | None, known: Sequence[str]) -> None:
    if name is None:
        check.fail(path, f"the model has {len(known)} {what}s: say which ({listed(known)})")
    else:
        hint = did_you_mean(name, known)
        check.fail(path, f'the model has no {what} "{name}"{hint} (it has {listed(known)})')


def _shown(slot: Slot) -> str:
    shape = slot.shape or ()
    if not shape or shape[0] not in (None, 1):
        return "has no place for one row"
    lengths = " x ".join("any number" if length is None else str(length) for length in shape[1:])
    return f"takes {lengths or 1} of a row"


# -- where it runs -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Opened:
    session: Any
    inputs: Mapping[str, Slot]


def _open(path: str) -> _Opened:
    stat = Path(path).stat()
    return _opened(path, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=8)
def _opened(path: str, _modified_ns: int, _size: int) -> _Opened:
    """Opened once in each worker process, on one core, since the other cores have rows of their own."""
    import onnxruntime

    content = Path(path).read_bytes()
    signature = read_signature(content)  # also checks that no part of it lies in another file
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    # Without optimizations for this processor, since a standby may have another one.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise ModelUnreadable(f"onnxruntime cannot run this model: {error}") from error
    return _Opened(session, {slot.name: slot for slot in signature.inputs})


def _answers(
    model: _Opened, inputs: Sequence[Fed], outputs: Sequence[Answer], rows: pa.Table
) -> tuple[list[list[Any]], list[str | None]]:
    """Returns the values of each output, and why rows are rejected. Rows are processed one by one: otherwise
    the last digits of a row's result would depend on the others."""
    reasons: list[str | None] = [None] * rows.num_rows
    tensors = {}
    for fed in inputs:
        slot = model.inputs[fed.input or next(iter(model.inputs))]
        tensors[slot.name] = _tensor(rows, fed, slot, reasons)
    wanted = [answer.output for answer in outputs]
    columns: list[list[Any]] = [[None] * rows.num_rows for _ in outputs]
    for row in range(rows.num_rows):
        if reasons[row] is not None:
            continue
        try:
            said = model.session.run(wanted, {name: tensor[row] for name, tensor in tensors.items()})
            values = [_value(answer, each) for answer, each in zip(outputs, said, strict=True)]
        except Exception as error:
            # onnxruntime's errors have no class of their own. A row that it cannot process is a fault in the
            # data.
            reasons[row] = str(error).partition("\n")[0] or type(error).__name__
            continue
        for column, value in zip(columns, values, strict=True):
            column[row] = value
    return columns, reasons


def _tensor(rows: pa.Table, fed: Fed, slot: Slot, reasons: list[str | None]) -> NDArray[Any]:
    """Returns (rows, *shape of one row's). `reasons` gets why a row cannot be processed."""
    dtype = _DTYPES[slot.element]
    found = []
    for name in fed.names:
        array = rows[name]
        missing = pc.is_null(array).to_numpy(zero_copy_only=False)
        given = pc.fill_null(array, 0).to_numpy(zero_copy_only=False)
        with np.errstate(over="ignore", invalid="ignore"):
            values = given.astype(dtype)
        infinite = ~np.isfinite(given)
        beyond = ~np.isfinite(values) if np.issubdtype(dtype, np.floating) else values != given
        for row in np.flatnonzero(missing | infinite | beyond).tolist():
            why = "has no value" if missing[row] else "is too large for the model"
            why = "is not a finite number" if infinite[row] else why
            reasons[row] = reasons[row] or f'column "{name}" {why}'
        found.append(values)
    shape = slot.shape_for(len(fed.names))
    if shape is None:
        raise ModelUnreadable(f'{len(fed.names)} columns do not fit the model\'s input "{slot.name}"')
    return np.stack(found, axis=1).reshape(rows.num_rows, *shape)


def _value(answer: Answer, said: Any) -> Any:
    """Returns the new column's value. Raises ValueError, which says why there is none."""
    values = np.asarray(said).reshape(-1)
    if answer.index is None and len(values) != 1:
        raise ValueError(f'the model\'s output "{answer.output}" has {len(values)} values for this row')
    index = answer.index or 0
    if index >= len(values):
        raise ValueError(f'the model\'s output "{answer.output}" has {len(values)} values for this row')
    value = values[index]
    if answer.type is FieldType.NUMBER:
        if not np.isfinite(value):
            raise ValueError(f'the model\'s output "{answer.output}" is not a finite number')
        return float(value)
    if answer.type is FieldType.INTEGER:
        if value > _WHOLE_MAX:
            raise ValueError(f'the model\'s output "{answer.output}" is too large')
        return int(value)
    return bool(value) if answer.type is FieldType.BOOLEAN else str(value)
