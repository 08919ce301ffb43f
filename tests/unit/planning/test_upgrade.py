"""Tests which changes of a running pipeline a new version may make."""

from typing import Any

import pytest

from pipeline_runtime.model.document import parse_document
from pipeline_runtime.operators.registry import Registry
from pipeline_runtime.operators.sdk import DataFrameOperator, Params as NoParams
from pipeline_runtime.planning.plan import plan_groups
from pipeline_runtime.planning.upgrade import (
    begins_another_query,
    element_changes,
    group_changes,
    obsolete_topics,
)

GROUPED = [{"id": "g", "elements": ["keep", "window"]}]


@pytest.fixture
def plan(registry, pipeline):
    def of(*elements, groups=()):
        return plan_groups(parse_document(pipeline(*elements, groups=groups)), "dep", registry, {})

    return of


@pytest.fixture
def changes(registry):
    def of(old, new):
        return {change.element: change for change in element_changes(old, new, registry)}

    return of


@pytest.fixture
def elements(source, keep, window):
    """source -> keep -> window -> sink, with parameters of single elements changed."""

    def make(without: str = "", **params: dict[str, Any]) -> list[dict[str, Any]]:
        sink = {"id": "sink", "type": "csv-sink", "params": {"file": "a.csv"}, "inputs": {"in": "window"}}
        statistics = {
            "id": "statistics",
            "type": "running-statistics",
            "params": {"column": "value", "every_s": 10},
            "inputs": {"in": "keep"},
        }
        made = [source(), keep("keep"), window("window", "keep"), sink, statistics]
        return [
            {**element, "params": {**element["params"], **params.get(element["id"], {})}}
            for element in made
            if element["id"] != without
        ]

    return make


def test_what_is_equal_is_unchanged_and_its_group_is_left_alone(plan, changes, elements):
    old, new = plan(*elements()), plan(*elements())
    assert {change.change for change in changes(old, new).values()} == {"unchanged"}
    assert group_changes(old, new).changed == ()


@pytest.mark.parametrize(
    ("element", "params", "change", "words"),
    [
        ("keep", {"condition": "value > 5"}, "upgraded", "Condition value > 0 to value > 5"),
        ("statistics", {"every_s": 60}, "upgraded", "Every 10 s to 60 s"),
        ("statistics", {"column": "n"}, "restart", "Column value to n, which shapes the state"),
        ("window", {"delay_s": 5}, "upgraded", "Delay 0 s to 5 s"),
        ("window", {"size_s": 2}, "restart", "Size 1 s to 2 s, which shapes the state"),
        ("sink", {"file": "b.csv"}, "incompatible", "what it has written"),
        ("source", {"rate": 50}, "upgraded", "Rate 5 to 50"),
    ],
)
def test_a_parameter_may_change_unless_it_shapes_what_is_kept(
    plan, changes, elements, element, params, change, words
):
    old, new = plan(*elements()), plan(*elements(**{element: params}))
    found = changes(old, new)
    assert found[element].change == change
    assert words in found[element].reason
    assert (found[element].loses is not None) is (change == "restart")
    assert {c.change for id, c in found.items() if id != element} == {"unchanged"}
    assert [group.group for group in group_changes(old, new).changed] == [element]


def test_what_is_grouped_with_a_change_is_started_again(plan, changes, elements):
    old = plan(*elements(), groups=GROUPED)
    new = plan(*elements(keep={"condition": "value > 5"}), groups=GROUPED)
    found = changes(old, new)
    assert (found["keep"].change, found["window"].change) == ("upgraded", "upgraded")
    assert "its group has changed" in found["window"].reason
    assert found["sink"].change == "unchanged"
    assert [group.group for group in group_changes(old, new).changed] == ["g"]


def test_more_columns_go_on_where_nothing_that_is_kept_depends_on_them(plan, changes, source, keep):
    def with_columns(*columns, **sink):
        topic = {"topic": "t", "columns": [{"name": name, "type": "number"} for name in columns]}
        elements = [
            {"id": "feed", "type": "kafka-in", "params": topic},
            {
                "id": "mean",
                "type": "window-aggregate",
                "params": {"size_s": 1, "aggregates": [{"function": "avg", "column": "one"}]},
                "inputs": {"in": "feed"},
            },
            {"id": "seen", "type": "deduplicate", "params": {"within_s": 1}, "inputs": {"in": "feed"}},
            {
                "id": "file",
                "type": "csv-sink",
                "params": {"file": "a.csv", **sink},
                "inputs": {"in": "feed"},
            },
            {"id": "out", "type": "kafka-out", "params": {"topic": "o"}, "inputs": {"in": "feed"}},
        ]
        return plan(*elements)

    found = changes(with_columns("one"), with_columns("one", "two"))
    assert {id: change.change for id, change in found.items()} == {
        "feed": "upgraded",
        "mean": "upgraded",
        "seen": "restart",
        "file": "upgraded",
        "out": "upgraded",
    }
    fewer = changes(with_columns("one", "two"), with_columns("one"))
    assert (fewer["feed"].change, fewer["mean"].change, fewer["file"].change) == (
        "upgraded",
        "restart",
        "upgraded",
    )
    headless = changes(with_columns("one", header=False), with_columns("one", "two", header=False))
    assert headless["file"].change == "incompatible"
    assert "other columns" in headless["file"].reason


@pytest.mark.parametrize(
    ("params", "change"),
    [
        ({"partitions": 2}, "upgraded"),
        ({"gap": "stop"}, "upgraded"),
        ({"columns": [{"name": "n", "from": "a.b"}]}, "upgraded"),
        ({"topic": "other"}, "incompatible"),
    ],
)
def test_what_a_topics_reader_may_change_without_losing_its_place(plan, changes, params, change):
    def feed(**params):
        given = {"topic": "t", "partitions": 1, "columns": [{"name": "n"}], **params}
        return plan({"id": "feed", "type": "kafka-in", "params": given})

    assert changes(feed(), feed(**params))["feed"].change == change


VALUE = {"column": "value"}


@pytest.mark.parametrize(
    ("type", "params", "change"),
    [
        ("silence-alarm", {"for_s": 60}, "upgraded"),
        ("hysteresis-alarm", {**VALUE, "raise_at": 5, "clear_at": 4}, "upgraded"),
        ("edge-detection", {"columns": ["value"], "threshold": 1}, "upgraded"),
        ("time-between", {"column": "kind", "first": "1", "second": "2"}, "upgraded"),
        ("difference", VALUE, "upgraded"),
        ("last-values", {**VALUE, "size": 4}, "upgraded"),
        ("baseline-change", VALUE, "upgraded"),
        ("peak-detection", {**VALUE, "height": 1}, "upgraded"),
        (
            "count-window-aggregate",
            {"size": 2, "aggregates": [{"function": "avg", **VALUE, "as": "mean"}]},
            "upgraded",
        ),
        ("deduplicate", {"columns": ["value"]}, "upgraded"),
        ("deduplicate", {}, "restart"),
    ],
)
def test_one_more_column_costs_no_state_that_has_nothing_of_it(
    plan, changes, type: str, params: dict[str, Any], change: str
):
    def feed(*more: str):
        columns = [{"name": name, "type": "number"} for name in ("value", *more)]
        columns.append({"name": "kind", "type": "integer"})
        source = {"id": "feed", "type": "kafka-in", "params": {"topic": "t", "columns": columns}}
        return plan(source, {"id": "keeps", "type": type, "params": params, "inputs": {"in": "feed"}})

    found = changes(feed(), feed("more"))
    assert found["feed"].change == "upgraded"
    assert found["keeps"].change == change


def connected(elements, **inputs: str):
    """With other inputs of single elements."""
    return [{**e, "inputs": {"in": inputs[e["id"]]}} if e["id"] in inputs else e for e in elements]


def test_what_stays_may_read_another_stream(plan, changes, elements, keep):
    old, between = plan(*elements()), [*elements(), keep("between", "keep")]
    found = changes(old, plan(*connected(between, window="between")))
    assert (found["window"].change, found["between"].change) == ("upgraded", "added")
    assert found["window"].reason == "it now reads between, from its first row"
    assert found["between"].reason == "it now reads keep, from the row at which window stops"
    found = changes(plan(*connected(between, window="between")), old)
    assert found["window"].reason == "it now reads keep, from the row at which between stops"
    assert found["between"].change == "removed"
    found = changes(old, plan(*connected(elements(), window="source")))
    assert found["window"].reason == "it now reads source, from the next row on"
    assert {id for id, change in found.items() if change.change == "unchanged"} == {
        "source",
        "keep",
        "sink",
        "statistics",
    }


def test_what_stays_is_not_connected_otherwise_inside_its_group(plan, changes, elements, keep):
    groups = [{"id": "g", "elements": ["keep", "second", "window"]}]
    all_of_them = [keep("second", "keep"), *elements(), keep("third", "second")]
    old, new = (
        plan(*all_of_them, groups=groups),
        plan(*connected(all_of_them, window="second"), groups=groups),
    )
    assert "connected differently inside" in changes(old, new)["window"].reason


def test_other_columns_of_another_stream_are_told_from_those_before(plan, changes, elements):
    derived = {
        "id": "derived",
        "type": "derive",
        "params": {"columns": [{"name": "value", "expression": "n * 2"}]},
        "inputs": {"in": "keep"},
    }
    old, new = plan(*elements()), [*elements(), derived]
    found = changes(old, plan(*connected(new, statistics="derived")))
    assert (found["statistics"].change, found["sink"].change) == ("restart", "unchanged")
    assert "other columns" in found["statistics"].reason


def test_elements_come_and_go_and_nothing_else_is_touched(plan, changes, elements):
    with_it, without = plan(*elements()), plan(*elements(without="statistics"))
    for old, new, change in ((without, with_it, "added"), (with_it, without, "removed")):
        found = changes(old, new)
        assert found.pop("statistics").change == change
        assert {each.change for each in found.values()} == {"unchanged"}
        groups = group_changes(old, new)
        assert [group.group for group in getattr(groups, change)] == ["statistics"]
        assert groups.changed == ()


def test_what_goes_says_which_state_is_lost(plan, changes, elements, source, keep):
    gone = changes(plan(*elements()), plan(source(), keep("keep")))
    assert gone["statistics"].loses
    assert gone["sink"].loses is None
    assert {gone[id].change for id in ("window", "sink", "statistics")} == {"removed"}


def test_a_group_that_runs_keeps_its_elements(plan, changes, elements):
    three = [{"id": "g", "elements": ["keep", "window", "sink"]}]
    larger, smaller = plan(*elements(), groups=three), plan(*elements(without="sink"), groups=GROUPED)
    joins, leaves = changes(smaller, larger)["sink"], changes(larger, smaller)["sink"]
    assert (joins.change, leaves.change) == ("incompatible", "incompatible")
    assert "let it run by itself" in joins.reason
    assert "from a group that goes on" in leaves.reason
    alone = plan(*elements(without="window")[:2], groups=())
    drawn_around = plan(*elements()[:3], groups=GROUPED)  # a new group, but with one that runs
    assert changes(alone, drawn_around)["window"].change == "incompatible"


def test_what_was_removed_does_not_come_back_under_its_name(registry, plan, elements):
    old, new = plan(*elements(without="statistics")), plan(*elements())
    [again] = [c for c in element_changes(old, new, registry, ["statistics"]) if c.element == "statistics"]
    assert again.change == "incompatible"
    assert "give the new one another id" in again.reason
    assert again.instead == "statistics-2"
    spent = ["statistics", "statistics-2"]
    [again] = [c for c in element_changes(old, new, registry, spent) if c.element == "statistics"]
    assert again.instead == "statistics-3"


def test_a_group_keeps_its_streams(plan, changes, elements):
    """What only its own elements read has none; Spark goes on from its checkpoint with the same ones only."""
    old, new = plan(*elements(without="statistics"), groups=GROUPED), plan(*elements(), groups=GROUPED)
    found = changes(old, new)
    assert {found[id].change for id in ("keep", "window")} == {"incompatible"}
    assert "other output streams" in found["keep"].reason
    assert found["statistics"].change == "added"
    assert {name.rpartition("dep.")[2] for name in obsolete_topics(new, old)} >= {"keep.out"}
    assert obsolete_topics(old, new) == ()


@pytest.fixture
def merged(pipeline, source, window):
    """A merge of some of three sources, and what reads it."""

    def make(*streams: str, registry: Registry, reader: Any = None, groups: Any = ()):
        merge = {"id": "m", "type": "merge", "inputs": {f"in{n}": id for n, id in enumerate(streams, 1)}}
        elements = [source("a"), source("b"), source("c"), merge, reader or window("w", "m")]
        return plan_groups(parse_document(pipeline(*elements, groups=groups)), "dep", registry, {})

    return make


TOGETHER = [{"id": "g", "elements": ["m", "w"]}]


def test_a_group_may_read_more_streams_or_fewer(registry, changes, merged):
    two, three = (merged(*streams, registry=registry) for streams in (("a", "b"), ("a", "b", "c")))
    for old, new in ((two, three), (three, two)):
        assert group_changes(old, new).changed == tuple(group for group in new if group.group == "m")
        assert {id for id, change in changes(old, new).items() if change.change != "unchanged"} == {"m"}
        [was], [is_] = ([group for group in each if group.group == "m"] for each in (old, new))
        assert not begins_another_query(was, is_, registry)
    assert changes(two, three)["m"].change == "upgraded"
    assert changes(two, three)["m"].reason == "it now reads c, from the next row on"


def test_what_keeps_a_state_goes_on_beside_an_element_that_reads_more_streams(registry, changes, merged):
    grouped = [
        merged(*streams, registry=registry, groups=TOGETHER) for streams in (("a", "b"), ("a", "b", "c"))
    ]
    for old, new in (grouped, reversed(grouped)):
        found = changes(old, new)
        assert {id: found[id].change for id in ("m", "w")} == {"m": "upgraded", "w": "upgraded"}
        assert not begins_another_query(old[-1], new[-1], registry)


@pytest.mark.parametrize("keeps", [True, False])
def test_what_spark_plans_cannot_go_on_from_its_state_with_other_streams(registry, merged, keeps):
    class Planned(DataFrameOperator):
        """Written for Spark."""

        type, title, summary, category, icon = "planned", "Planned", "Is planned", "transform", "bomb"
        Params, stateful = NoParams, keeps

        def output_schema(self, inputs):
            return inputs["in"]

        def transform(self, inputs, ctx):
            return inputs["in"]

    known = {type_: registry.get(type_) for type_ in ("generator", "merge")}
    registry = Registry({**known, "planned": Planned})
    reader = {"id": "w", "type": "planned", "inputs": {"in": "m"}}
    old, new = (
        merged(*streams, registry=registry, reader=reader, groups=TOGETHER)
        for streams in (("a", "b"), ("a", "b", "c"))
    )
    assert begins_another_query(old[-1], new[-1], registry)
    found = {change.element: change for change in element_changes(old, new, registry)}
    assert found["w"].change == ("incompatible" if keeps else "upgraded")
    if keeps:
        assert "read 2 streams of other groups, and would now read 3" in str(found["w"].reason)


def test_an_operator_whose_code_changed_is_told_apart(plan, changes, elements):
    old = plan(*elements())
    updated = tuple(
        group.model_copy(update={"version": "other"}) if group.group in ("keep", "window") else group
        for group in old
    )
    found = changes(old, updated)
    assert found["keep"].change == "upgraded"
    assert found["window"].change == "restart"
    assert "was updated" in found["window"].reason


def test_a_group_that_is_followed_otherwise_since_an_update_is_started_again(
    plan, changes, source, monkeypatch
):
    from pipeline_runtime.operators.keyed_aggregate import KeyedAggregate

    count = {"keys": ["key"], "aggregates": [{"function": "count"}]}
    elements = [
        source(),
        {"id": "k", "type": "keyed-aggregate", "params": count, "inputs": {"in": "source"}},
        {"id": "sink", "type": "csv-sink", "inputs": {"in": "k"}},
    ]
    groups = [{"id": "g", "elements": ["k", "sink"]}]
    new = plan(*elements, groups=groups)
    monkeypatch.setattr(KeyedAggregate, "output_mode", "append")
    old = plan(*elements, groups=groups)

    assert [group.group for group in group_changes(old, new).changed] == ["g"]
    found = {id: change.change for id, change in changes(old, new).items()}
    assert found == {"source": "unchanged", "k": "upgraded", "sink": "upgraded"}
