"""Rows of dead letters come back exactly once, whatever ends their writer and however often it is ordered."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import astuple, replace
from typing import Any

import pytest
from django.db import connection

from pipeline_runtime.kafka import letters as in_kafka
from pipeline_runtime.kafka.admin import Topic, ensure_topics
from pipeline_runtime.kafka.clients import KafkaSettings, TopicPartition, open_consumer
from pipeline_runtime.kafka.letters import Settling, count_open, open_letters
from pipeline_runtime.kafka.transactions import Doubtful, Fenced, OutgoingRecord, Transactions
from pipeline_runtime.model.dead_letters import Chosen, Place
from pipeline_runtime.model.ids import dead_letter_topic, letters_id, stream_topic
from pipeline_runtime.model.schema import Field, FieldType, StreamSchema
from pipeline_runtime.model.spec import ElementSpec, GroupSpec, InputStream
from tests.waiting import wait_until
from webapp.handovers.letters import settled_counts
from webapp.handovers.models import LetterOrder
from webapp.placements.models import GroupPlacement
from workers.control import letters as in_control
from workers.control.context import ControlContext
from workers.control.letters import settle_letters

ROWS = 5
SCHEMA = StreamSchema(
    fields=(Field(name="key", type=FieldType.STRING), Field(name="n", type=FieldType.NUMBER))
)
SCHEMA = SCHEMA.model_copy(update={"key": "key"})


class Killed(BaseException):
    """The process ends here."""


@pytest.fixture
def control(context: ControlContext, kafka: str) -> ControlContext:
    return replace(context, kafka=KafkaSettings(kafka))


@pytest.fixture
def power(deployed: Callable[..., GroupPlacement], control: ControlContext) -> GroupPlacement:
    """Its stream has five rows, which became dead letters."""
    placement = deployed("power", "edge-a")
    id = placement.deployment_id
    read, dead = stream_topic(id, "before"), dead_letter_topic(id, "power")
    spec = GroupSpec(
        deployment=id,
        pipeline="p-power",
        group="power",
        elements=(ElementSpec(id="power", type="filter", inputs={"in": "before.out"}),),
        inputs=(InputStream(source="before.out", topic=read, data_schema=SCHEMA, consumer="power"),),
    )
    placement.spec = spec.model_dump(mode="json")
    placement.save()
    ensure_topics(control.kafka, [Topic(read), Topic(dead, "dead")])
    rows = [
        OutgoingRecord(read, json.dumps({"key": "a", "n": n}).encode(), b"a", 1000 + n) for n in range(ROWS)
    ]
    said = [{"reason": "no", "raw": "{}", "input": Place("before.out", 0, n).text} for n in range(ROWS)]
    with closing(Transactions(control.kafka, f"test.{id}")) as writer:
        writer.initialise()
        writer.commit([*rows, *(OutgoingRecord(dead, json.dumps(each).encode()) for each in said)])
    return placement


def ordered(placement: GroupPlacement, did: str = "replay", **more: Any) -> LetterOrder:
    where = {"offsets": [*range(ROWS)], "first": 0, "until": ROWS, "letters": ROWS}
    order = LetterOrder(deployment=placement.deployment, element="power", did=did, **{**where, **more})
    order.save()
    return order


def ordered_of_reason(placement: GroupPlacement, did: str = "replay", **more: Any) -> LetterOrder:
    """An order about all five letters by their reason."""
    return ordered(placement, did, **{"offsets": None, "reason": "no", **more})


def carry_out(placement: GroupPlacement, control: ControlContext) -> None:
    """Control tries again for as long as Kafka does not do it."""
    while True:
        try:
            return settle_letters(placement.deployment_id, "power", control)
        except (Fenced, Doubtful):
            continue


def came_back(
    placement: GroupPlacement, control: ControlContext, stream: str = "before"
) -> list[tuple[dict[str, Any], int]]:
    """The rows behind the first five, and their times. Nobody else that reads the stream takes them."""
    at = TopicPartition(stream_topic(placement.deployment_id, stream), 0)
    consumer = open_consumer(control.kafka)
    found = []
    with closing(consumer):
        consumer.assign([at])
        consumer.seek(at, ROWS)
        end = consumer.end_offsets([at])[at]
        while consumer.position(at) < end:
            for record in consumer.poll(100).get(at, ()):
                assert dict(record.headers)["fogline-for"] == b"power"
                assert record.key == b"a"
                found.append((json.loads(record.value), record.timestamp))
    return found


ALL = [({"key": "a", "n": n}, 1000 + n) for n in range(ROWS)]


def killed(*_: Any, **__: Any) -> None:
    raise Killed


AFTER_READING = (Settling, "letters")
WITH_ROWS_SENT = (Transactions, "_end_transaction")
AFTER_THE_COMMIT = (in_control, "replayed_at")


@pytest.mark.parametrize("dies", [AFTER_READING, WITH_ROWS_SENT, AFTER_THE_COMMIT])
@pytest.mark.parametrize("lived", [0, 1])
def test_a_writer_that_is_killed_in_any_step_leaves_each_row_once(
    dies: tuple[Any, str],
    lived: int,
    power: GroupPlacement,
    control: ControlContext,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The steps of an order about a reason: two letters, two, and one. The first or second kills it."""
    monkeypatch.setattr(in_control, "STEP_OFFSETS", 2)
    order = ordered_of_reason(power)
    where, name = dies
    calls, real = itertools.count(), getattr(where, name)

    def dying(*args: Any, **options: Any) -> Any:
        return real(*args, **options) if next(calls) < lived else killed()

    with monkeypatch.context() as patch:
        patch.setattr(where, name, dying)
        with pytest.raises(Killed):
            settle_letters(power.deployment_id, "power", control)
    order.refresh_from_db()
    assert (order.status, order.position, order.taken) == ("pending", 2 * lived, 2 * lived)
    carry_out(power, control)
    order.refresh_from_db()
    assert (order.status, order.taken, order.before, order.stayed) == ("done", ROWS, 0, [])
    assert came_back(power, control) == ALL
    read = stream_topic(power.deployment_id, "before")
    assert sum(last - first + 1 for first, last in order.places[read]["0"]) == ROWS


def test_rows_of_several_inputs_come_back_once_each_to_the_input_from_which_it_came(
    power: GroupPlacement, control: ControlContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer is killed when the rows of the second step lie in both streams."""
    id = power.deployment_id
    other, dead = stream_topic(id, "other"), dead_letter_topic(id, "power")
    [before], [element] = power.spec["inputs"], power.spec["elements"]
    power.spec["inputs"] = [before, {**before, "source": "other.out", "topic": other}]
    power.spec["elements"] = [{**element, "inputs": {"left": "before.out", "right": "other.out"}}]
    power.save()
    ensure_topics(control.kafka, [Topic(other)])
    of_other = [
        OutgoingRecord(other, json.dumps({"key": "a", "n": -n}).encode(), b"a", n) for n in range(ROWS)
    ]
    said = [{"reason": "no", "raw": "{}", "input": Place("other.out", 0, n).text} for n in range(2)]
    said += [
        {"reason": "no", "raw": "{}"},
        {"reason": "no", "raw": "{}", "input": Place("gone.out", 0, 1).text},
    ]
    with closing(Transactions(control.kafka, f"other.{id}")) as writer:
        writer.initialise()
        writer.commit([*of_other, *(OutgoingRecord(dead, json.dumps(each).encode()) for each in said)])
    wait_until(lambda: len(open_letters(control.kafka, dead, 99)) == ROWS + len(said), "the letters")

    monkeypatch.setattr(in_control, "STEP_OFFSETS", 4)
    order = ordered_of_reason(power, until=ROWS + 1 + len(said), letters=ROWS + len(said))
    calls, real = itertools.count(), in_control.replayed_at
    with monkeypatch.context() as patch:
        patch.setattr(in_control, "replayed_at", lambda *args: real(*args) if next(calls) < 2 else killed())
        with pytest.raises(Killed):
            settle_letters(id, "power", control)
    carry_out(power, control)
    order.refresh_from_db()
    assert (order.status, order.taken, order.stayed_count) == ("done", ROWS + 2, 2)
    assert [why for _, why in order.stayed] == [
        "The letter does not say from which input its row came.",
        "The element no longer reads gone.out, from which the row came.",
    ]
    assert came_back(power, control) == ALL
    assert came_back(power, control, "other") == [({"key": "a", "n": -n}, n) for n in range(2)]
    assert order.places == {
        before["topic"]: {"0": order.places[before["topic"]]["0"]},
        other: {"0": [[ROWS + 1, ROWS + 2]]},
    }


def test_an_order_about_a_reason_takes_what_was_counted_and_nothing_that_came_later(
    power: GroupPlacement, control: ControlContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = dead_letter_topic(power.deployment_id, "power")

    def counted(**more: Any) -> tuple[int, int, int, bool]:
        return astuple(count_open(control.kafka, topic, Chosen(0, 2**53, None, "no", **more), 100))

    assert counted() == (ROWS, 0, ROWS + 1, False)  # the transaction's end lies behind them
    assert counted(text="OFFSET 3")[0] == 1
    assert astuple(count_open(control.kafka, topic, Chosen(0, 3, None, "no"), 2)) == (2, 1, 3, True)
    order = ordered_of_reason(power, "drop", until=ROWS + 1)
    with closing(Transactions(control.kafka, f"late.{power.deployment_id}")) as writer:
        writer.initialise()
        late = [{"reason": "no", "raw": "late"}, {"reason": "another", "raw": "x"}]
        writer.commit([OutgoingRecord(topic, json.dumps(each).encode()) for each in late])
    monkeypatch.setattr(in_control, "STEP_OFFSETS", 2)
    carry_out(power, control)
    order.refresh_from_db()
    assert (order.status, order.taken, order.before) == ("done", ROWS, 0)
    wait_until(lambda: counted()[0] == 1, "the late letter alone to be open")
    assert [json.loads(each.value)["raw"] for each in open_letters(control.kafka, topic, 9)] == ["late", "x"]


def test_an_order_that_is_cancelled_keeps_what_it_has_done_and_only_that_is_put_back(
    power: GroupPlacement, control: ControlContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_control, "STEP_OFFSETS", 2)
    ordered(power, "drop", offsets=[0], until=1, letters=1)
    carry_out(power, control)
    order = ordered_of_reason(power, "drop", letters=ROWS - 1)
    commit = Settling.commit

    def cancelled(*args: Any) -> None:
        LetterOrder.objects.filter(pk=order.pk).update(cancel_requested=True)
        commit(*args)

    with monkeypatch.context() as patch:
        patch.setattr(Settling, "commit", cancelled)
        carry_out(power, control)
    order.refresh_from_db()
    assert (order.status, order.taken, order.position) == ("cancelled", 1, 2)
    id = power.deployment_id
    assert settled_counts([id]) == {(id, "power"): 2}
    again = ordered_of_reason(power, "put-back", of=order, letters=1)
    carry_out(power, control)
    again.refresh_from_db()
    assert (again.status, again.taken, again.before) == ("done", 1, 0)
    topic = dead_letter_topic(id, "power")
    assert [each.offset for each in open_letters(control.kafka, topic, 100)] == [1, 2, 3, 4]


def test_two_clicks_at_the_same_time_replay_each_row_once(
    power: GroupPlacement, control: ControlContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two control processes carry out both orders, and each has read what lies there before either writes."""
    orders = [ordered(power), ordered(power)]
    both, read_fates = threading.Barrier(2), in_kafka.read_fates
    first = {"left": 2}

    def together(*args: Any) -> Any:
        found = read_fates(*args)
        if first["left"]:
            first["left"] -= 1
            both.wait(60)
        return found

    def control_process() -> None:
        try:
            carry_out(power, control)
        finally:
            connection.close()

    monkeypatch.setattr(in_kafka, "read_fates", together)
    threads = [threading.Thread(target=control_process) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert came_back(power, control) == ALL
    for order in orders:
        order.refresh_from_db()
    assert sorted((order.status, order.taken, order.before) for order in orders) == [
        ("done", 0, ROWS),
        ("done", ROWS, 0),
    ]


def test_what_was_dropped_is_put_back_and_only_then_replayed(
    power: GroupPlacement, control: ControlContext
) -> None:
    topic, id = dead_letter_topic(power.deployment_id, "power"), power.deployment_id

    def left() -> list[int]:
        return [each.offset for each in open_letters(control.kafka, topic, 100)]

    drop = ordered(power, "drop", offsets=[1, 2])
    replay = ordered(power, offsets=[2, 3])
    carry_out(power, control)
    assert left() == [0, 4]
    assert settled_counts([id]) == {(id, "power"): 3}
    ordered(power, "put-back", offsets=drop.offsets, of=drop)
    ordered(power, "put-back", offsets=replay.offsets, of=replay)  # what came back stays so
    carry_out(power, control)
    assert left() == [0, 1, 2, 4]
    assert settled_counts([id]) == {(id, "power"): 1}
    assert came_back(power, control) == ALL[3:4]


def test_a_mended_row_comes_back_with_its_new_values_and_its_own_time(
    power: GroupPlacement, control: ControlContext
) -> None:
    rows = {"0": [{"key": "a", "n": "21.5"}, None], "1": [{"key": "a", "n": "21,5"}, None]}
    order = ordered(power, offsets=[0, 1], rows=rows, mended=True)
    carry_out(power, control)
    order.refresh_from_db()
    assert came_back(power, control) == [({"key": "a", "n": 21.5}, 1000)]
    assert (order.taken, order.stayed) == (1, [[1, 'Its column "n": a number is needed.']])
    topic = dead_letter_topic(power.deployment_id, "power")
    assert [each.offset for each in open_letters(control.kafka, topic, 100)] == [1, 2, 3, 4]


def test_rows_that_cannot_come_back_say_why_and_stay(power: GroupPlacement, control: ControlContext) -> None:
    power.spec["elements"] = [
        {**power.spec["elements"][0], "inputs": {"left": "before.out", "right": "before.out"}}
    ]
    power.save()
    order = ordered(power)
    carry_out(power, control)
    order.refresh_from_db()
    assert order.status == "failed"
    assert "by several inputs: each of them would get the row" in order.message
    assert came_back(power, control) == []


def test_the_writers_of_an_elements_letters_share_one_id_that_no_epoch_has() -> None:
    assert letters_id("d", "power") == "fl.d.power.dead.settled"
