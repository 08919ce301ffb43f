"""Tests how rows of dead letters come back to an element, and the message if they cannot."""

from __future__ import annotations

import json

import pytest

from pipeline_runtime.model.dead_letters import Chosen, Fates, Mark, Place, WayIn, WaysIn, place_of
from pipeline_runtime.model.schema import StreamSchema
from pipeline_runtime.model.spec import (
    ColumnReading,
    ElementSpec,
    GroupSpec,
    InputStream,
    OutputStream,
    RecordReading,
)
from pipeline_runtime.planning.replay import ways_in

SCHEMA = StreamSchema(fields=())
READING = RecordReading(columns=(ColumnReading(path=("n",)),))


def element(id: str, *sources: str) -> ElementSpec:
    return ElementSpec(id=id, type="any", inputs={f"in{place}": each for place, each in enumerate(sources)})


def group(*elements: ElementSpec, leaves: tuple[str, ...] = ()) -> GroupSpec:
    """`leaves`: the streams that have a topic. What no element of the group makes comes from outside."""
    ids = {each.id for each in elements}
    inputs = [
        InputStream(source=source, topic=f"fl.d.{source}", data_schema=SCHEMA, consumer=each.id)
        for each in elements
        for source in each.inputs.values()
        if source.partition(".")[0] not in ids
    ]
    inputs += [
        InputStream(
            source=f"{each.id}.out",
            topic="users",
            data_schema=SCHEMA,
            consumer=each.id,
            external=True,
            reading=READING,
        )
        for each in elements
        if each.id == "events"
    ]
    outputs = [OutputStream(source=each, topic=f"fl.d.{each}", data_schema=SCHEMA) for each in leaves]
    reads, writes = tuple(inputs), tuple(outputs)
    return GroupSpec(deployment="d", pipeline="p", group="g", elements=elements, inputs=reads, outputs=writes)


def test_a_row_comes_back_in_the_stream_that_its_element_reads_and_for_it_alone() -> None:
    found = ways_in([group(element("other")), group(element("keep", "a.out"))], "keep", str.upper)
    way = WayIn("fl.d.a.out", SCHEMA, "keep", "fl.d.a.out")
    assert found == WaysIn({"a.out": way})
    assert found.of(None) == way


def test_a_row_of_an_element_with_several_inputs_comes_back_to_the_input_from_which_it_came() -> None:
    found = ways_in([group(element("pair", "a.out", "b.out"))], "pair", str.upper)
    assert isinstance(found, WaysIn)
    for source in ("a.out", "b.out"):
        way = found.of(Place(source, 0, 7))
        assert way == WayIn(f"fl.d.{source}", SCHEMA, "pair", f"fl.d.{source}")
    assert "does not say from which input" in str(found.of(None))
    assert "no longer reads c.out" in str(found.of(Place("c.out", 0, 7)))


def test_only_the_inputs_that_nobody_else_reads_get_rows_back() -> None:
    found = ways_in([group(element("pair", "a.out", "b.out"), element("x", "b.out"))], "pair", str.upper)
    assert isinstance(found, WaysIn)
    assert [way.topic for way in found.each] == ["fl.d.a.out"]
    assert "X runs as one with PAIR" in str(found.of(Place("b.out", 0, 7)))


def test_a_row_of_a_users_topic_comes_to_all_behind_the_element_and_never_into_that_topic() -> None:
    found = ways_in([group(element("events"), leaves=("events.out",))], "events", str.upper)
    assert found == WaysIn({"events.out": WayIn("fl.d.events.out", SCHEMA, None, "users", READING)})


@pytest.mark.parametrize(
    ("spec", "id", "said"),
    [
        (group(element("keep", "a.out")), "gone", "GONE runs nowhere."),
        (group(element("file")), "file", "correct the file and import it again."),
        (
            group(element("pair", "a.out", "a.out")),
            "pair",
            "by several inputs: each of them would get the row",
        ),
        (group(element("x", "a.out"), element("pair", "a.out", "x.out")), "pair", "PAIR runs as one with X"),
        (group(element("x", "a.out"), element("keep", "x.out")), "keep", "KEEP runs as one with X"),
        (group(element("x", "a.out"), element("keep", "a.out")), "keep", "X runs as one with KEEP"),
        (
            group(element("events"), element("keep", "events.out")),
            "events",
            "never writes to the topic",
        ),
    ],
)
def test_what_cannot_come_back_says_why(spec: GroupSpec, id: str, said: str) -> None:
    found = ways_in([spec], id, str.upper)
    assert isinstance(found, str)
    assert said in found


def test_a_letter_says_where_its_row_lies() -> None:
    place = Place("a.out", 3, 17)
    assert place_of({"input": place.text}) == place
    for told in (None, "", "a.out", {"a": 1}, "a partition x offset 1"):
        assert place_of({"input": told}) is None


def test_a_mark_says_the_same_when_it_is_read() -> None:
    mark = Mark("an order", "drop", (1, 2, 3, 7, 9, 10))
    assert Mark.decode(mark.encode()) == mark
    assert b"[[1,3],[7,7],[9,10]]" in mark.encode()


def test_what_was_replayed_stays_so_and_what_was_dropped_can_be_put_back() -> None:
    fates = Fates([Mark("a", "drop", (1, 2)), Mark("b", "replay", (3,)), Mark("c", "put-back", (2,))])
    letters = [1, 2, 3, 4]
    assert [each for each in letters if fates.is_open(each)] == [2, 4]
    assert [each for each in letters if fates.is_left("d", "replay", each)] == [2, 4]
    # an order does nothing twice, also if somebody has put the letter back since
    assert [each for each in letters if fates.is_left("a", "drop", each)] == [4]
    assert [each for each in letters if fates.did("a", each)] == [1, 2]
    # only what that order has dropped is put back
    assert [each for each in letters if fates.is_left("d", "put-back", each, "a")] == [1]
    assert not any(fates.is_left("d", "put-back", each, "b") for each in letters)


def test_an_order_is_about_named_letters_or_about_those_of_a_reason_in_a_span() -> None:
    named = Chosen.named([7, 3, 3])
    assert [each for each in range(9) if named.has(each, "")] == [3, 7]
    assert [named.next_from(each) for each in (0, 3, 4, 8)] == [3, 3, 7, None]
    of_reason = Chosen(2, 5, None, 'its field "…": a number is needed', "SEVEN")
    letter = json.dumps({"reason": 'its field "n": a number is needed', "raw": "seven"})
    assert [each for each in range(9) if of_reason.has(each, letter)] == [2, 3, 4]
    assert [of_reason.next_from(each) for each in (0, 4, 5)] == [2, 4, None]
    assert not of_reason.has(3, letter.replace("seven", "8"))
    assert not of_reason.has(3, json.dumps({"reason": "another", "raw": "seven"}))
    assert not of_reason.has(3, "no letter")
