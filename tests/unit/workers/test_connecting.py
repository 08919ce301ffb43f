"""When a node starts, runs and ends a connector."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeline_runtime.connectors.backoff import MOST_S, YOUNG, YOUNG_MOST_S
from pipeline_runtime.connectors.pulse import HANGS
from pipeline_runtime.model.connectors import ConnectorStatus
from pipeline_runtime.model.desired import ClaimOrder, DesiredReplica, ReplicaStatus, Role
from pipeline_runtime.model.ids import Epoch
from pipeline_runtime.model.spec import GroupSpec
from workers.node.connecting import (
    END_MS,
    SILENT_MS,
    START_MS,
    Act,
    Held,
    Wanted,
    deliverers_epoch,
    may_deliver,
    may_run,
    next_act,
)
from workers.node.connectors import FAILING_MS, QUIET_MS, ended, silent, with_former, with_told

SPEC = GroupSpec(deployment="d", pipeline="p", group="g", elements=())
ORDER = ClaimOrder(id="o", over=Epoch(0))
WANT = Wanted("config", run=True)
HUNG = Held("config", alive=True, running=True, started_ms=-20_000, said_ms=999 - SILENT_MS)
RUNS = Held("config", alive=True, said_ms=1000).told_to_run(3)


def replica(**changes: object) -> DesiredReplica:
    return DesiredReplica(spec=SPEC, role=Role.OWNER, order=ORDER).model_copy(update=changes)


def status(**changes: object) -> ReplicaStatus:
    return ReplicaStatus(group="d.g", role=Role.STOPPED).model_copy(update=changes)


OWNER = {"role": Role.OWNER}


@pytest.mark.parametrize(
    ("want", "has", "runs"),
    [
        (replica(), status(**OWNER), True),
        (replica(), status(phase="starting"), True),
        (replica(), status(phase="failed"), True),
        (replica(), status(phase="fenced"), False),
        (replica(), status(order_refused="late", order_id="o"), False),
        (replica(release="h"), status(**OWNER), True),
        (replica(release="h"), status(released="h"), False),
        (replica(retire=True), status(**OWNER), False),
        (replica(closing=True), status(**OWNER), False),
        (replica(role=Role.STANDBY, order=None, succeed="h"), status(role=Role.STANDBY), False),
        (replica(role=Role.STANDBY, order=None, succeed="h"), status(**OWNER), True),
        (replica(role=Role.STOPPED, order=None), status(), False),
    ],
)
def test_a_connector_runs_where_its_group_is_owned(
    want: DesiredReplica, has: ReplicaStatus, runs: bool
) -> None:
    assert may_run(want, has) is runs
    if not want.retire and not want.closing:
        assert may_deliver(want, has) is runs


@pytest.mark.parametrize(
    ("has", "delivers"),
    [
        (status(**OWNER), True),
        (status(phase="failed"), True),
        (status(phase="retired", retired=True), True),
        (status(phase="refused", retired=True, order_refused="its journal is retired", order_id="o"), True),
        (status(phase="fenced"), False),
        (None, False),
    ],
)
def test_a_deliverer_goes_on_while_its_group_ends_for_good(has: ReplicaStatus | None, delivers: bool) -> None:
    assert may_deliver(replica(retire=True, closing=True), has) is delivers


@pytest.mark.parametrize(
    ("has", "epoch"),
    [
        (None, None),
        (status(epoch=Epoch(0), phase="starting"), None),  # as after a restart of the node
        (status(role=Role.STANDBY, epoch=Epoch(2)), None),  # that of the former owner
        (status(epoch=Epoch(3), **OWNER), 3),
        (status(epoch=Epoch(3), phase="retired", retired=True), 3),
    ],
)
def test_a_deliverer_has_the_epoch_in_which_its_replica_owns(
    has: ReplicaStatus | None, epoch: int | None
) -> None:
    assert deliverers_epoch(has) == epoch


@pytest.mark.parametrize(
    ("want", "held", "act"),
    [
        (None, Held(), "forget"),
        (WANT, Held(), "start"),
        (WANT, Held(again_ms=1001), "nothing"),
        (WANT, Held("config", alive=True, said_ms=1000), "run"),
        (WANT, Held("config", alive=True, running=True, said_ms=1000), "nothing"),
        (Wanted("config", run=False), Held("config", alive=True, said_ms=1000), "nothing"),
        (Wanted("config", run=True, epoch=None), Held("config", alive=True, said_ms=1000), "nothing"),
        (Wanted("config", run=True, epoch=None), RUNS, "nothing"),
        (Wanted("config", run=True, epoch=3), RUNS, "nothing"),
        (Wanted("config", run=True, epoch=4), RUNS, "end"),
        (Wanted("config", run=False), Held("config", alive=True, running=True, said_ms=1000), "end"),
        (Wanted("other", run=True), Held("config", alive=True, running=True, said_ms=1000), "end"),
        (None, Held("config", alive=True, said_ms=1000), "end"),
        (None, Held("config", alive=True, ending_ms=1000), "nothing"),
        (None, Held("config", alive=True, ending_ms=999 - END_MS), "kill"),
        (WANT, HUNG, "kill"),
        (WANT, replace(HUNG, started_ms=HUNG.said_ms), "nothing"),
        (WANT, replace(HUNG, started_ms=999 - START_MS, said_ms=999 - START_MS), "kill"),
    ],
)
def test_what_is_next(want: Wanted | None, held: Held, act: Act) -> None:
    assert next_act(want, held, 1000) == act


def test_one_that_ends_by_itself_is_started_again_later_each_time() -> None:
    held, waits = Held(), []
    for _ in range(YOUNG + 1):
        held = held.started("config", 0).ended(0)
        waits.append(held.again_ms)
    assert waits[:3] == [500, 1000, 2000]
    assert waits[-2:] == [YOUNG_MOST_S * 1000, MOST_S * 1000]
    assert held.started("config", 0).ended(60_000).again_ms == 60_500


def test_one_that_was_told_to_end_is_started_again_at_once() -> None:
    held = Held("config", alive=True, ending_ms=5)
    assert held.ended(10) == Held()


def test_a_connector_that_fails_is_told_as_a_stall_in_its_own_words() -> None:
    failing = ConnectorStatus(element="e", state="failing", why="Nobody listens at x.", since_ms=1000)
    told = with_told(status(**OWNER), [failing], (), 1000 + FAILING_MS)
    assert told.stalled is not None
    assert (told.stalled.why, told.stalled.since_ms) == ("Nobody listens at x", 1000)
    assert with_told(status(**OWNER), [failing], (), 1001).stalled is None
    assert told.connectors == (failing,)


def test_why_a_process_has_ended_stays_until_the_next_one_says_more() -> None:
    hangs = ConnectorStatus(element="e", state="failing", why=HANGS, since_ms=1000)
    once = ended(hangs, 1, 2000)
    assert once.why == f"{HANGS}. Its process has ended, and is started again"
    assert (ended(once, 1, 3000), once.since_ms) == (once, 1000)
    starting = ConnectorStatus(element="e", since_ms=3000)
    assert (with_former(once, starting).why, with_former(once, starting).since_ms) == (once.why, 1000)
    works = ConnectorStatus(element="e", state="connected", since_ms=4000)
    assert with_former(once, works) == works
    assert with_former(works, starting) == starting
    plain = ended(works, 7, 5000)
    assert (plain.state, plain.why, plain.since_ms) == (
        "failing",
        "its connector has ended by itself (code 7), and is started again",
        5000,
    )
    assert ended(plain, 7, 6000) == plain


def test_a_process_that_says_nothing_is_told_of_before_it_is_killed() -> None:
    works = ConnectorStatus(element="e", state="connected", since_ms=1000)
    assert silent(works, QUIET_MS - 1, 9000) == works
    told = silent(works, QUIET_MS, 9000)
    assert (told.state, told.why, told.since_ms) == (
        "failing",
        "its connector has sent no report for 8 s",
        9000,
    )
    assert QUIET_MS < SILENT_MS
    fails = works.model_copy(update={"state": "failing", "why": "Nobody listens."})
    assert silent(fails, QUIET_MS, 9000) == fails
