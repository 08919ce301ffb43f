"""Small models, made for tests, whose answers numpy can compute."""

from __future__ import annotations

from typing import Any

from onnx import ModelProto, NodeProto, TensorProto, helper

FLOAT, INT32, INT64, STRING = TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT64, TensorProto.STRING
Slots = dict[str, tuple[int, list[int | str | None] | None]]


def model(nodes: list[NodeProto], inputs: Slots, outputs: Slots, constants: dict[str, Any]) -> ModelProto:
    """`inputs`, `outputs`: name -> (type, shape)."""
    graph = helper.make_graph(
        nodes,
        "test",
        [helper.make_tensor_value_info(name, *slot) for name, slot in inputs.items()],
        [helper.make_tensor_value_info(name, *slot) for name, slot in outputs.items()],
        [
            helper.make_tensor(name, FLOAT, [len(rows), len(rows[0])], [cell for row in rows for cell in row])
            for name, rows in constants.items()
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def linear(weights: list[list[float]]) -> ModelProto:
    """x (n, k) -> y (n, m) = x @ weights."""
    k, m = len(weights), len(weights[0])
    node = helper.make_node("MatMul", ["x", "weights"], ["y"])
    return model([node], {"x": (FLOAT, [None, k])}, {"y": (FLOAT, ["n", m])}, {"weights": weights})


def difference() -> ModelProto:
    """Two inputs of a number each: a, b -> a - b, a / b."""
    nodes = [helper.make_node("Sub", ["a", "b"], ["less"]), helper.make_node("Div", ["a", "b"], ["share"])]
    slots: Slots = {"a": (FLOAT, [None, 1]), "b": (FLOAT, [None, 1])}
    return model(nodes, slots, {"less": (FLOAT, [None, 1]), "share": (FLOAT, [None, 1])}, {})


def largest(places: int, type_: int = INT64) -> ModelProto:
    """x (n, 1, places) of whole numbers -> where the largest is (n, 1), whole."""
    node = helper.make_node("ArgMax", ["x"], ["place"], axis=2, keepdims=0)
    return model([node], {"x": (type_, ["n", 1, places])}, {"place": (INT64, ["n", 1])}, {})


def mean_of_all(k: int) -> ModelProto:
    """x (n, k) -> x less the mean of all rows: a row's answer would depend on those beside it."""
    nodes = [
        helper.make_node("ReduceMean", ["x"], ["mean"], axes=[0], keepdims=1),
        helper.make_node("Sub", ["x", "mean"], ["y"]),
    ]
    return model(nodes, {"x": (FLOAT, [None, k])}, {"y": (FLOAT, [None, k])}, {})
