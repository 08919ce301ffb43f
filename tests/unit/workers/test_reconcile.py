"""Tests the next action of a node as a table: what is wanted x what is there -> one action."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pipeline_runtime.model.desired import CheckpointSource, ClaimOrder, DesiredReplica, Directive, Role
from pipeline_runtime.model.ids import Epoch
from pipeline_runtime.model.spec import GroupSpec
from workers.node.reconcile import (
    FORGET_AFTER_MS,
    Action,
    Discard,
    Failures,
    Fetch,
    FinalCheckpoint,
    Forget,
    Have,
    Idle,
    MarkUnwanted,
    Start,
    Stop,
    Tell,
    next_action,
)

SPEC = GroupSpec(deployment="d", pipeline="p", group="power", elements=())
SPEC2 = SPEC.model_copy(update={"version": "2"})
ORDER = ClaimOrder(id="o1", over=Epoch(0))
ORDER2 = ClaimOrder(id="o2", over=Epoch(1))
SOURCE = CheckpointSource(url="http://edge-a:1", token="t")
OWNER = DesiredReplica(spec=SPEC, role=Role.OWNER, order=ORDER)
MOVED = OWNER.model_copy(update={"source": SOURCE, "generation": 2})
STANDBY = DesiredReplica(spec=SPEC, role=Role.STANDBY)
STOPPED = DesiredReplica(spec=SPEC, role=Role.STOPPED)

NOTHING = Have("d.power")
LOCAL = Have("d.power", generation=1)
RUNNING = Have("d.power", generation=1, running=True, version="1")


def directive(**more: Any) -> Directive:
    return Directive(latency_ms=SPEC.pace.latency_ms, **more)


OWN = directive(order=ORDER)
OWNING = replace(RUNNING, told=OWN, may_own=True)
FOLLOWING = replace(RUNNING, told=directive())
SUCCEEDING = replace(RUNNING, told=directive(succeed="h1"))
RELEASED = replace(RUNNING, told=replace(OWN, release="h1"))


def changed(want: DesiredReplica, **update: object) -> DesiredReplica:
    return want.model_copy(update=update)


TABLE: list[tuple[str, DesiredReplica | None, Have, Action]] = [
    ("a new group starts empty", OWNER, NOTHING, Start(SPEC, 1, OWN)),
    ("a moved group is fetched first", MOVED, NOTHING, Fetch(SOURCE, 2)),
    ("what was fetched is started", MOVED, replace(LOCAL, generation=2), Start(SPEC, 2, OWN)),
    ("local state is never fetched over", changed(OWNER, source=SOURCE), LOCAL, Start(SPEC, 1, OWN)),
    ("a running replica is told to own", OWNER, FOLLOWING, Tell(OWN)),
    ("an order is given once", OWNER, OWNING, Idle()),
    ("a new order is given on", changed(OWNER, order=ORDER2), OWNING, Tell(directive(order=ORDER2))),
    ("a standby is given no order", changed(STANDBY, order=ORDER), FOLLOWING, Idle()),
    ("a standby is to succeed", changed(STANDBY, succeed="h1"), FOLLOWING, Tell(directive(succeed="h1"))),
    (
        "a standby is to succeed no more",
        STANDBY,
        replace(RUNNING, told=directive(succeed="h1")),
        Tell(directive()),
    ),
    ("an owner is to release", changed(OWNER, release="h1"), OWNING, Tell(replace(OWN, release="h1"))),
    ("told to release, it is told once", changed(OWNER, release="h1"), RELEASED, Idle()),
    ("an owner is followed", changed(OWNER, followed=True), OWNING, Tell(replace(OWN, followed=True))),
    ("one that owns becomes a standby by a restart", STANDBY, OWNING, Stop("demoted to standby")),
    (
        "one that owns by the release that it waited for owns",
        changed(STANDBY, succeed="h1"),
        replace(RUNNING, told=directive(succeed="h1"), may_own=True, owns_by="h1"),
        Idle(),
    ),
    (
        "one that owned before is no successor",
        changed(STANDBY, succeed="h1"),
        replace(OWNING, owns_by="o1"),
        Stop("demoted to standby"),
    ),
    (
        "another latency target is told",
        OWNER,
        replace(OWNING, told=replace(OWN, latency_ms=20)),
        Tell(OWN),
    ),
    ("one that has released goes on as a standby", STANDBY, RELEASED, Tell(directive())),
    (
        "one that released owns by a new order",
        changed(OWNER, order=ORDER2),
        RELEASED,
        Tell(directive(order=ORDER2)),
    ),
    ("pause", changed(OWNER, paused_since_ms=5), OWNING, Tell(replace(OWN, paused_since_ms=5))),
    ("resume", OWNER, replace(OWNING, told=replace(OWN, paused_since_ms=5)), Tell(OWN)),
    ("retire", changed(OWNER, retire=True), OWNING, Tell(replace(OWN, retire=True))),
    (
        "retire is told once",
        changed(OWNER, retire=True),
        replace(OWNING, told=replace(OWN, retire=True)),
        Idle(),
    ),
    ("only an owner retires", changed(STANDBY, retire=True), FOLLOWING, Idle()),
    ("stop", STOPPED, OWNING, Stop("told to stop")),
    ("a stop ends with a checkpoint", STOPPED, LOCAL, FinalCheckpoint()),
    ("one final checkpoint is enough", STOPPED, replace(LOCAL, final_checkpoint=True), Idle()),
    ("stopped without state", STOPPED, NOTHING, Idle()),
    ("a stopped copy is fetched and kept", changed(STOPPED, source=SOURCE), NOTHING, Fetch(SOURCE, 1)),
    (
        "a stopped copy whose fetch failed waits",
        changed(STOPPED, source=SOURCE),
        replace(NOTHING, retry_at_ms=20_000),
        Idle(20_000),
    ),
    ("damaged state is dropped", MOVED, replace(LOCAL, generation=2, damaged=True), Discard(2)),
    ("damaged state that is gone is fetched", MOVED, replace(NOTHING, damaged=True), Fetch(SOURCE, 2)),
    ("back after a stop", OWNER, replace(LOCAL, final_checkpoint=True), Start(SPEC, 1, OWN)),
    ("a changed definition restarts", changed(OWNER, spec=SPEC2), OWNING, Stop("its definition changed")),
    ("a new generation stops the old", MOVED, OWNING, Stop("generation 2 replaces 1")),
    ("a new generation discards the old", MOVED, LOCAL, Discard(1)),
    ("no longer wanted: stop", None, OWNING, Stop("no longer wanted on this node")),
    ("no longer wanted: the grace begins", None, LOCAL, MarkUnwanted()),
    (
        "no longer wanted: kept for the grace",
        None,
        replace(LOCAL, unwanted_since_ms=1_000),
        Idle(1_000 + FORGET_AFTER_MS),
    ),
    ("no longer wanted: forgotten", None, replace(LOCAL, unwanted_since_ms=-FORGET_AFTER_MS), Forget()),
    ("no longer wanted and nothing there", None, NOTHING, Forget()),
    ("one that was fenced stays down", OWNER, replace(LOCAL, ended_for="o1"), Idle()),
    (
        "one that was fenced obeys a new order",
        changed(OWNER, order=ORDER2),
        replace(LOCAL, ended_for="o1"),
        Start(SPEC, 1, directive(order=ORDER2)),
    ),
    ("one that was fenced may follow", STANDBY, replace(LOCAL, ended_for="o1"), Start(SPEC, 1, directive())),
    (
        "an element starts as it is wanted: paused",
        changed(OWNER, paused_since_ms=5),
        LOCAL,
        Start(SPEC, 1, replace(OWN, paused_since_ms=5)),
    ),
    ("a failed one waits", OWNER, replace(LOCAL, retry_at_ms=20_000), Idle(20_000)),
    ("a failed one is started again", OWNER, replace(LOCAL, retry_at_ms=9_000), Start(SPEC, 1, OWN)),
    ("one given up stays down", OWNER, replace(LOCAL, gave_up=True), Idle()),
    ("one given up can still be let go", None, replace(LOCAL, gave_up=True), MarkUnwanted()),
]


@pytest.mark.parametrize(("law", "want", "have", "action"), TABLE, ids=[row[0] for row in TABLE])
def test_next_action(law: str, want: DesiredReplica | None, have: Have, action: Action) -> None:
    assert next_action(want, have, now_ms=10_000) == action


def test_failures_back_off_and_give_up_after_five_in_ten_minutes() -> None:
    failures = Failures()
    waits = []
    for now_ms in range(0, 40_000, 10_000):
        failures = failures.and_one_at(now_ms)
        assert failures.retry_at_ms is not None
        waits.append(failures.retry_at_ms - now_ms)
    assert waits == [1000, 2000, 4000, 8000]
    assert not failures.gave_up
    assert failures.and_one_at(50_000).gave_up
    assert not failures.and_one_at(700_000).gave_up


def test_who_waits_for_somebody_that_is_away_never_gives_up() -> None:
    failures = Failures()
    for now_ms in range(0, 100_000, 10_000):
        failures = failures.and_one_at(now_ms, of_others=True)
        assert not failures.gave_up
    assert failures.retry_at_ms == 90_000 + 8000
    for now_ms in range(100_000, 140_000, 10_000):
        failures = failures.and_one_at(now_ms)
        assert not failures.gave_up, "those of others do not count with its own"
    assert failures.and_one_at(150_000).gave_up
