"""Laws of validation: every kind of fault names its element and its path."""

import json

import pytest

from pipeline_runtime.model.document import ELEMENTS_MAX
from pipeline_runtime.model.schema import FieldType
from pipeline_runtime.model.templates import load_template, template_names
from pipeline_runtime.operators.registry import Registry, default_registry
from pipeline_runtime.operators.sdk import DataFrameOperator, Operator, Params as NoParams
from pipeline_runtime.planning.validation import validate


@pytest.fixture
def faults(registry):
    def of(document, **options):
        return [(f.element, f.path, f.code) for f in validate(document, registry, **options).faults]

    return of


def test_templates_have_no_faults(faults):
    for name in template_names():
        assert faults(load_template(name), nodes={name: name for name in ("edge-a", "edge-b", "cloud")}) == []


def test_schemas_propagate_along_edges(registry, pipeline, source, keep, window):
    schemas = validate(pipeline(window("w", "f"), keep("f"), source()), registry).schemas
    assert set(schemas) == {"source.out", "f.out", "w.out"}
    assert schemas["f.out"] == schemas["source.out"]
    assert schemas["w.out"].names == ("window_start", "window_end", "value")
    assert schemas["w.out"].field("value").type is FieldType.NUMBER


def test_an_empty_pipeline_has_a_fault(faults, pipeline):
    assert faults(pipeline()) == [(None, "spec.elements", "empty")]


def test_a_document_of_too_many_elements_is_refused(faults, pipeline, source):
    too_many = [source(f"s{number}") for number in range(ELEMENTS_MAX + 1)]
    assert faults(pipeline(*too_many)) == [(None, "spec.elements", "invalid")]


def test_an_unknown_type_names_the_near_one(registry, pipeline, source):
    result = validate(pipeline(source(type="genrator")), registry)
    assert [(f.element, f.path, f.code) for f in result.faults] == [
        ("source", "spec.elements[0].type", "unknown_type")
    ]
    assert 'did you mean "generator"' in result.faults[0].message


def test_two_elements_of_one_id_are_both_named(faults, pipeline, source):
    assert faults(pipeline(source(), source())) == [
        ("source", "spec.elements[0].id", "duplicate_id"),
        ("source", "spec.elements[1].id", "duplicate_id"),
    ]


def test_bad_parameters_are_named_each_by_its_path(faults, pipeline, source):
    params = {"rate": -1, "speed": 2, "signals": [{"name": "a"}, {"shape": "square"}]}
    assert faults(pipeline(source(params=params))) == [
        ("source", "spec.elements[0].params.rate", "invalid"),
        ("source", "spec.elements[0].params.signals[1].name", "missing"),
        ("source", "spec.elements[0].params.signals[1].shape", "invalid"),
        ("source", "spec.elements[0].params.speed", "unknown_field"),
    ]


def test_a_missing_input_is_named(faults, pipeline, source, keep):
    assert faults(pipeline(source(), keep("f") | {"inputs": {}})) == [
        ("f", "spec.elements[1].inputs.in", "missing_input")
    ]


def test_a_dangling_input_is_named_with_the_near_element(registry, pipeline, source, keep):
    (fault,) = validate(pipeline(source(), keep("f", "sourc")), registry).faults
    assert (fault.element, fault.path, fault.code) == ("f", "spec.elements[1].inputs.in", "unknown_element")
    assert 'did you mean "source"' in fault.message


def test_an_unknown_input_port_is_named(faults, pipeline, source, keep):
    document = pipeline(source(), keep("f") | {"inputs": {"in": "source", "left": "source"}})
    assert faults(document) == [("f", "spec.elements[1].inputs.left", "unknown_port")]


def test_an_unknown_output_port_is_named(faults, pipeline, source, keep):
    document = pipeline(source(), keep("f", "source.left"))
    assert faults(document) == [("f", "spec.elements[1].inputs.in", "unknown_port")]


def test_a_sink_gives_nothing_to_read(faults, pipeline, source, keep):
    sink = {"id": "s", "type": "csv-sink", "inputs": {"in": "source"}}
    assert faults(pipeline(source(), sink, keep("f", "s"))) == [
        ("f", "spec.elements[2].inputs.in", "unknown_port")
    ]


def test_a_cycle_names_its_elements(registry, pipeline, keep):
    (fault,) = validate(
        pipeline(keep("a", "c"), keep("b", "a"), keep("c", "b"), keep("d", "c")), registry
    ).faults
    assert (fault.element, fault.path, fault.code) == ("a", "spec.elements[0].inputs", "cycle")
    assert "a → b → c → a" in fault.message


def test_an_element_that_reads_itself_is_a_cycle(faults, pipeline, keep):
    assert faults(pipeline(keep("a", "a"))) == [("a", "spec.elements[0].inputs", "cycle")]


def test_a_schema_mismatch_names_the_parameter(registry, pipeline, source, keep):
    (fault,) = validate(pipeline(source(), keep("f", params={"condition": "valeu > 0"})), registry).faults
    assert (fault.element, fault.path, fault.code) == ("f", "spec.elements[1].params.condition", "schema")
    assert 'did you mean "value"' in fault.message


def _instead(registry, document):
    (fault,) = validate(document, registry).faults
    return {each.column: each.value for each in fault.instead}


def test_an_unknown_column_of_a_condition_names_those_that_would_do(registry, pipeline, source, keep):
    renamed = {"columns": [{"column": "value", "as": "u"}, {"column": "key"}, {"column": "value", "as": "p"}]}
    select = {"id": "s", "type": "select", "inputs": {"in": "source"}, "params": renamed}

    def instead(condition):
        return _instead(registry, pipeline(source(), select, keep("f", "s", params={"condition": condition})))

    assert instead("value > 230") == {"u": "u > 230", "p": "p > 230"}
    assert instead("`value` > 230 and value < abs(u)") == {
        "u": "u > 230 and u < abs(u)",
        "p": "p > 230 and p < abs(u)",
    }
    # the text 'value' is no column, and a condition that lacks another column too can be mended twice
    assert instead("valu = 'value' and w > 1")["key"] == "key = 'value' and w > 1"


def test_an_unknown_column_of_a_formula_or_a_parameter_names_those_that_would_do(
    registry, pipeline, source, window
):
    derive = {
        "id": "d",
        "type": "derive",
        "inputs": {"in": "source"},
        "params": {"columns": [{"name": "half", "expression": "valeu / 2"}]},
    }
    assert _instead(registry, pipeline(source(), derive)) == {"value": "value / 2", "n": "n / 2"}
    params = {"size_s": 1, "aggregates": [{"function": "sum", "column": "key"}]}
    instead = _instead(registry, pipeline(source(), window("w", params=params)))
    assert instead == {"value": "value", "n": "n"}


def test_all_mismatches_of_one_element_are_told(faults, pipeline, source, window):
    params = {
        "size_s": 1,
        "keys": ["nokey"],
        "aggregates": [{"function": "avg", "column": "x"}, {"function": "sum", "column": "key"}],
    }
    assert faults(pipeline(source(), window("w", params=params))) == [
        ("w", "spec.elements[1].params.keys[0]", "schema"),
        ("w", "spec.elements[1].params.aggregates[0].column", "schema"),
        ("w", "spec.elements[1].params.aggregates[1].column", "schema"),
    ]


@pytest.mark.parametrize(
    "text",
    ["rand() > 0.5", "now() > _time", "uuid() = 'a'", "current_timestamp > _time", "shuffle(key) = 'a'"],
)
def test_an_expression_that_would_not_repeat_is_refused(registry, pipeline, source, keep, text):
    (fault,) = validate(pipeline(source(), keep("f", params={"condition": text})), registry).faults
    assert (fault.element, fault.path) == ("f", "spec.elements[1].params.condition")
    assert "another value at each run" in fault.message


def test_an_unknown_node_is_named_when_nodes_are_known(registry, pipeline, source):
    document = pipeline(source(node="edge-c"))
    assert validate(document, registry).valid
    (fault,) = validate(document, registry, nodes={"edge-a": "hall", "cloud": "cloud"}).faults
    assert (fault.element, fault.path, fault.code) == ("source", "spec.elements[0].node", "unknown_node")
    assert "edge-a" in fault.message


def test_a_site_is_known_and_is_no_second_place(registry, pipeline, source):
    nodes = {"edge-a": "hall", "cloud": "cloud"}
    assert validate(pipeline(source(site="hall")), registry, nodes=nodes).valid
    (unknown,) = validate(pipeline(source(site="hal")), registry, nodes=nodes).faults
    assert (unknown.path, unknown.code) == ("spec.elements[0].site", "unknown_site")
    assert 'did you mean "hall"' in unknown.message
    (both,) = validate(pipeline(source(site="hall", node="edge-a")), registry, nodes=nodes).faults
    assert (both.path, both.code) == ("spec.elements[0].site", "node_and_site")


def test_elements_that_are_to_be_apart_exist_and_do_not_run_as_one(faults, pipeline, source, keep):
    def at(*apart, groups=()):
        return faults(pipeline(source(apart=list(apart)), keep("f"), groups=groups))

    assert at("f") == []
    assert at("source", "gone") == [
        ("source", "spec.elements[0].apart[0]", "apart_itself"),
        ("source", "spec.elements[0].apart[1]", "unknown_element"),
    ]
    assert at("f", groups=[{"id": "g", "elements": ["source", "f"]}]) == [
        ("source", "spec.elements[0].apart[0]", "apart_together")
    ]


def group(*elements, id="g"):
    return {"id": id, "elements": list(elements)}


def test_a_group_has_one_stateful_element(faults, pipeline, source, window):
    document = pipeline(source(), window("a"), window("b", "a"), groups=[group("a", "b")])
    assert faults(document) == [("b", "spec.groups[0].elements", "group_stateful")]


def test_a_group_hangs_together(faults, pipeline, source, keep):
    document = pipeline(source(), keep("a"), keep("b"), groups=[group("a", "b")])
    assert faults(document) == [("a", "spec.groups[0].elements", "group_disconnected")]


def test_groups_make_no_cycle(registry, pipeline, source, keep):
    document = pipeline(
        source(),
        keep("a"),
        keep("b", "a"),
        {
            "id": "c",
            "type": "join",
            "inputs": {"left": "a", "right": "b"},
            "params": {"left_key": "key", "right_key": "key", "within_s": 1},
        },
        groups=[group("a", "c")],
    )
    (fault,) = validate(document, registry).faults
    assert (fault.element, fault.path, fault.code) == ("a", "spec.groups[0].elements", "group_cycle")
    assert "b" in fault.message


def test_a_group_runs_on_one_node(faults, pipeline, source, keep):
    for places in (
        [{"node": "x"}, {"node": "y"}],
        [{"site": "x"}, {"site": "y"}],
        [{"site": "x"}, {"node": "x"}],
    ):
        first, second = places
        document = pipeline(source(), keep("a", **first), keep("b", "a", **second), groups=[group("a", "b")])
        assert faults(document) == [("a", "spec.groups[0].elements", "group_nodes")]


def test_a_groups_id_is_no_elements_id(faults, pipeline, source, keep):
    document = pipeline(source(), keep("a"), keep("b", "a"), groups=[group("a", "b", id="source")])
    assert faults(document) == [("source", "spec.groups[0].id", "group_id")]


def test_a_groups_members_exist_and_are_in_no_other_group(faults, pipeline, source, keep):
    document = pipeline(
        source(), keep("a"), keep("b", "a"), groups=[group("a", "x"), group("a", "b", id="h")]
    )
    assert faults(document) == [
        (None, "spec.groups[0].elements[1]", "unknown_element"),
        ("a", "spec.groups[1].elements[0]", "group_overlap"),
    ]


def test_two_groups_of_one_id_are_both_named(faults, pipeline, source, keep):
    document = pipeline(source(), keep("a"), groups=[group("a"), group("source")])
    assert faults(document) == [
        (None, "spec.groups[0].id", "duplicate_id"),
        (None, "spec.groups[1].id", "duplicate_id"),
    ]


def test_a_group_with_a_source_reads_nothing_else(faults, pipeline, source, keep):
    joined = {
        "id": "j",
        "type": "join",
        "inputs": {"left": "one", "right": "two"},
        "params": {"left_key": "key", "right_key": "key", "within_s": 1},
    }
    document = pipeline(source("one"), source("two"), joined, groups=[group("one", "j")])
    assert faults(document) == [("one", "spec.groups[0].elements", "group_sources")]


def test_a_view_is_in_no_group(faults, pipeline, source, keep):
    view = {"id": "v", "type": "live-table", "inputs": {"in": "a"}}
    document = pipeline(source(), keep("a"), view, groups=[group("a", "v")])
    assert faults(document) == [("v", "spec.groups[0].elements", "group_view")]


def test_a_broken_element_hides_no_fault_of_another(faults, pipeline, source, keep):
    document = pipeline(
        {"id": "Bad Id", "type": "generator", "params": []},
        source(),
        keep("f", params={"condition": "value >"}),
        keep("g", "nowhere"),
        "no element",
        keep("h", "f", node=7),
    )
    found = faults(document)
    assert ("Bad Id", "spec.elements[0].id", "invalid") in found
    assert ("Bad Id", "spec.elements[0].params", "invalid") in found
    assert ("f", "spec.elements[2].params.condition", "invalid") in found
    assert ("g", "spec.elements[3].inputs.in", "unknown_element") in found
    assert (None, "spec.elements[4]", "invalid") in found
    assert ("h", "spec.elements[5].node", "invalid") in found


def test_behind_a_fault_nothing_more_is_said(faults, pipeline, source, keep):
    document = pipeline(source(), keep("f", params={"condition": "x > 0"}), keep("g", "f"), keep("h", "g"))
    assert faults(document) == [("f", "spec.elements[1].params.condition", "schema")]


def test_an_operators_own_bug_is_a_fault_of_its_element(pipeline, source):
    class Broken(Operator):
        type, title, summary, category, icon = "broken", "", "", "sources", ""
        Params, inputs = NoParams, ()

        def output_schema(self, inputs):
            raise ZeroDivisionError("oops")

    (fault,) = validate(pipeline(source(type="broken", params={})), Registry({"broken": Broken})).faults
    assert (fault.element, fault.path, fault.code) == ("source", "spec.elements[0].params", "operator_failed")


@pytest.mark.parametrize(
    "document",
    [None, [], {}, {"spec": 3}, {"spec": {"elements": 3, "groups": {}}}, {"spec": {"elements": [None]}}],
)
def test_no_draft_is_too_broken_to_be_checked(faults, document):
    assert faults(document)


def test_an_uploaded_files_columns_are_its_schema(registry, pipeline):
    element = {"id": "s", "type": "csv-replay", "params": {"path": "upload:f1", "rate": 1}}
    types = {"n": "integer", "name": "string", "ok": "boolean", "at": "timestamp", "x": "number"}
    columns = [{"name": name, "type": type_} for name, type_ in types.items()]
    facts = json.dumps({"columns": columns, "time": True, "rows": 2}).encode()
    result = validate(pipeline(element), registry, describe_file=lambda reference: facts)
    assert result.faults == ()
    assert {f.name: f.type.value for f in result.schemas["s.out"].fields} == types


def test_a_file_that_is_not_there_is_a_fault(faults, pipeline):
    def missing(reference):
        raise FileNotFoundError("it was deleted; upload it again")

    element = {"id": "s", "type": "csv-replay", "params": {"path": "upload:f1", "rate": 1}}
    assert faults(pipeline(element), describe_file=missing) == [
        ("s", "spec.elements[0].params.path", "schema")
    ]
    assert faults(pipeline(element)) == [("s", "spec.elements[0].params.path", "schema")]


def test_an_optional_input_may_stay_unconnected_and_fits_where_it_is_connected(
    faults, pipeline, source, keep, window
):
    def merged(**inputs: str):
        return pipeline(
            source(), keep("a"), keep("b"), window("w"), {"id": "m", "type": "merge", "inputs": inputs}
        )

    assert faults(merged(in1="a", in2="b")) == []
    assert faults(merged(in1="a", in2="b", in4="source")) == []
    assert faults(merged(in1="a")) == []
    assert faults(merged(in2="a", in4="b")) == [("m", "spec.elements[4].inputs.in1", "missing_input")]
    assert {fault[1:] for fault in faults(merged(in1="a", in2="b", in3="w"))} == {
        ("spec.elements[4].inputs.in3", "schema")
    }


def test_what_needs_batches_without_rows_is_not_grouped_with_what_spark_plans(pipeline, source):
    class Planned(DataFrameOperator):
        """Written for Spark."""

        type, title, summary, category, icon = "planned", "Planned", "Is planned", "transform", "bomb"
        Params = NoParams

        def output_schema(self, inputs):
            return inputs["in"]

        def transform(self, inputs, ctx):
            return inputs["in"]

    known = default_registry()
    registry = Registry(
        {"planned": Planned, **{type_: known.get(type_) for type_ in ("generator", "silence-alarm")}}
    )
    elements = [
        source(),
        {"id": "p", "type": "planned", "inputs": {"in": "source"}},
        {"id": "alarm", "type": "silence-alarm", "params": {"for_s": 60}, "inputs": {"in": "p"}},
    ]
    apart = validate(pipeline(*elements), registry)
    assert apart.valid
    [fault] = validate(pipeline(*elements, groups=[{"id": "g", "elements": ["p", "alarm"]}]), registry).faults
    assert (fault.element, fault.code) == ("alarm", "group_ticks")


def test_a_name_that_a_system_knows_one_element_by_is_not_given_twice(registry, pipeline, source):
    def reads(id, host_id, connection="plant"):
        params = {"connection": connection, "payload": "sparkplug", "topics": ["spBv1.0/#"]}
        columns = [{"name": "t", "type": "number"}]
        return {"id": id, "type": "mqtt-in", "params": {**params, "columns": columns, "host_id": host_id}}

    def sends(id, node, connection="plant"):
        params = {"connection": connection, "group": "g", "node": node, "host_id": "scada"}
        return {"id": id, "type": "sparkplug-out", "inputs": {"in": "source"}, "params": params}

    different = [reads("a", "scada"), reads("b", None), reads("c", None), reads("d", "scada", "other")]
    different += [sends("e", "press"), sends("f", "Press"), sends("g", "press", "other")]
    assert validate(pipeline(source(), *different), registry).faults == ()
    equal = [reads("mqtt-in", "scada"), reads("b", "scada")]
    equal += [sends("sparkplug-out-2", "press"), sends("d", "press")]
    faults = validate(pipeline(source(), *equal), registry).faults
    assert [(f.element, f.path, f.code) for f in faults] == [
        ("b", "spec.elements[2].params.host_id", "sole_name"),
        ("d", "spec.elements[4].params.node", "sole_name"),
    ]
    assert [f.message for f in faults] == [
        'the host id "scada" is that of MQTT in already; each element needs its own',
        'the edge node "g/press" is that of Sparkplug out 2 already; each element needs its own',
    ]
