"""Laws of the operator library."""

import json
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from pipeline_runtime.operators import registry as module
from pipeline_runtime.operators.registry import BUILT_IN, OperatorUnknown, Registry, default_registry
from pipeline_runtime.operators.sdk import SourceOperator, ViewOperator

OPERATORS = default_registry().all()


def test_the_built_in_library_is_what_the_project_declares():
    project = tomllib.loads((Path(module.__file__).parents[2] / "pyproject.toml").read_text())
    declared = project["project"]["entry-points"][module.ENTRY_POINT_GROUP]
    assert declared == {name: f"pipeline_runtime.operators.{target}" for name, target in BUILT_IN.items()}


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.type)
def test_each_operator_describes_itself(registry, operator):
    assert registry.get(operator.type) is operator
    description = registry.describe(operator.type)
    assert json.loads(json.dumps(description)) == description
    assert all(description[name] for name in ("title", "summary", "category", "icon", "docs", "example"))
    assert len(description["docs"]) > len(description["summary"])
    assert description["params_schema"]["type"] == "object"
    assert description["params_schema"]["additionalProperties"] is False
    assert description["follow"] in ("exact", "coalesced", "none")
    assert description["follow_depends"] == (operator.type == "keyed-aggregate")


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.type)
def test_each_example_is_valid_and_survives_json(registry, operator):
    created = registry.create(operator.type, operator.example)
    told = json.loads(created.params.model_dump_json(by_alias=True))
    assert registry.create(operator.type, told).params == created.params


def test_only_sources_have_no_inputs():
    for operator in OPERATORS:
        assert bool(operator.inputs) != (issubclass(operator, SourceOperator) or operator.external == "in")
        assert not (issubclass(operator, ViewOperator) and operator.outputs)


def test_an_unknown_type_names_the_near_one(registry):
    with pytest.raises(OperatorUnknown, match='did you mean "csv-sink"'):
        registry.get("csv-sinks")


def test_one_packages_failure_takes_no_other_operator_away():
    operators, failures = {}, {}
    for name, value in [
        ("gone", "no.such.module:Thing"),
        ("no-operator", "pathlib:Path"),
        ("other-name", "pipeline_runtime.operators.filter:Filter"),
        ("filter", "pipeline_runtime.operators.filter:Filter"),
        ("filter", "pipeline_runtime.operators.filter:Filter"),
    ]:
        module._load(EntryPoint(name, value, module.ENTRY_POINT_GROUP), operators, failures)
    assert list(operators) == ["filter"]
    assert set(failures) == {"gone", "no-operator", "other-name", "filter"}
    with pytest.raises(OperatorUnknown, match="failed to load"):
        Registry(operators, failures).get("gone")
