"""Where a group begins in a stream that it did not read before."""

from itertools import pairwise
from typing import Any

import pytest

from pipeline_runtime.model.document import parse_document
from pipeline_runtime.model.ids import stream_topic
from pipeline_runtime.model.names import with_names
from pipeline_runtime.planning.plan import plan_groups
from pipeline_runtime.planning.reconnect import reconnections


@pytest.fixture
def plan(registry, pipeline, source, keep):
    """Plans "a>b>c", with one text for each way. a, x and y are sources; j joins its inputs."""

    def of(*ways: str):
        inputs: dict[str, list[str]] = {}
        for way in ways:
            ids = way.split(">")
            for id in ids:
                inputs.setdefault(id, [])
            for before, id in pairwise(ids):
                inputs[id] = [*dict.fromkeys([*inputs[id], before])]

        def element(id: str) -> dict[str, Any]:
            if id in "axy":
                return source(id)
            if id == "j":
                ports = dict(zip(("left", "right"), inputs[id], strict=True))
                params = {"left_key": "key", "right_key": "key", "within_s": 1}
                return {"id": id, "type": "join", "params": params, "inputs": ports}
            return keep(id, *inputs[id])

        return plan_groups(parse_document(pipeline(*map(element, inputs))), "dep", registry, {})

    return of


def found(old, new, left=()):
    """{(group, whose stream it reads): where it begins}, {(group, whose stream it reads to its end first)}"""
    result = reconnections(old, new, left)
    assert not result.refused, result.refused
    begins = {}
    for item in result.inputs:
        at = "first row" if item.whole else item.giver or "now"
        begins[item.group, item.stream.source.removesuffix(".out")] = at
    return begins, {(item.group, item.stream.source.removesuffix(".out")) for item in result.last_rows}


@pytest.mark.parametrize(
    ("old", "new", "begins", "last_rows"),
    [
        pytest.param(["a>c"], ["a>c"], {}, set(), id="nothing"),
        pytest.param(
            ["a>c"], ["a>n>c"], {("n", "a"): "c", ("c", "n"): "first row"}, set(), id="one is put between"
        ),
        pytest.param(
            ["a>c>d"],
            ["a>n>m>c>d"],
            {("n", "a"): "c", ("m", "n"): "first row", ("c", "m"): "first row"},
            set(),
            id="two are put between",
        ),
        pytest.param(["a>b>c"], ["a>c"], {("c", "a"): "b"}, {("c", "b")}, id="one is taken out"),
        pytest.param(
            ["a>b>c", "b>d"],
            ["a>c", "a>d"],
            {("c", "a"): "b", ("d", "a"): "b"},
            {("c", "b"), ("d", "b")},
            id="one is taken out that two read",
        ),
        pytest.param(
            ["a>b>c"],
            ["a>n>c"],
            {("n", "a"): "b", ("c", "n"): "first row"},
            {("c", "b")},
            id="one takes the place of another",
        ),
        pytest.param(
            ["a>b", "a>c"], ["a>b>c"], {("c", "b"): "now"}, set(), id="connected to what has run before"
        ),
        pytest.param(["a>b", "x>c"], ["a>b", "a>c", "x"], {("c", "a"): "now"}, set(), id="another source"),
        pytest.param(
            ["a>b", "x>c"], ["a>b", "a>c"], {("c", "a"): "now"}, {("c", "x")}, id="its source is removed"
        ),
        pytest.param(
            ["a>c", "x>d"],
            ["a>d>c", "x"],
            {("d", "a"): "c", ("c", "d"): "now"},
            set(),
            id="one that has run is put between",
        ),
        pytest.param(
            ["a>b", "a>c"],
            ["a>b", "a>n"],
            {("n", "a"): "now"},
            set(),
            id="one that comes beside one that goes",
        ),
        pytest.param(
            ["a>j", "x>j"],
            ["a>n>j", "x>j"],
            {("n", "a"): "j", ("j", "n"): "first row"},
            set(),
            id="one of two",
        ),
        pytest.param(["a>c"], ["x>c"], {("c", "x"): "first row"}, {("c", "a")}, id="a new source"),
    ],
)
def test_it_begins_where_nothing_is_lost_or_repeated(plan, old, new, begins, last_rows):
    assert found(plan(*old), plan(*new)) == (begins, last_rows)


@pytest.mark.parametrize(
    ("old", "new", "group", "words"),
    [
        (["a>b>c>d"], ["a>c>b>d"], "c", "it and b change places"),
        (["a>b>m>c"], ["a>c"], "c", "remove one at a time"),
        (["a>b>m>c"], ["a>n>c"], "n", "remove one at a time"),
        (["a>c", "a>d"], ["a>n>c", "n>d"], "n", "c and d stop reading a for it"),
        (["a>b>j", "a>m>j"], ["a>j", "x>j"], "j", "b and m stop reading a for it"),
    ],
)
def test_what_would_lose_rows_is_refused(plan, old, new, group, words):
    assert words in with_names(reconnections(plan(*old), plan(*new)).refused[group], {})


def test_who_takes_over_comes_behind_whom_it_takes_over_from(plan):
    result = reconnections(plan("a>c", "x>d"), plan("a>d>c", "x"))
    assert result.in_order(["d", "c"]) == ("c", "d")
    assert result.givers == {"c"}


def test_what_a_broken_off_change_has_left_is_gone_on_with(plan):
    old, halfway = plan("a>b>c"), plan("a>c")
    gone = next(spec for spec in old if spec.group == "b").model_copy(update={"elements": ()})
    now = [spec for spec in old if spec.group != "b"]  # b is gone, c not changed yet
    assert found(now, halfway, [gone]) == ({("c", "a"): "b"}, {("c", "b")})
    assert found(now, plan("a>n>c"), [gone])[0] == {("n", "a"): "b", ("c", "n"): "first row"}


def test_what_goes_back_to_what_it_has_left_goes_on_there(plan):
    """An element was to be put between, and did not come to run."""
    old, new = plan("a>c"), plan("a>n>c")
    changed = [spec for spec in new if spec.group in ("a", "c")]
    left = [next(spec for spec in old if spec.group == "c")]
    assert found(changed, old, left)[0] == {("c", "a"): "c"}
    assert found(changed, plan("a>m>c"), left)[0] == {("m", "a"): "c", ("c", "m"): "first row"}
    assert left[0].inputs[0].topic == stream_topic("dep", "a")
