"""Reads an ONNX file without running it: the inputs and outputs of a model, found by the format alone.

The web looks at files of users. It runs nothing in them, and does not import onnxruntime.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from google.protobuf.message import DecodeError, Message

from pipeline_runtime.model.protobuf import message_classes

MODEL_BYTES_MAX = 16 << 20
"""A model is read into memory as a whole, by the web when it is uploaded and by each worker that runs it."""
PARTS_MAX = 500_000
"""The most nodes, tensors and other parts. A model that consists of nothing else has one in two bytes."""
SLOTS_MAX = 200
_DESCRIBED_BYTES_MAX = 64 * 1024
_NO_MODEL = "it is not an ONNX model; choose another file"

# From https://github.com/onnx/onnx, onnx/onnx.proto: message -> field -> (number, type). These are the fields
# that describe inputs and outputs, and the way to each tensor. All others are skipped.
_FORMAT: dict[str, dict[str, tuple[int, str]]] = {
    "Model": {
        "ir_version": (1, "int64"),
        "graph": (7, "Graph"),
        "training_info": (20, "*Training"),
        "functions": (25, "*Function"),
    },
    "Graph": {
        "node": (1, "*Node"),
        "initializer": (5, "*Tensor"),
        "input": (11, "*Value"),
        "output": (12, "*Value"),
        "sparse_initializer": (15, "*Sparse"),
    },
    "Training": {"initialization": (1, "Graph"), "algorithm": (2, "Graph")},
    "Function": {"node": (7, "*Node"), "attribute_proto": (11, "*Attribute")},
    "Node": {"attribute": (5, "*Attribute")},
    "Attribute": {
        "t": (5, "Tensor"),
        "g": (6, "Graph"),
        "tensors": (10, "*Tensor"),
        "graphs": (11, "*Graph"),
        "sparse_tensor": (22, "Sparse"),
        "sparse_tensors": (23, "*Sparse"),
    },
    "Tensor": {"name": (8, "string"), "external_data": (13, "*Entry"), "data_location": (14, "int64")},
    "Entry": {"key": (1, "string")},
    "Sparse": {"values": (1, "Tensor"), "indices": (2, "Tensor")},
    "Value": {"name": (1, "string"), "type": (2, "Type")},
    "Type": {"tensor_type": (1, "TensorType")},
    "TensorType": {"elem_type": (1, "int64"), "shape": (2, "Shape")},
    "Shape": {"dim": (1, "*Dim")},
    "Dim": {"dim_value": (1, "int64"), "dim_param": (2, "string")},
}
_ELEMENTS = {
    **{1: "float", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 8: "string"},
    **{9: "bool", 10: "float16", 11: "double", 12: "uint32", 13: "uint64"},
}


class ModelUnreadable(ValueError):
    """The file is no ONNX model, or none that can be run here. Says why."""


@dataclass(frozen=True)
class Slot:
    """An input or output. `element` is the type in its tensor ("float", "int64", ...), or "" if it is no
    tensor. In `shape`, a length that is open is None; the whole shape is None if it is not given."""

    name: str
    element: str
    shape: tuple[int | None, ...] | None

    @property
    def per_row(self) -> int | None:
        """Returns how many values it has for one row, or None if that is open."""
        rest = (self.shape or (None, None))[1:]
        return None if None in rest else math.prod(length for length in rest if length is not None)

    def shape_for(self, count: int) -> tuple[int, ...] | None:
        """Returns the shape of the tensor of one row with so many values, or None if they do not fit."""
        if self.shape is None:
            return (1, count)
        if not self.shape or self.shape[0] not in (None, 1):
            return None
        open_ = [place for place, length in enumerate(self.shape) if place and length is None]
        known = math.prod(length for length in self.shape[1:] if length is not None)
        if len(open_) > 1 or not known or (count % known if open_ else count != known):
            return None
        return (1, *(length if length is not None else count // known for length in self.shape[1:]))


@dataclass(frozen=True)
class Signature:
    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]


def read_signature(content: bytes) -> Signature:
    """Reads a model, or what `described` has left of one. Raises ModelUnreadable."""
    graph = _read(content).graph
    constant = {tensor.name for tensor in graph.initializer}
    inputs = tuple(_slot(value) for value in graph.input if value.name not in constant)
    return Signature(inputs, tuple(map(_slot, graph.output)))


def described(content: bytes) -> bytes:
    """Returns the model without nodes and numbers: the parts that describe its inputs and outputs, in the
    same format. Raises ModelUnreadable."""
    model = _read(content)
    constant = {tensor.name for tensor in model.graph.initializer}
    least = _classes()["Model"](ir_version=model.ir_version)
    least.graph.input.extend(value for value in model.graph.input if value.name not in constant)
    least.graph.output.extend(model.graph.output)
    least.DiscardUnknownFields()
    found: bytes = least.SerializeToString()
    if len(found) > _DESCRIBED_BYTES_MAX:
        raise ModelUnreadable(
            "its inputs and outputs have names that are too long; save it with shorter ones"
        )
    return found


def _read(content: bytes) -> Any:
    if len(content) > MODEL_BYTES_MAX:
        raise ModelUnreadable(f"it is larger than {MODEL_BYTES_MAX:,} bytes; choose a smaller model")
    try:
        model: Any = _classes()["Model"].FromString(content)
    except DecodeError as error:
        raise ModelUnreadable(_NO_MODEL) from error
    if not model.ir_version or not model.graph.output:
        raise ModelUnreadable(_NO_MODEL)
    if max(len(model.graph.input), len(model.graph.output)) > SLOTS_MAX:
        raise ModelUnreadable(f"it has more than {SLOTS_MAX} inputs or outputs; choose a smaller model")
    for number, part in enumerate(_within(model)):
        if number >= PARTS_MAX:
            raise ModelUnreadable(f"it has more than {PARTS_MAX:,} parts; choose a smaller model")
        if _is_elsewhere(part):
            raise ModelUnreadable("its numbers are in another file; save the model as one file")
    return model


def _slot(value: Any) -> Slot:
    if not value.type.HasField("tensor_type"):
        return Slot(value.name, "", None)
    tensor = value.type.tensor_type
    lengths = tuple(dim.dim_value if dim.HasField("dim_value") else None for dim in tensor.shape.dim)
    element = _ELEMENTS.get(tensor.elem_type, f"type {tensor.elem_type}")
    return Slot(value.name, element, lengths if tensor.HasField("shape") else None)


def _is_elsewhere(message: Any) -> bool:
    """Returns whether it holds a path to another file, which onnxruntime would read."""
    return message.DESCRIPTOR.name == "Tensor" and bool(message.data_location or message.external_data)


def _within(message: Message) -> Iterator[Message]:
    """Yields the message and all messages in it, no deeper than protobuf reads."""
    yield message
    for field, value in message.ListFields():
        if field.message_type is not None:
            parts: Sequence[Message] = [value] if isinstance(value, Message) else value
            for part in parts:
                yield from _within(part)


@cache
def _classes() -> dict[str, Any]:
    """Returns protobuf's classes for the format."""
    return message_classes("onnx", _FORMAT)
