"""The part of a draft that a preview needs."""

from __future__ import annotations

import pytest

from pipeline_runtime.model.document import parse_document
from pipeline_runtime.operators.registry import default_registry
from pipeline_runtime.planning.path import from_running, path_document, reads_of, running_streams
from pipeline_runtime.planning.plan import plan_groups
from tests.unit.preview.previewing import GENERATOR, draft, question

A = {"id": "a", "type": "filter", "inputs": {"in": "in"}, "params": {"condition": "x > 0"}, "node": "edge-a"}
B = {"id": "b", "type": "select", "inputs": {"in": "a.out"}, "params": {"columns": [{"column": "x"}]}}
C = {"id": "c", "type": "live-chart", "inputs": {"in": "b"}, "params": {"columns": ["x"]}}
WRONG = {"id": "wrong", "type": "no such type", "inputs": {"in": "b"}, "params": {}}


def test_only_the_element_and_all_before_it_are_there_without_their_places() -> None:
    found = path_document({**draft(GENERATOR, A, B, WRONG)}, "b")
    assert [each["id"] for each in found["spec"]["elements"]] == ["in", "a", "b"]
    assert not any("node" in each for each in found["spec"]["elements"])
    assert reads_of(draft(GENERATOR, A, B), "b") == {"in": "a.out"}


def test_a_cycle_ends_and_an_unknown_input_is_left_to_validation() -> None:
    loop = [{**A, "inputs": {"in": "b"}}, B, {**C, "inputs": {"in": "nobody"}}]
    assert len(path_document(draft(*loop), "b")["spec"]["elements"]) == 2
    assert len(path_document(draft(*loop), "c")["spec"]["elements"]) == 1
    with pytest.raises(KeyError):
        path_document(draft(*loop), "nobody")


def running(*elements: dict, together: tuple[str, ...] = ()) -> dict:
    document = draft(*elements)
    document["spec"]["groups"] = [{"id": "g", "elements": list(together)}] if together else []
    return running_streams(plan_groups(parse_document(document), "d7", default_registry(), {}))


@pytest.mark.parametrize(
    ("element", "together", "kept", "topics"),
    [
        ("b", (), ["b"], ["fl.d7.a.out"]),
        ("b", ("a", "b"), ["a", "b"], ["fl.d7.in.out"]),
        ("c", (), ["b"], ["fl.d7.a.out"]),
        ("in", (), ["in"], []),
    ],
)
def test_it_begins_at_the_last_streams_that_run(
    element: str, together: tuple[str, ...], kept: list[str], topics: list[str]
) -> None:
    document = draft(GENERATOR, A, B, C)
    groups = question(document, element).groups
    found = from_running(groups, element, running(GENERATOR, A, B, C, together=together))
    assert [each.group for each in found] == kept
    read = [stream.topic for each in found for stream in each.inputs]
    assert [topic for topic in read if topic.startswith("fl.d7")] == topics


def test_what_a_connector_has_brought_is_read_also_with_other_columns() -> None:
    params = {"connection": "b", "topics": ["a"], "columns": [{"name": "x", "type": "number"}]}
    brought = {"id": "in", "type": "mqtt-in", "params": params}
    other = {**brought, "params": {**params, "columns": [{"name": "y", "type": "number"}]}}
    [found] = from_running(question(draft(other), "in").groups, "in", running(brought))
    assert [stream.topic for stream in found.inputs] == ["fl.d7.in.intake"]


def test_a_stream_that_has_other_columns_now_is_made_by_the_preview() -> None:
    before = {**GENERATOR, "params": {**GENERATOR["params"], "signals": [{"name": "x"}, {"name": "y"}]}}
    found = from_running(question(draft(GENERATOR, A), "a").groups, "a", running(before, A))
    assert [each.group for each in found] == ["in", "a"]
