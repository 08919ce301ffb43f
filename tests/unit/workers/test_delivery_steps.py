"""What an operation does while deliverers deliver what ended groups have put out."""

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
WORDS = "MQTT out to deliver 1,200 rows"
RETIRED = replace(OWNS, owns=False, retired=True)


def left(rows: int, at: int) -> Answer:
    return Answer(T0, undelivered=(Undelivered("mqtt", "MQTT out", "power", rows=rows, at=at),))


@pytest.mark.parametrize(
    ("progress", "seen", "step"),
    [
        (replace(undeploy(P.RETIRE), delivers=True), undeploying(RETIRED), enters(P.DELIVER)),
        (DELIVERS, undeploying(RETIRED), CountUndelivered()),
        (DELIVERS, undeploying(RETIRED, kafka=WAITING), Wait(WORDS)),
        (
            DELIVERS,
            undeploying(RETIRED, kafka=left(1100, 107)),
            NoteUndelivered(left(1100, 107).undelivered, T0 + LIMIT_MS[P.DELIVER]),
        ),
        (DELIVERS, undeploying(RETIRED, kafka=left(0, 7)), enters(P.STOP)),
        (DELIVERS, undeploying(replace(RETIRED, node_up=False), kafka=WAITING), enters(P.STOP)),
        (replace(DELIVERS, hurries=True), undeploying(RETIRED), CountUndelivered()),
        (replace(DELIVERS, hurries=True), undeploying(RETIRED, kafka=WAITING), enters(P.STOP)),
        (replace(DELIVERS, phase=P.STOP), undeploying(RETIRED), CountUndelivered()),
        (
            replace(DELIVERS, phase=P.STOP),
            undeploying(RETIRED, kafka=left(3, 1204)),
            NoteUndelivered(left(3, 1204).undelivered, DEADLINE),
        ),
        (replace(DELIVERS, phase=P.STOP), undeploying(RETIRED, kafka=WAITING), enters(P.DELETE)),
        (replace(DELIVERS, phase=P.STOP), undeploying(RETIRED, kafka=AWAY), enters(P.DELETE)),
    ],
)
def test_rows_are_delivered_before_their_streams_go(progress: Progress, seen: Observed, step: Step) -> None:
    assert next_step(progress, seen, T0) == step


def test_deliveries_are_waited_for_until_none_comes_for_a_while() -> None:
    seen = undeploying(RETIRED, kafka=WAITING)
    assert next_step(DELIVERS, seen, DEADLINE - 1) == CountUndelivered()
    assert next_step(DELIVERS, seen, DEADLINE) == enters(P.STOP, DEADLINE)
    away = undeploying(RETIRED, kafka=AWAY)
    waits = next_step(DELIVERS, away, T0)
    assert waits == Wait(f"Kafka to say how many rows are not delivered: {AWAY.away}")
    assert next_step(DELIVERS, away, DEADLINE) == enters(P.STOP, DEADLINE)


def test_what_was_not_delivered_is_said_with_the_reason() -> None:
    one = Undelivered("mqtt", "MQTT out", "power", rows=1, why="the broker does not answer")
    many = Undelivered("table", "Table", "power", rows=12_000, estimated=True)
    none = Undelivered("other", "Other", "power", rows=0, at=5)
    assert not_delivered([one, none, many]) == (
        " Not delivered: 1 row (the broker does not answer) of MQTT out; about 12,000 rows of Table."
    )
    assert not_delivered([none]) == ""
