"""Tests which questions a group may ask schema registries, and that a number stands for one schema in all
batches.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from pipeline_runtime.formats.schema_registry import AVRO, RegisteredSchema, SchemaRegistryError
from pipeline_runtime.formats.writing import avro_text
from pipeline_runtime.journal.records import Digests
from pipeline_runtime.model.ids import Seq
from pipeline_runtime.model.schema import Field, FieldType, StreamSchema
from pipeline_runtime.model.spec import (
    GroupSpec,
    InputStream,
    OutputStream,
    RecordFormat,
    RecordReading,
    RecordWriting,
)
from pipeline_runtime.replica.run_registries import DIGESTS_MAX, Place, RunRegistries, joined
from tests.schema_registry import RegistryServer

ROWS = StreamSchema(fields=(Field(name="n", type=FieldType.INTEGER),))
READS = RecordFormat(kind="avro", registry="reads")
WRITES = RecordFormat(kind="avro", registry="writes")
SPEC = GroupSpec(
    deployment="d",
    pipeline="p",
    group="g",
    elements=(),
    inputs=(
        InputStream(
            source="in.out",
            topic="t",
            data_schema=ROWS,
            consumer="in",
            external=True,
            reading=RecordReading(columns=(), format=READS),
        ),
    ),
    outputs=(
        OutputStream(
            source="in.out",
            topic="u",
            data_schema=ROWS,
            external=True,
            writing=RecordWriting(format=WRITES, subject="u-value"),
        ),
    ),
)
TEXT = avro_text(WRITES, ROWS)


@pytest.fixture
def registry() -> Iterator[RegistryServer]:
    with RegistryServer() as server:
        yield server


NEXT = Seq(8)


def run_of(registry: RegistryServer, over: threading.Event | None = None) -> RunRegistries:
    asker = registry.asker()
    return RunRegistries(SPEC, lambda _: asker, over or threading.Event())


class Told:
    """A registry that has each number, as the schema of that text."""

    def __init__(self) -> None:
        self.text = '"long"'

    def schema(self, number: int) -> RegisteredSchema:
        return RegisteredSchema(AVRO, self.text)

    def number(self, subject: str, schema: str) -> int:
        raise NotImplementedError


def test_a_group_gets_what_its_definition_needs_and_nothing_else(registry: RegistryServer) -> None:
    number = registry.register("t-value", '"long"')
    run = run_of(registry)
    assert run("reads").schema(number).text == '"long"'
    assert run("writes").number("u-value", TEXT) == registry.subjects["u-value"]
    asked = registry.asked
    foreign: list[Any] = [
        lambda: run("writes").schema(number),
        lambda: run("another").schema(number),
        lambda: run("reads").number("u-value", TEXT),
        lambda: run("writes").number("t-value", TEXT),
        lambda: run("writes").number("u-value", '"string"'),
        lambda: run(["reads"]).schema(number),  # type: ignore[arg-type]
        lambda: run("writes").number(["u-value"], TEXT),  # type: ignore[arg-type]
    ]
    for ask in foreign:
        with pytest.raises(SchemaRegistryError, match="this element"):
            ask()
    assert registry.asked == asked
    assert run.needed == (), "there is nothing to wait for"


def test_a_run_that_is_over_asks_nothing(registry: RegistryServer) -> None:
    over = threading.Event()
    run = run_of(registry, over)
    over.set()
    with pytest.raises(SchemaRegistryError, match="is being stopped"):
        run("reads").schema(registry.register("t-value", '"long"'))
    assert registry.asked == 0


def test_what_a_registry_says_of_a_number_is_what_the_journal_says(registry: RegistryServer) -> None:
    number = registry.register("t-value", '"long"')
    first = run_of(registry)
    first("reads").schema(number)
    journal = first.confirm({}, NEXT)
    assert list(journal["reads"]) == [str(number)]

    same = run_of(registry)
    same("reads").schema(number)
    assert same.confirm(journal, NEXT) == journal

    registry.schemas[number] = {"schema": '"string"'}  # it was set up again
    other = run_of(registry)
    other("reads").schema(number)
    with pytest.raises(SchemaRegistryError, match=f'"reads" says another schema {number} than when earlier'):
        other.confirm(journal, NEXT)
    [needed] = other.needed
    with pytest.raises(SchemaRegistryError):
        needed.ask()
    assert needed.way is not None
    assert other.confirm(journal, NEXT, [needed.way.id])["reads"] != journal["reads"]
    with pytest.raises(SchemaRegistryError, match="says another schema"):
        other.confirm(journal, Seq(NEXT + 1), [needed.way.id])  # a choice is for one batch


def test_a_registry_that_is_set_up_again_while_the_owner_runs_asks_a_person() -> None:
    registry = Told()
    run = RunRegistries(SPEC, lambda _: registry, threading.Event())
    run("reads").schema(7)
    journal = run.confirm({}, NEXT)
    registry.text = '"string"'
    run("reads").schema(7)
    with pytest.raises(SchemaRegistryError, match='"reads" says another schema 7 than when earlier'):
        run.confirm(journal, NEXT)
    [needed] = run.needed
    assert needed.way is not None
    with pytest.raises(SchemaRegistryError):
        run.confirm(journal, NEXT, [needed.way.id])  # this run has read records by both
    next_run = RunRegistries(SPEC, lambda _: registry, threading.Event())
    next_run("reads").schema(7)
    assert next_run.confirm(journal, NEXT, [needed.way.id]) != journal


def test_no_batch_is_read_by_two_schemas_of_a_number_that_the_journal_does_not_have() -> None:
    registry = Told()
    run = RunRegistries(SPEC, lambda _: registry, threading.Event())
    for text in ('"long"', '"string"', '"long"'):
        registry.text = text
        run("reads").schema(7)
    with pytest.raises(SchemaRegistryError, match="says another schema 7"):
        run.confirm({}, NEXT)
    [needed] = run.needed
    assert needed.way is None, "the next run reads all of them by one schema"
    needed.ask()


def test_a_schema_that_each_batch_uses_keeps_its_digest() -> None:
    run = RunRegistries(SPEC, lambda _: Told(), threading.Event())
    journal: Digests = {}
    for number in range(1, 2 * DIGESTS_MAX):
        run("reads").schema(1)
        run("reads").schema(number)
        journal = run.confirm(journal, NEXT)
    assert "1" in journal["reads"]
    assert len(journal["reads"]) == DIGESTS_MAX


def test_two_inputs_may_read_one_topic_by_two_registries(registry: RegistryServer) -> None:
    [first] = SPEC.inputs
    by_another = RecordReading(columns=(), format=RecordFormat(kind="avro", registry="another"))
    spec = SPEC.model_copy(update={"inputs": (first, first.model_copy(update={"reading": by_another}))})
    number, asker = registry.register("t-value", '"long"'), registry.asker()
    run = RunRegistries(spec, lambda _: asker, threading.Event())
    for name in ("reads", "another"):
        assert run(name).schema(number).text == '"long"'
        with pytest.raises(SchemaRegistryError):
            run(name).schema(number + 1)
        run.record_waits(Place("t", 0, 57), name, number + 1)
    assert len(run.needed) == 2


def test_what_a_record_waits_for_is_asked_again(registry: RegistryServer) -> None:
    run = run_of(registry)
    with pytest.raises(SchemaRegistryError):
        run("reads").schema(100)
    run.record_waits(Place("t", 0, 57), "reads", 101)
    run.record_waits(Place("another", 0, 57), "reads", 100)
    run.record_waits(Place("t", 0, 57), "writes", 100)
    assert list(run.needed) == [], "nobody has asked for that"
    run.record_waits(Place("t", 0, 57), "reads", 100)
    [needed] = run.needed
    assert needed.unknown
    assert needed.place == Place("t", 0, 57)
    with pytest.raises(SchemaRegistryError):
        needed.ask()
    assert registry.register("t-value", '"long"') == 100
    needed.ask()
    run("reads").schema(100)
    run.record_waits(Place("t", 0, 58), "reads", 100)
    assert list(run.needed) == [needed], "the registry has it by now"


def test_a_commit_says_of_the_newest_schemas_which_ones_they_are() -> None:
    before = {"reads": {str(number): "a" for number in range(DIGESTS_MAX)}, "gone": {"1": "b"}}
    found = joined(before, {"reads": {"0": "new", "1000": "c"}})
    assert found["gone"] == {"1": "b"}
    assert len(found["reads"]) == DIGESTS_MAX
    assert list(found["reads"])[-2:] == ["0", "1000"]
    assert found["reads"]["0"] == "new"
    assert "1" not in found["reads"]
