"""Laws of planning: what nodes are told to run follows from the document alone."""

import json

import pytest

from pipeline_runtime.model.faults import DocumentInvalid
from pipeline_runtime.model.templates import load_template
from pipeline_runtime.planning.plan import pins, plan_groups, topics


@pytest.fixture
def plan(registry):
    def of(document, files=None, **options):
        from pipeline_runtime.model.document import parse_document

        document = parse_document(document) if isinstance(document, dict) else document
        return {spec.group: spec for spec in plan_groups(document, "dep", registry, files or {}, **options)}

    return of


def test_each_ungrouped_element_is_its_own_group_in_topological_order(plan, pipeline, source, keep):
    groups = plan(pipeline(keep("b", "a"), keep("a"), source()))
    assert list(groups) == ["source", "a", "b"]
    assert groups["a"].inputs[0].topic == "fl.dep.source.out" == groups["source"].outputs[0].topic
    assert groups["a"].inputs[0].consumer == "a"
    assert groups["a"].elements[0].inputs == {"in": "source.out"}


def test_the_demo_is_three_queries(plan):
    groups = plan(load_template("machine-power"))
    assert {id: [e.id for e in spec.elements] for id, spec in groups.items()} == {
        "readings": ["readings"],
        "watch": ["variation", "alerts"],
        "history": ["power", "archive"],
    }
    nodes = pins(load_template("machine-power"))
    assert [nodes[id] for id in groups] == ["edge-a", "edge-b", "cloud"]


def test_an_output_has_a_topic_when_it_leaves_the_group_or_nobody_reads_it(plan, pipeline, source, keep):
    inside = plan(
        pipeline(source(), keep("a"), keep("b", "a"), groups=[{"id": "g", "elements": ["a", "b"]}])
    )["g"]
    assert [stream.source for stream in inside.outputs] == ["b.out"]
    view = {"id": "v", "type": "live-table", "inputs": {"in": "a"}}
    seen = plan(
        pipeline(source(), keep("a"), keep("b", "a"), view, groups=[{"id": "g", "elements": ["a", "b"]}])
    )["g"]
    assert [stream.source for stream in seen.outputs] == ["a.out", "b.out"]


def test_the_rows_of_an_alert_have_a_topic_also_inside_a_group(plan, pipeline, source, keep):
    params = {"columns": ["value"], "limit": 1}
    alert = {"id": "alert", "type": "threshold-alert", "params": params, "inputs": {"in": "source"}}
    group = {"id": "g", "elements": ["source", "alert", "k"]}
    inside = plan(pipeline(source(), alert, keep("k", "alert"), groups=[group]))["g"]
    assert [stream.source for stream in inside.outputs] == ["alert.out", "k.out"]


def test_a_connector_that_is_exactly_once_has_a_topic_for_its_position(plan, pipeline):
    params = {"connection": "d", "columns": [{"name": "v"}]}
    elements = [
        {"id": "polled", "type": "http-poll", "params": params},
        {"id": "table", "type": "postgresql-in", "params": {**params, "table": "t", "rising": "id"}},
        {
            "id": "other",
            "type": "other-kafka-out",
            "params": {"connection": "d", "topic": "t"},
            "inputs": {"in": "table"},
        },
    ]
    groups = plan(pipeline(*elements))
    names = {topic.name: topic.kind for spec in groups.values() for topic in topics(spec)}
    assert names["fl.dep.table.intake"] == names["fl.dep.polled.intake"] == "stream"
    positions = [name for name, kind in names.items() if kind == "position"]
    assert sorted(positions) == ["fl.dep.other.position", "fl.dep.table.position"]


def test_views_run_nowhere(plan, pipeline, source):
    assert list(plan(pipeline(source(), {"id": "v", "type": "live-table", "inputs": {"in": "source"}}))) == [
        "source"
    ]


def test_users_topics_are_external_and_never_created(plan, pipeline):
    groups = plan(
        pipeline(
            {
                "id": "in",
                "type": "kafka-in",
                "params": {"topic": "mine", "partitions": 3, "columns": [{"name": "v"}], "start": "latest"},
            },
            {
                "id": "out",
                "type": "kafka-out",
                "inputs": {"in": "in"},
                "params": {"topic": "theirs", "partitions": 2},
            },
        )
    )
    (entry,) = groups["in"].inputs
    assert (entry.source, entry.topic, entry.partitions, entry.external) == ("in.out", "mine", 3, True)
    assert (entry.consumer, entry.start) == ("in", "latest")
    (exit_,) = groups["out"].outputs
    assert (exit_.source, exit_.topic, exit_.partitions, exit_.external) == ("out.out", "theirs", 2, True)
    created = {topic.name for spec in groups.values() for topic in topics(spec)}
    assert created == {
        "fl.dep.in.out",
        "fl.dep.in.journal",
        "fl.dep.in.journal.released",
        "fl.dep.in.dead",
        "fl.dep.out.journal",
        "fl.dep.out.journal.released",
        "fl.dep.out.dead",
    }


def test_a_group_follows_as_strictly_as_its_strictest_element(plan, pipeline, source, keep, window):
    groups = plan(
        pipeline(source(), keep("a"), window("w", "a"), groups=[{"id": "g", "elements": ["a", "w"]}])
    )
    assert (groups["source"].follow, groups["g"].follow) == ("coalesced", "exact")


@pytest.mark.parametrize(
    ("function", "column", "follow"),
    [
        ("sum", "n", "coalesced"),
        ("count", None, "coalesced"),
        ("max", "value", "coalesced"),
        ("sum", "value", "exact"),
        ("avg", "n", "exact"),
    ],
)
def test_a_keyed_aggregate_follows_by_its_functions(plan, pipeline, source, function, column, follow):
    aggregate = {"function": function, "as": "x"} | ({"column": column} if column else {})
    element = {
        "id": "k",
        "type": "keyed-aggregate",
        "inputs": {"in": "source"},
        "params": {"keys": ["key"], "aggregates": [aggregate]},
    }
    assert plan(pipeline(source(), element))["k"].follow == follow


def of_partitions(count):
    return {
        "id": "in",
        "type": "kafka-in",
        "params": {"topic": "t", "partitions": count, "columns": [{"name": "v"}]},
    }


@pytest.mark.parametrize(
    ("partitions", "type", "params", "follow"),
    [
        (2, "count-window-aggregate", {"size": 2, "aggregates": [{"function": "count"}]}, "exact"),
        (1, "count-window-aggregate", {"size": 2, "aggregates": [{"function": "count"}]}, "exact"),
        (2, "csv-sink", {}, "exact"),
        (1, "csv-sink", {}, "exact"),
        (2, "filter", {"condition": "v is not null"}, "coalesced"),
    ],
)
def test_state_and_files_of_a_users_topic_follow_exactly(plan, pipeline, partitions, type, params, follow):
    element = {"id": "e", "type": type, "inputs": {"in": "in"}, "params": params}
    groups = plan(pipeline(of_partitions(partitions), element, groups=grouped("in", "e")))
    assert groups["g"].follow == follow


COUNT = {
    "id": "k",
    "type": "keyed-aggregate",
    "inputs": {"in": "source"},
    "params": {"keys": ["key"], "aggregates": [{"function": "count", "as": "events"}]},
}
LAST = {
    "id": "k",
    "type": "count-window-aggregate",
    "inputs": {"in": "source"},
    "params": {"size": 2, "aggregates": [{"function": "count"}]},
}


def a_sink(input):
    return {"id": "sink", "type": "csv-sink", "inputs": {"in": input}}


def derived(expression, input="source"):
    columns = [{"name": "one", "expression": "n"}, {"name": "two", "expression": expression}]
    return {"id": "d", "type": "derive", "inputs": {"in": input}, "params": {"columns": columns}}


def grouped(*ids):
    return [{"id": "g", "elements": list(ids)}]


def test_a_file_of_what_is_emitted_once_per_batch_follows_exactly(plan, pipeline, source):
    together = plan(pipeline(source(), COUNT, a_sink("k"), groups=grouped("k", "sink")))
    assert together["g"].follow == "exact"
    apart = plan(pipeline(source(), COUNT, a_sink("k")))
    assert (apart["k"].follow, apart["sink"].follow) == ("coalesced", "coalesced")
    once_per_row = plan(pipeline(source(), LAST, a_sink("k"), groups=grouped("k", "sink")))
    assert once_per_row["g"].follow == "coalesced"


@pytest.mark.parametrize(
    ("expression", "follow"),
    [
        ("unix_millis(_batch_time) - unix_millis(_time)", "exact"),
        ("unix_millis(_time)", "coalesced"),
        ("'_batch_time'", "coalesced"),
    ],
)
def test_the_batches_time_in_a_file_or_in_state_is_followed_exactly(
    plan, pipeline, source, expression, follow
):
    file = plan(
        pipeline(source(), derived(expression), a_sink("d"), groups=grouped("d", "sink")),
    )
    assert file["g"].follow == follow
    window = {**LAST, "inputs": {"in": "d"}}
    state = plan(pipeline(source(), derived(expression), window, groups=grouped("d", "k")))
    assert state["g"].follow == follow
    assert plan(pipeline(source(), derived(expression)))["d"].follow == "coalesced"


def test_a_filters_condition_may_use_the_batches_time(plan, pipeline, source, keep):
    late = keep("late", params={"condition": "_batch_time > _time"})
    groups = plan(pipeline(source(), late, a_sink("late"), groups=grouped("late", "sink")))
    assert groups["g"].follow == "exact"


def test_a_plan_has_the_schema_of_every_port(plan):
    for spec in plan(load_template("machine-power")).values():
        for element in spec.elements:
            assert f"{element.id}.out" in spec.schemas
            assert all(reference in spec.schemas for reference in element.inputs.values())


def test_the_version_changes_with_parameters_and_only_then(plan, pipeline, source, keep):
    first = plan(pipeline(source(), keep("a")))
    same = plan(pipeline(source(ui={"x": 5}), keep("a")))
    other = plan(pipeline(source(), keep("a", params={"condition": "value > 1"})))
    assert [g.version for g in first.values()] == [g.version for g in same.values()]
    assert first["source"].version == other["source"].version
    assert first["a"].version != other["a"].version


def test_the_version_tells_how_a_group_is_followed_where_its_operators_do_not(
    plan, pipeline, source, monkeypatch
):
    from pipeline_runtime.operators.keyed_aggregate import KeyedAggregate

    document = pipeline(source(), COUNT, a_sink("k"), groups=grouped("k", "sink"))
    exact = plan(document)
    monkeypatch.setattr(KeyedAggregate, "output_mode", "append")
    coalesced = plan(document)
    assert (exact["g"].follow, coalesced["g"].follow) == ("exact", "coalesced")
    assert exact["g"].version != coalesced["g"].version
    assert exact["source"].version == coalesced["source"].version


def test_a_node_is_told_all_that_follows_from_files_and_inputs(plan, pipeline):
    document = pipeline(
        {"id": "s", "type": "csv-replay", "params": {"path": "upload:f1", "rate": 1, "key": "k"}},
        {
            "id": "c",
            "type": "count-window-aggregate",
            "inputs": {"in": "s"},
            "params": {"size": 2, "aggregates": [{"function": "sum", "column": "n"}]},
        },
    )
    columns = [{"name": "k", "type": "string"}, {"name": "n", "type": "integer"}]
    facts = json.dumps({"columns": columns, "time": False, "rows": 1}).encode()
    groups = plan(document, {"upload:f1": "ab" * 32, "upload:other": "x"}, describe_file=lambda _: facts)
    assert groups["s"].files == {"upload:f1": "ab" * 32}
    assert [c["name"] for c in groups["s"].elements[0].params["table"]["columns"]] == ["k", "n"]
    assert groups["c"].elements[0].params["key"] == "k"


def test_a_document_with_faults_is_not_planned(plan, pipeline, keep):
    with pytest.raises(DocumentInvalid):
        plan(pipeline(keep("a")))


def test_a_plan_survives_json(plan):
    from pipeline_runtime.model.spec import GroupSpec

    for spec in plan(load_template("machine-power")).values():
        assert GroupSpec.model_validate_json(spec.model_dump_json()) == spec
