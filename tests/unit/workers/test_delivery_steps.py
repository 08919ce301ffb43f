"""Tests the steps of an operation while deliverers deliver the last rows of ended groups."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.workers.operations import (
    AWAY,
    DEADLINE,
    OWNS,
    T0,
    WAITING,
    enters,
    undeploy,
    undeploying,
)
from workers.control.operations.deliveries import not_delivered
from workers.control.operations.limits import LIMIT_MS
from workers.control.operations.model import (
    Answer,
    CountUndelivered,
    NoteUndelivered,
    Observed,
    Progress,
    Step,
    Undelivered,
    Wait,
)
from workers.control.operations.phases import OperationPhase as P
from workers.control.operations.steps import next_step

DELIVERS = replace(undeploy(P.DELIVER), delivers=True, undelivered=WAITING.undelivered)
STOPS = replace(DELIVERS, phase=P.STOP)
WORDS = "MQTT out to deliver 1,200 rows"
RETIRED = replace(OWNS, owns=False, retired=True)
LIMIT = LIMIT_MS[P.DELIVER]
UNKNOWN = replace(AWAY, undelivered=tuple(replace(each, rows=None) for each in WAITING.undelivered))
ASKS = f"Kafka to say how many rows are not delivered: {AWAY.away}"


def left(rows: int, at: int, why: str = "") -> Answer:
    return Answer(T0, undelivered=(Undelivered("mqtt", "MQTT out", "power", rows=rows, at=at, why=why),))


def noted(answer: Answer, deadline_ms: int) -> NoteUndelivered:
    return NoteUndelivered(answer.undelivered, deadline_ms)


@pytest.mark.parametrize(
    ("progress", "seen", "step"),
    [
        (replace(undeploy(P.RETIRE), delivers=True), undeploying(RETIRED), enters(P.DELIVER)),
        (DELIVERS, undeploying(RETIRED), CountUndelivered()),
        (DELIVERS, undeploying(RETIRED, kafka=WAITING), Wait(WORDS)),
        (DELIVERS, undeploying(RETIRED, kafka=left(1100, 107)), noted(left(1100, 107), T0 + LIMIT)),
        # that its connector fails now is no delivery
        (DELIVERS, undeploying(RETIRED, kafka=left(1200, 7, "no")), noted(left(1200, 7, "no"), DEADLINE)),
        (
            replace(DELIVERS, undelivered=left(0, 7).undelivered),
            undeploying(kafka=left(0, 7)),
            enters(P.STOP),
        ),
        (
            DELIVERS,
            undeploying(replace(RETIRED, node_up=False), kafka=WAITING),
            Wait(f"{WORDS} (edge-a does not answer)"),
        ),
        # the group runs nowhere any more, since an upgrade before has failed
        (DELIVERS, undeploying(kafka=WAITING), enters(P.STOP)),
        (replace(DELIVERS, hurries=True), undeploying(RETIRED), CountUndelivered()),
        (replace(DELIVERS, hurries=True), undeploying(RETIRED, kafka=WAITING), enters(P.STOP)),
        (STOPS, undeploying(RETIRED), CountUndelivered()),
        (STOPS, undeploying(RETIRED, running=("power on edge-a",)), Wait("power on edge-a to stop")),
        (STOPS, undeploying(RETIRED, kafka=left(3, 1204)), noted(left(3, 1204), DEADLINE)),
        (STOPS, undeploying(RETIRED, kafka=WAITING), enters(P.DELETE)),
    ],
)
def test_rows_are_delivered_before_their_streams_go(progress: Progress, seen: Observed, step: Step) -> None:
    assert next_step(progress, seen, T0) == step


@pytest.mark.parametrize("up", [True, False])
def test_deliveries_are_waited_for_until_none_comes_for_a_while(up: bool) -> None:
    """Also if the deliverer's node is away: it may only be starting again."""
    seen = undeploying(replace(RETIRED, node_up=up), kafka=WAITING)
    late_ms = max(DEADLINE, LIMIT)
    assert next_step(DELIVERS, seen, DEADLINE - 1) == CountUndelivered()
    assert next_step(DELIVERS, seen, late_ms) == enters(P.STOP, late_ms)


def test_the_time_for_deliveries_begins_again_when_kafka_is_back() -> None:
    away = undeploying(RETIRED, kafka=UNKNOWN)
    assert next_step(DELIVERS, away, T0) == noted(UNKNOWN, T0 + LIMIT)
    unknown = replace(DELIVERS, undelivered=UNKNOWN.undelivered, deadline_ms=T0 + LIMIT)
    assert next_step(unknown, away, T0) == Wait(ASKS)
    back_ms = T0 + LIMIT - 1
    seen = undeploying(RETIRED, kafka=replace(WAITING, at_ms=back_ms))
    assert next_step(unknown, seen, back_ms) == noted(WAITING, back_ms + LIMIT)
    assert next_step(unknown, away, T0 + LIMIT) == enters(P.STOP, T0 + LIMIT)
    assert next_step(replace(unknown, hurries=True), away, T0) == enters(P.STOP)


def test_when_all_has_stopped_kafka_is_asked_until_the_time_is_over() -> None:
    """It is then stored that nobody knows, and not what was counted before."""
    away = undeploying(kafka=UNKNOWN)
    assert next_step(STOPS, away, T0) == Wait(f"Kafka to say how many rows were not delivered: {AWAY.away}")
    assert next_step(STOPS, away, DEADLINE - 1) == CountUndelivered()
    assert next_step(STOPS, away, DEADLINE) == noted(UNKNOWN, DEADLINE)
    unknown = replace(STOPS, undelivered=UNKNOWN.undelivered)
    assert next_step(unknown, away, DEADLINE) == enters(P.DELETE, DEADLINE)


def test_one_answer_is_stored_once() -> None:
    """Whatever becomes of it: control does not store for ever, without a pause."""
    before = Undelivered("power", "Power", "power", rows=5, unread=True)
    for phase, following in ((P.STOP, enters(P.DELETE)), (P.DELIVER, Wait(WORDS))):
        progress = replace(DELIVERS, phase=phase, undelivered=(*WAITING.undelivered, before))
        assert isinstance(next_step(progress, undeploying(RETIRED, kafka=WAITING), T0), NoteUndelivered)
        seen = undeploying(RETIRED, kafka=replace(WAITING, noted=True))
        assert next_step(progress, seen, T0) == following


ONE = Undelivered("mqtt", "MQTT out", "power", rows=1, why="the broker does not answer")
MANY = Undelivered("table", "Table", "power", rows=12_000, estimated=True)
NONE = Undelivered("other", "Other", "power", rows=0, at=5)
NOBODY_KNOWS = Undelivered("lost", "Lost", "power", rows=None, topic="fl.d.lost.out")


@pytest.mark.parametrize(
    ("undelivered", "words"),
    [
        (
            [ONE, NONE, MANY],
            " Not delivered: 1 row of MQTT out (the broker does not answer); about 12,000 rows of Table.",
        ),
        (
            [MANY, NOBODY_KNOWS],
            " Not delivered: about 12,000 rows of Table. Kafka did not say how many rows of Lost were not "
            "delivered. These streams are kept in Kafka: fl.d.lost.out. Delete them there when nobody needs "
            "them.",
        ),
        ([NONE], ""),
    ],
)
def test_what_was_not_delivered_is_said(undelivered: list[Undelivered], words: str) -> None:
    assert not_delivered(undelivered) == words


def test_what_is_kept_is_not_told_as_lost() -> None:
    assert not_delivered([MANY, NOBODY_KNOWS], kept=True) == (
        " Not delivered yet: about 12,000 rows of Table. These rows go with the next deployment, or when it "
        "is undeployed. Kafka did not say how many rows of Lost were not delivered. These streams are kept "
        "in Kafka: fl.d.lost.out. Delete them there when nobody needs them."
    )
    assert not_delivered([NONE], kept=True) == ""
