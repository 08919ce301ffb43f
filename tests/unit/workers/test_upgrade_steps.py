"""An upgrade's next step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.workers.operations import (
    AWAY,
    DEADLINE,
    EDGE_A,
    FAILING,
    MADE,
    NOWHERE,
    OWNS,
    REFUSAL,
    REFUSED,
    SILENT,
    T0,
    enters,
    running,
    upgrade,
)
from workers.control.operations.limits import ASK_AGAIN_MS, ERROR_MS_MAX, LIMIT_MS
from workers.control.operations.model import (
    Answer,
    Done,
    Enter,
    Fail,
    GroupSeen,
    Observed,
    OrderAgain,
    OrderOwners,
    Progress,
    ReadPositions,
    Wait,
)
from workers.control.operations.phases import OperationPhase as P
from workers.control.operations.steps import ORDERS_MAX, next_step


def test_each_group_in_turn_then_it_is_done() -> None:
    first, second = replace(OWNS, owns=False), replace(OWNS, group="saved", title="Saved")
    assert next_step(upgrade(P.PENDING, "power", "saved"), running(), T0) == enters(P.ORDER)
    assert next_step(upgrade(P.ORDER, "power", "saved"), running(first, second), T0) == enters(P.OWN)
    assert isinstance(next_step(upgrade(P.OWN, "power", "saved"), running(first, second), T0), Wait)
    assert next_step(upgrade(P.OWN, "saved"), running(first, second), T0) == enters(P.ORDER)
    assert next_step(upgrade(P.ORDER), running(first, second), T0) == Done()


def test_a_group_that_is_moved_is_waited_for() -> None:
    seen = running(replace(OWNS, moving=True))
    assert next_step(upgrade(P.ORDER, "power"), seen, T0) == Wait("the move of Power to end")
    assert isinstance(next_step(upgrade(P.ORDER, "power"), seen, DEADLINE), Fail)
    # Whoever moves it meanwhile does not keep it from owning.
    assert next_step(upgrade(P.OWN, "power"), seen, T0) == enters(P.ORDER)


def test_a_group_without_a_place_fails_the_upgrade() -> None:
    assert isinstance(next_step(upgrade(P.ORDER, "power"), running(), T0), Fail)


def test_a_refused_order_is_given_again_a_few_times() -> None:
    progress = upgrade(P.OWN, "power")
    assert next_step(progress, running(REFUSED), T0) == OrderAgain("power")
    for ends in (
        next_step(replace(progress, orders=ORDERS_MAX), running(REFUSED), T0),
        next_step(progress, running(replace(REFUSED, retired=True)), T0),
    ):
        assert ends == Fail("edge-a was not allowed to own Power: epoch 5 was granted to edge-b.")


def test_an_upgrade_fails_by_an_error_that_lasts_or_by_its_deadline() -> None:
    progress = upgrade(P.OWN, "power", failing={"power": T0})
    assert isinstance(next_step(progress, running(FAILING), T0 + ERROR_MS_MAX - 1), Wait)
    assert next_step(progress, running(FAILING), T0 + ERROR_MS_MAX) == Fail(
        "The new version of Power fails on edge-a: no such file."
    )
    ends = next_step(upgrade(P.OWN, "power"), running(SILENT), DEADLINE)
    assert ends == Fail("The new version of Power did not run within 180 s.")


@pytest.mark.parametrize("phase", [P.ORDER, P.START])
def test_positions_are_asked_for_before_a_group_is_ordered_that_goes_on_from_others(phase: P) -> None:
    progress = upgrade(phase, "power", added=("new",), asks=True)
    seen = running(replace(OWNS, owns=False), placement={"new": EDGE_A})
    known = Answer(T0, starts={"power": {"t-0": 7}})
    ordered = enters(P.OWN) if phase is P.ORDER else OrderOwners({"new": EDGE_A}, T0 + LIMIT_MS[P.RUN])
    assert next_step(progress, seen, T0) == ReadPositions()
    assert next_step(progress, replace(seen, kafka=known), T0) == ordered
    assert next_step(replace(progress, asks=False), seen, T0) == ordered
    for trouble in (AWAY, Answer(T0, unread="Power to read the last rows of filter")):
        waits = replace(seen, kafka=trouble)
        assert next_step(progress, waits, T0) == Wait(trouble.away or trouble.unread)
        assert next_step(progress, waits, T0 + ASK_AGAIN_MS) == ReadPositions()
        assert isinstance(next_step(progress, waits, DEADLINE), Fail)
    unknown = replace(seen, kafka=Answer(T0, refused="It is not known where Power stopped"))
    assert next_step(progress, unknown, T0) == Fail("It is not known where Power stopped.")


def test_one_that_others_go_on_from_has_to_confirm_its_end() -> None:
    progress = upgrade(P.RETIRE, removed=("power",), gives=frozenset({"power"}))
    assert next_step(progress, running(replace(OWNS, retired=True)), T0) == enters(P.STOP)
    for silent in (SILENT, replace(SILENT, error="no such file"), OWNS):
        assert isinstance(next_step(progress, running(silent), T0), Wait)
        ends = next_step(progress, running(silent), DEADLINE)
        assert isinstance(ends, Fail)
        assert "Power on edge-a did not confirm its end" in ends.message
    # Its node can stop it, and has to.
    assert next_step(progress, running(FAILING), T0) == enters(P.STOP)
    progress, seen = replace(progress, phase=P.STOP), running(unconfirmed=("Power on edge-a",))
    assert next_step(progress, seen, T0) == Wait("Power on edge-a to stop")
    assert isinstance(next_step(progress, seen, DEADLINE), Fail)
    assert next_step(progress, running(), T0) == Done()


def test_what_goes_reads_last_rows_before_it_ends() -> None:
    progress = upgrade(P.SETTLE, removed=("power",), asks=True)
    assert next_step(progress, running(unsettled=("the move of Power to end",)), T0) == Wait(
        "the move of Power to end"
    )
    late = next_step(progress, running(unsettled=("the move of Power to end",)), DEADLINE)
    assert late == Fail("It waited too long for the move of Power to end.")
    assert next_step(progress, running(), T0) == enters(P.READ)
    assert next_step(replace(progress, asks=False), running(), T0) == enters(P.RETIRE)
    progress = replace(progress, phase=P.READ)
    assert next_step(progress, running(OWNS), T0) == ReadPositions()
    unread = running(OWNS, kafka=Answer(T0, unread="Power to read the last rows of Numbers"))
    assert next_step(progress, unread, T0) == Wait("Power to read the last rows of Numbers")
    assert next_step(progress, unread, T0 + ASK_AGAIN_MS) == ReadPositions()
    assert isinstance(next_step(progress, unread, DEADLINE), Fail)
    # It may be rewound by that.
    moved = running(OWNS, kafka=MADE, unsettled=("the move of Power to end",))
    assert next_step(progress, moved, T0) == enters(P.SETTLE)
    assert next_step(progress, running(OWNS, kafka=MADE), T0) == enters(P.RETIRE)
    failed = replace(progress, failing={"power": T0 - ERROR_MS_MAX})
    ends = next_step(failed, running(FAILING, kafka=unread.kafka), T0)
    assert ends == Fail("Reading of Power stopped on edge-a: no such file.")


def test_those_that_go_end_one_after_another() -> None:
    progress = upgrade(P.STOP, removed=("numbers",), later=("power",), added=("both",))
    assert next_step(progress, running(), T0) == enters(P.SETTLE)
    assert next_step(replace(progress, later=()), running(), T0) == enters(P.START)


def _phases(progress: Progress, groups: Mapping[str, GroupSeen], *, makes: bool) -> list[P]:
    """Through which an upgrade goes when all that it asks for is there at once."""
    passed: list[P] = []
    while True:
        concerned = {P.RETIRE: progress.removed, P.RUN: progress.added}.get(progress.phase, tuple(groups))
        seen = Observed(
            "running",
            placement={"new": EDGE_A},
            kafka=MADE,
            groups=tuple(groups[group] for group in concerned),
            new_topics=makes,
        )
        match next_step(progress, seen, T0):
            case Enter(phase):
                progress = replace(progress, phase=phase)
            case OrderOwners():
                progress = replace(progress, phase=P.RUN)
            case Done():
                return passed
            case step:
                raise AssertionError(step)
        if passed[-1:] == [P.OWN]:
            progress = replace(progress, groups=progress.groups[1:])
        passed.append(progress.phase)


@pytest.mark.parametrize(
    ("changes", "phases"),
    [
        ({"added": ("new",)}, [P.PLACE, P.TOPICS, P.START, P.RUN]),
        ({"removed": ("old",), "obsolete": True}, [P.SETTLE, P.RETIRE, P.STOP, P.DELETE]),
        ({"groups": ("power",)}, [P.ORDER, P.OWN, P.ORDER]),
        (
            {"added": ("new",), "groups": ("power",), "removed": ("old",), "obsolete": True},
            [
                *(P.PLACE, P.TOPICS, P.SETTLE, P.RETIRE, P.STOP),
                *(P.ORDER, P.OWN, P.ORDER, P.START, P.RUN, P.DELETE),
            ],
        ),
        ({}, []),
    ],
)
def test_an_upgrade_leaves_out_the_phases_that_have_nothing_to_do(
    changes: dict[str, Any], phases: list[P]
) -> None:
    progress = replace(Progress("upgrade", P.PENDING, DEADLINE), **changes)
    retired = replace(OWNS, group="old", retired=True, wanted=False)
    groups = {"power": OWNS, "new": replace(OWNS, group="new"), "old": retired}
    assert _phases(progress, groups, makes="added" in changes) == phases


def test_a_group_that_changes_may_need_a_stream_of_its_own() -> None:
    progress = upgrade(P.PENDING, "power")
    assert next_step(progress, running(new_topics=True), T0) == enters(P.TOPICS)
    made = running(kafka=MADE)
    assert next_step(replace(progress, phase=P.TOPICS), made, T0) == enters(P.ORDER)


@pytest.mark.parametrize(
    ("phase", "seen"),
    [
        (P.PLACE, running(placement=NOWHERE)),
        (P.TOPICS, running(kafka=replace(AWAY, refused="Kafka did not make fl.1.power.out"))),
        (P.START, running(placement=NOWHERE)),
        (P.RUN, running(FAILING)),
    ],
)
def test_what_comes_and_cannot_fails_the_upgrade_and_takes_nothing_down(phase: P, seen: Observed) -> None:
    progress = upgrade(phase, added=("power",), failing={"power": T0 - ERROR_MS_MAX})
    assert isinstance(next_step(progress, seen, T0), Fail)


def test_streams_that_cannot_be_deleted_are_left_over_and_named() -> None:
    progress = upgrade(P.DELETE, obsolete=True)
    assert isinstance(next_step(progress, running(kafka=REFUSAL), T0), Wait)
    ends = next_step(progress, running(kafka=REFUSAL), DEADLINE)
    assert isinstance(ends, Done)
    assert ends.left_over.startswith("Kafka did not delete fl.1.power.out. They are left over")
