"""Laws of the operator library."""

import json
import tomllib
from abc import abstractmethod
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from pipeline_runtime.model.schema import Field, FieldType, StreamSchema
from pipeline_runtime.operators import registry as module
from pipeline_runtime.operators.aggregates import Function
from pipeline_runtime.operators.connected import ConnectedOperator, ConnectorSink, ConnectorSource
from pipeline_runtime.operators.filter import Filter
from pipeline_runtime.operators.registry import (
    BUILT_IN,
    OperatorUnknown,
    Registry,
    default_registry,
    mismatches,
)
from pipeline_runtime.operators.sdk import Port, SchemaMismatch, SourceOperator, ViewOperator

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
    assert all(description[name] for name in ("title", "summary", "category", "icon", "docs"))
    assert description["example"] or not operator.Params.model_fields
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


class Abstract(Filter):
    @abstractmethod
    def more(self): ...


class WithDeadRows(Filter):
    outputs = (Port("dead"),)


@pytest.mark.parametrize(
    ("operator", "why"), [(Abstract, "does not define more"), (WithDeadRows, 'an output "dead"')]
)
def test_what_could_not_run_is_refused_when_it_is_loaded(operator, why):
    with pytest.raises(TypeError, match=why):
        module._check("filter", operator)


def columns_in(schema, params, definitions, path="params", beside=None):
    """Yields (path, types that the form offers) for each column among the parameters. None stands for all
    types."""
    if "$ref" in schema:
        schema = definitions[schema["$ref"].rpartition("/")[2]] | schema
    for option in schema.get("anyOf", ()):
        schema = option | {name: value for name, value in schema.items() if name != "anyOf"}
        if option.get("type") != "null":
            break
    if schema.get("format") == "column":
        hint = schema.get("x-column", {})
        free = any((beside or {}).get(name) in values for name, values in hint.get("unless", {}).items())
        yield path, None if free else hint.get("types")
    elif isinstance(params, list):
        for index, item in enumerate(params):
            yield from columns_in(schema["items"], item, definitions, f"{path}[{index}]")
    elif isinstance(params, dict):
        for name, value in params.items():
            yield from columns_in(schema["properties"][name], value, definitions, f"{path}.{name}", params)


USES = [
    ("live-chart", {"columns": ["c"], "by": "c"}),
    ("threshold-alert", {"columns": ["c"], "limit": 1}),
    ("running-statistics", {"column": "c", "key": "c"}),
    ("edge-detection", {"columns": ["c"]}),
    ("record-around", {"event": "c"}),
    (
        "keyed-aggregate",
        {"keys": ["c"], "aggregates": [{"function": name, "column": "c"} for name in Function]},
    ),
    ("select", {"columns": [{"column": "c", "as": "d"}]}),
]


@pytest.mark.parametrize(("type_", "params"), USES, ids=lambda value: value if isinstance(value, str) else "")
@pytest.mark.parametrize("found", FieldType)
def test_the_columns_that_a_form_offers_are_those_that_the_operator_takes(registry, type_, params, found):
    schema = registry.describe(type_)["params_schema"]
    refused = [
        path
        for path, types in columns_in(schema, params, schema.get("$defs", {}))
        if types is not None and found.value not in types
    ]
    operator = registry.create(type_, params)
    try:
        operator.output_schema({"in": StreamSchema(fields=(Field(name="c", type=found),))})
        told = []
    except SchemaMismatch as error:
        # That two outputs are named alike is another fault.
        told = [fault.path for fault in mismatches(error) if fault.message.endswith("is needed")]
    assert told == refused


def test_each_connector_says_why_rows_come_as_often_as_they_do_and_what_is_ticked_is_taken():
    for operator in default_registry().all():
        is_connected = issubclass(operator, ConnectedOperator)
        assert bool(operator.delivery_why) == is_connected, operator.type
        if operator.delivery == "exactly once":
            others = (ConnectorSource.delivery_why, ConnectorSink.delivery_why)
            assert operator.delivery_why not in others, operator.type
        assert operator.ticks == "none" or "taken" in vars(operator), operator.type
