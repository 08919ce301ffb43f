"""The latency target: of the document, of its groups, and of what an upgrade changes."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline_runtime.model.document import parse_document
from pipeline_runtime.model.faults import DocumentInvalid
from pipeline_runtime.model.spec import LATENCY_MS, LATENCY_MS_MAX, LATENCY_MS_MIN
from pipeline_runtime.operators.registry import default_registry
from pipeline_runtime.planning.plan import plan_groups
from pipeline_runtime.planning.upgrade import element_changes, group_changes
from pipeline_runtime.settings import Settings


def planned(targets: dict[str, Any], groups: dict[str, list[str]] | None = None, **options: Any) -> Any:
    elements: list[dict[str, Any]] = [
        {"id": "a", "type": "generator"},
        {"id": "b", "type": "filter", "params": {"condition": "true"}, "inputs": {"in": "a"}},
        {"id": "c", "type": "filter", "params": {"condition": "true"}, "inputs": {"in": "b"}},
    ]
    document = {
        "apiVersion": "fogline/v1",
        "kind": "Pipeline",
        "metadata": {"name": "p"},
        "spec": {
            "elements": [each | targets.get(each["id"], {}) for each in elements],
            "groups": [{"id": id, "elements": members} for id, members in (groups or {}).items()],
        },
    }
    return plan_groups(parse_document(document), "d", default_registry(), {}, **options)


def targets_of(specs: Any) -> dict[str, int]:
    return {spec.group: spec.pace.latency_ms for spec in specs}


def test_a_group_has_the_least_target_of_its_elements() -> None:
    said = {"a": {"latency_ms": 2000}, "b": {"latency_ms": 100}}
    assert targets_of(planned(said)) == {"a": 2000, "b": 100, "c": LATENCY_MS}
    assert targets_of(planned(said, {"g": ["a", "b"]}, latency_ms=50)) == {"g": 100, "c": 50}


@pytest.mark.parametrize("wrong", [4, 600_001, "100", 100.5, True])
def test_a_target_is_a_number_of_milliseconds(wrong: Any) -> None:
    with pytest.raises(DocumentInvalid) as found:
        planned({"b": {"latency_ms": wrong}})
    [fault] = found.value.faults
    assert (fault.element, fault.path) == ("b", "spec.elements[1].latency_ms")


def test_another_target_is_told_and_starts_nothing_again() -> None:
    old, new = planned({}), planned({"b": {"latency_ms": 100}})
    assert group_changes(old, new).changed == ()
    changes = {each.element: each for each in element_changes(old, new, default_registry())}
    assert {id: each.change for id, each in changes.items()} == {
        "a": "unchanged",
        "b": "retuned",
        "c": "unchanged",
    }
    assert changes["b"].reason == "Latency target 500 ms to 100 ms"


def test_the_installation_says_the_same_as_the_model() -> None:
    field = Settings.model_fields["latency_ms"]
    least, most = field.metadata
    assert (field.default, least.ge, most.le) == (LATENCY_MS, LATENCY_MS_MIN, LATENCY_MS_MAX)
