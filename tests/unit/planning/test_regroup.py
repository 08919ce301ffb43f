"""Elements that run are grouped otherwise: what goes, what comes, and where that begins."""

from itertools import pairwise

import pytest

from pipeline_runtime.model.document import parse_document
from pipeline_runtime.model.names import with_names
from pipeline_runtime.planning.plan import plan_groups
from pipeline_runtime.planning.reconnect import reconnections
from pipeline_runtime.planning.regroup import named
from pipeline_runtime.planning.upgrade import element_changes, group_changes, obsolete_topics


@pytest.fixture
def plan(registry, pipeline, source, keep, window):
    """Plans "a>b>c a>d", with one way after another, and groups "bc". a and x are sources, k reads a user's
    topic, w keeps state, j joins what comes to it, f writes a file."""

    def element(id, inputs):
        if id in "ax":
            return source(id)
        if id == "k":
            params = {"topic": "theirs", "partitions": 2, "columns": [{"name": "value", "type": "number"}]}
            return {"id": "k", "type": "kafka-in", "params": params}
        if id == "w":
            return window("w", *inputs)
        if id == "j":
            params = {"left_key": "key", "right_key": "key", "within_s": 1}
            ports = dict(zip(("left", "right"), inputs, strict=True))
            return {"id": "j", "type": "join", "params": params, "inputs": ports}
        if id == "f":
            return {"id": "f", "type": "csv-sink", "params": {"file": "f.csv"}, "inputs": {"in": inputs[0]}}
        return keep(id, *inputs)

    def of(ways, *groups, running=(), spent=()):
        inputs = {id: [] for way in ways.split() for id in way.split(">")}
        for before, id in (pair for way in ways.split() for pair in pairwise(way.split(">"))):
            inputs[id] = [*dict.fromkeys([*inputs[id], before])]
        elements = [element(id, given) for id, given in inputs.items()]
        drawn = [{"id": f"{ids}-group", "elements": [*ids]} for ids in groups]
        planned = plan_groups(parse_document(pipeline(*elements, groups=drawn)), "dep", registry, {})
        return named(planned, running, spent)

    return of


def told(result):
    """(what ends, what begins), {what a group reads: where it begins}, what is read to its end first"""
    assert not result.refused, result.refused
    begins = {
        (item.group, item.stream.source.removesuffix(".out")): "end" if item.behind else item.giver
        for item in result.inputs
    }
    begins |= {(item.group, item.element): item.giver for item in result.sources}
    last_rows = {
        (last.group, last.stream.source.removesuffix(".out"), last.writer) for last in result.last_rows
    }
    return ({*result.ends}, {*result.begins}), begins, last_rows


@pytest.mark.parametrize(
    ("ways", "before", "after", "shape", "begins", "last_rows"),
    [
        pytest.param(
            "a>b>c",
            (),
            ["bc"],
            ({"b", "c"}, {"bc-group"}),
            {("bc-group", "a"): "b"},
            {("c", "b", "b")},
            id="two come together",
        ),
        pytest.param(
            "a>b>c",
            ["bc"],
            (),
            ({"bc-group"}, {"b", "c"}),
            {("b", "a"): "bc-group", ("c", "b"): "end"},
            set(),
            id="two part",
        ),
        pytest.param(
            "a>b>c",
            ["ab"],
            ["bc"],
            ({"ab-group", "c"}, {"a", "bc-group"}),
            {("a", "a"): "ab-group", ("bc-group", "a"): "end"},
            {("c", "b", "ab-group")},
            id="one moves from one to another",
        ),
        pytest.param(
            "a>b>c",
            (),
            ["abc"],
            ({"a", "b", "c"}, {"abc-group"}),
            {("abc-group", "a"): "a"},
            {("b", "a", "a"), ("c", "b", "b")},
            id="a source and two behind it",
        ),
        pytest.param(
            "k>b",
            (),
            ["kb"],
            ({"k", "b"}, {"kb-group"}),
            {("kb-group", "k"): "k"},
            {("b", "k", "k")},
            id="a topic",
        ),
        pytest.param(
            "a>j a>b>j",
            ["bj"],
            (),
            ({"bj-group"}, {"b", "j"}),
            {("b", "a"): "bj-group", ("j", "a"): "bj-group", ("j", "b"): "end"},
            set(),
            id="two that read the same part",
        ),
    ],
)
def test_each_input_goes_on_where_it_stood(plan, ways, before, after, shape, begins, last_rows):
    old = plan(ways, *before)
    assert told(reconnections(old, plan(ways, *after, running=old))) == (shape, begins, last_rows)


def test_what_is_not_touched_is_no_part_of_it(plan):
    old = plan("a>b>c>d a>e")
    new = plan("a>b>c>d a>e", "bc", running=old)
    groups = group_changes(old, new)
    assert [spec.group for spec in groups.removed] == ["b", "c"]
    assert [spec.group for spec in groups.added] == ["bc-group"]
    assert groups.changed == ()
    assert {name.removeprefix("fl.dep.") for name in obsolete_topics(old, new)} == {
        "b.out",
        "b.journal",
        "b.journal.released",
        "c.journal",
        "c.journal.released",
    }


def test_who_reads_what_another_writes_ends_behind_it(plan):
    old = plan("a>b>c")
    result = reconnections(old, plan("a>b>c", "abc", running=old))
    assert result.givers == {"a", "b", "c"}, "each has to confirm its end"
    assert result.next_to_end(["a", "b", "c"]) == ("a",)
    assert result.next_to_end(["b", "c"]) == ("b",)
    assert result.next_to_end(["c"]) == ("c",)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (("a>j a>b>j",), ("a>j a>b>j", "bj"), "b and j read a at different rows"),
        (("a>b>c>d", "bc"), ("a>b>c>d", "bcd"), None),
        (("a>b>c", "bc"), ("a>b>c>e", "ce"), "e is new in the group"),
        (("a>b>c",), ("a>b>c b>d", "bc"), "others are added, removed or connected differently"),
        (("a>b>c x>d",), ("a>b>c a>d x", "bc"), "others are added, removed or connected differently"),
        (("a>b x>c",), ("a>b>c x", "bc"), "c is connected differently at the same time"),
        (("a>b>c", "bc"), ("a>b",), "of a group is removed at the same time"),
    ],
)
def test_what_could_lose_rows_or_repeat_them_is_refused(plan, old, new, words):
    running = plan(old[0], *old[1:])
    refused = reconnections(running, plan(new[0], *new[1:], running=running)).refused
    assert any(words in with_names(why, {}) for why in refused.values()) if words else not refused


def test_what_is_lost_and_what_cannot_be_is_told_of_each_element(plan, registry):
    def changes(ways, *groups):
        old = plan(ways)
        found = element_changes(old, plan(ways, *groups, running=old), registry, names={"w": "Wear"})
        return {each.element: (each.change, each.reason, bool(each.loses)) for each in found}

    found = changes("a>b>w>d", "bw")
    goes_on = "it now runs together with Wear, and goes on where it stands"
    assert found.pop("b") == ("upgraded", goes_on, False)
    kept = "it now runs together with b, and the state that it keeps belongs to the group that it runs in"
    assert found.pop("w") == ("restart", kept, True)
    assert {each[0] for each in found.values()} == {"unchanged"}
    found = changes("a>b>f", "bf")
    assert found["f"][0] == "incompatible"
    assert "what it has written so far belongs to the group" in found["f"][1]


def test_a_source_may_get_another_rate_when_it_is_grouped_otherwise(plan, registry):
    old = plan("a>b")
    new = plan("a>b", "ab", running=old)
    [spec] = new
    elements = (spec.elements[0].model_copy(update={"params": {"rate": 50}}), *spec.elements[1:])
    other = spec.model_copy(update={"elements": elements})
    found = {each.element: each.change for each in element_changes(old, [other], registry)}
    assert found == {"a": "upgraded", "b": "upgraded"}


def test_a_group_has_an_id_that_none_had_before(plan):
    ways = "a>b>c"
    first = plan(ways)
    second = plan(ways, "bc", running=first)
    assert [spec.group for spec in second] == ["a", "bc-group"]
    third = plan(ways, running=second, spent=["b", "c"])
    assert [spec.group for spec in third] == ["a", "b_2", "c_2"]
    assert third[1].journal == "fl.dep.b_2.journal"
    fourth = plan(ways, "bc", running=third, spent=["b", "c", "bc-group"])
    assert [spec.group for spec in fourth] == ["a", "bc-group_2"]
    assert [spec.version for spec in fourth] == [spec.version for spec in second], "it does the same"


@pytest.mark.parametrize("groups", [(), ["bc"]])
def test_its_ids_are_the_same_whenever_it_is_planned(plan, groups):
    """Before what goes has ended, after that, and when it runs."""
    ways, spent = "a>b>c", ["b", "c", "bc-group"]
    old = plan(ways, *([] if groups else ["bc"]), spent=spent)
    new = plan(ways, *groups, running=old, spent=spent)
    gone = [spec.group for spec in old if spec.group != "a"]
    halfway = plan(ways, *groups, running=old[:1], spent=[*spent, *gone])
    assert halfway == new == plan(ways, *groups, running=new, spent=[*spent, *gone])


# --- an upgrade that failed has ended some, and not brought others to run


@pytest.mark.parametrize("groups", [["bc"], ()])
def test_what_has_stopped_goes_on_by_the_same_version_or_the_former(plan, groups):
    ways = "a>b>c"
    old = plan(ways)
    running, left = [spec for spec in old if spec.group != "b"], [spec for spec in old if spec.group == "b"]
    result = reconnections(running, plan(ways, *groups, running=running, spent=["b"]), left)
    if groups:
        assert told(result) == (
            ({"c"}, {"bc-group"}),
            {("bc-group", "a"): "b"},
            {("c", "b", "b")},
        )
        assert result.next_to_end(["c"]) == ("c",)
    else:
        assert told(result) == ((set(), {"b_2"}), {("b_2", "a"): "b"}, set())


def test_what_has_stopped_before_those_it_reads_from_cannot_be_put_together_with_them(plan):
    ways = "a>b>c>d"
    old = plan(ways, "cd")
    running, left = [spec for spec in old if spec.group != "cd-group"], [old[-1]]
    refused = reconnections(running, plan(ways, "bc", running=running, spent=["cd-group"]), left).refused
    assert "c has stopped before it read everything that b has given it" in with_names(
        refused["bc-group"], {}
    )


def test_what_has_stopped_is_not_forgotten(plan, registry):
    old = plan("a>b>c")
    running, left = [spec for spec in old if spec.group != "c"], [old[-1]]
    new = plan("a>b", running=running, spent=["c"])
    assert "deploy a version that contains it" in reconnections(running, new, left).refused["c"]
    found = {each.element: each for each in element_changes(running, new, registry, left_over=left)}
    assert found["c"].change == "incompatible"
