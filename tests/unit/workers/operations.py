"""Sample states of operations, for the tests of their steps."""

from __future__ import annotations

from dataclasses import replace

from pipeline_runtime.placement.choose import Placed
from workers.control.operations.limits import LIMIT_MS
from workers.control.operations.model import (
    Answer,
    Enter,
    GroupSeen,
    Observed,
    Progress,
    Undelivered,
    Unplaced,
)
from workers.control.operations.phases import OperationPhase as P

T0 = 1_000_000
EDGE_A = Placed("edge-a", "pinned", "the document pins it there")
DEADLINE = T0 + 60_000
STARTING = GroupSeen("power", "Power", "power", "edge-a", node_up=True, state="starting")
OWNS = replace(STARTING, state="owning", owns=True)
FAILING = replace(STARTING, error="no such file")
REFUSED = replace(STARTING, refused="epoch 5 was granted to edge-b")
SILENT = replace(STARTING, node_up=False)
LATER = Unplaced("Power: edge-a does not answer", (), passing=True)
NOWHERE = Unplaced("Power: edge-a is cordoned", ({"element": "power"},), passing=False)
MADE = Answer(T0)
AWAY = Answer(T0, away="Kafka at k:1 does not answer (OSError)")
REFUSAL = Answer(T0, refused="Kafka did not delete fl.1.power.out")
WAITING = Answer(T0, undelivered=(Undelivered("mqtt", "MQTT out", "power", rows=1200, at=7),))


def deploy(phase: P, **more: object) -> Progress:
    return replace(Progress("deploy", phase, DEADLINE), **more)


def upgrade(phase: P, *groups: str, **more: object) -> Progress:
    return replace(Progress("upgrade", phase, DEADLINE, groups=groups, orders=1), **more)


def undeploy(phase: P) -> Progress:
    return Progress("undeploy", phase, DEADLINE)


def deploying(*groups: GroupSeen, **more: object) -> Observed:
    return replace(Observed("deploying", groups=groups), **more)


def running(*groups: GroupSeen, **more: object) -> Observed:
    return replace(Observed("running", groups=groups), **more)


def undeploying(*groups: GroupSeen, **more: object) -> Observed:
    return replace(Observed("undeploying", groups=groups), **more)


def enters(phase: P, now_ms: int = T0) -> Enter:
    limit_ms = LIMIT_MS.get(phase)
    return Enter(phase, None if limit_ms is None else now_ms + limit_ms)
