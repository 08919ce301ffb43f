"""An operation's next step: phase x what nodes and Kafka answer -> one step."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, strategies as st

from tests.unit.workers.operations import (
    AWAY,
    DEADLINE,
    EDGE_A,
    FAILING,
    LATER,
    MADE,
    NOWHERE,
    OWNS,
    REFUSAL,
    REFUSED,
    SILENT,
    STARTING,
    T0,
    WAITING,
    deploy,
    deploying,
    enters,
    running,
    undeploy,
    undeploying,
    upgrade,
)
from workers.control.operations.limits import ASK_AGAIN_MS, ERROR_MS_MAX, HEARD_MS, LIMIT_MS
from workers.control.operations.model import (
    Answer,
    CountUndelivered,
    CreateTopics,
    DeleteTopics,
    Done,
    Enter,
    Fail,
    GiveUp,
    GroupSeen,
    NoteUndelivered,
    Observed,
    OrderAgain,
    OrderOwners,
    Progress,
    ReadPositions,
    Step,
    Wait,
)
from workers.control.operations.phases import DONE_AFTER, NEXT, Kind, OperationPhase as P
from workers.control.operations.steps import (
    ORDERS_MAX,
    UNDEPLOYED_BEFORE,
    UNDEPLOYED_BEFORE_UPGRADE,
    failing_since,
    next_step,
)

# --- deploy


@pytest.mark.parametrize(
    ("progress", "seen", "step"),
    [
        (deploy(P.PENDING), deploying(), enters(P.VALIDATE)),
        (deploy(P.VALIDATE), deploying(), enters(P.PLACE)),
        (deploy(P.PLACE), deploying(placement={"power": EDGE_A}), enters(P.TOPICS)),
        (deploy(P.TOPICS), deploying(), CreateTopics()),
        (deploy(P.TOPICS), deploying(kafka=MADE), enters(P.START)),
        (
            deploy(P.START),
            deploying(placement={"power": EDGE_A}),
            OrderOwners({"power": EDGE_A}, T0 + LIMIT_MS[P.RUN]),
        ),
        (deploy(P.RUN), deploying(OWNS), Done()),
        (deploy(P.RUN), deploying(), Done()),
        (deploy(P.STOP, error="No."), deploying(), Enter(P.DELETE, T0)),
        (deploy(P.DELETE, error="No."), deploying(), DeleteTopics()),
        (deploy(P.DELETE, error="No."), deploying(kafka=MADE), Fail("No.")),
    ],
)
def test_a_deployment_goes_on_as_soon_as_it_can(progress: Progress, seen: Observed, step: Step) -> None:
    assert next_step(replace(progress, deadline_ms=T0) if progress.error else progress, seen, T0) == step


@pytest.mark.parametrize("phase", [P.PLACE, P.START])
def test_nodes_that_are_starting_are_waited_for_until_the_deadline(phase: P) -> None:
    seen = deploying(placement=LATER)
    waits = next_step(deploy(phase), seen, DEADLINE - 1)
    assert waits == Wait("a node for each element: Power: edge-a does not answer")
    ends = next_step(deploy(phase), seen, DEADLINE)
    assert isinstance(ends, Fail if phase is P.PLACE else GiveUp)
    assert ends.message == "There is no node for some elements: Power: edge-a does not answer."


@pytest.mark.parametrize("phase", [P.PLACE, P.START])
def test_a_cordon_is_not_waited_for(phase: P) -> None:
    ends = next_step(deploy(phase), deploying(placement=NOWHERE), T0)
    assert isinstance(ends, Fail if phase is P.PLACE else GiveUp)
    assert ends.faults == NOWHERE.faults


def test_an_invalid_document_fails_before_anything_is_made() -> None:
    seen = deploying(invalid="1 mistake", faults=({"element": "power"},))
    assert next_step(deploy(P.VALIDATE), seen, T0) == Fail("1 mistake.", seen.faults)
    assert next_step(upgrade(P.PENDING), replace(seen, status="running"), T0) == Fail(
        "1 mistake.", seen.faults
    )


def test_kafka_is_asked_again_until_the_deadline_and_then_named() -> None:
    seen = deploying(kafka=AWAY)
    assert next_step(deploy(P.TOPICS), seen, T0) == Wait(f"Kafka to make the streams: {AWAY.away}")
    assert next_step(deploy(P.TOPICS), seen, T0 + ASK_AGAIN_MS) == CreateTopics()
    ends = next_step(deploy(P.TOPICS), seen, DEADLINE)
    assert isinstance(ends, GiveUp)
    assert ends.message.startswith("Kafka at k:1 does not answer (OSError). See whether it runs")


def test_it_is_asked_once_however_late_that_is() -> None:
    assert next_step(deploy(P.TOPICS), deploying(), DEADLINE + 3_600_000) == CreateTopics()
    assert next_step(undeploy(P.DELETE), undeploying(), DEADLINE + 3_600_000) == DeleteTopics()


def test_a_clock_that_was_set_back_keeps_nobody_from_asking() -> None:
    assert next_step(deploy(P.TOPICS), deploying(kafka=AWAY), T0 - 3_600_000) == CreateTopics()


def test_topics_that_kafka_refuses_fail_the_deployment_at_once() -> None:
    ends = next_step(deploy(P.TOPICS), deploying(kafka=Answer(T0, refused="Kafka did not create x")), T0)
    assert ends == GiveUp("Kafka did not create x.", (), T0 + LIMIT_MS[P.STOP])


def test_one_error_after_another_is_not_one_that_lasts() -> None:
    progress, seen = deploy(P.RUN), deploying(FAILING)
    progress = replace(progress, failing=failing_since(progress, seen, T0))
    assert progress.failing == {"power": T0}
    assert failing_since(progress, seen, T0 + 5) == {"power": T0}
    assert failing_since(progress, deploying(STARTING), T0 + 5) == {}
    assert failing_since(progress, deploying(replace(OWNS, error="a batch failed")), T0 + 5) == {}
    assert next_step(progress, seen, T0 + ERROR_MS_MAX - 1) == Wait("Power on edge-a: no such file")
    ends = next_step(progress, seen, T0 + ERROR_MS_MAX)
    assert isinstance(ends, GiveUp)
    assert ends.message == "Start of Power failed. On edge-a: no such file."
    [fault] = ends.faults
    assert fault["element"] == "power"
    assert fault["message"] == "On edge-a: no such file"


@pytest.mark.parametrize(
    ("group", "what"),
    [
        (STARTING, "Power on edge-a: it is starting"),
        (replace(STARTING, state=None), "Power on edge-a: it is about to start there"),
        (SILENT, "Power: edge-a does not answer"),
    ],
)
def test_owners_are_waited_for_until_the_deadline_and_the_late_ones_are_named(
    group: GroupSeen, what: str
) -> None:
    other = replace(OWNS, group="saved", title="Saved")
    assert next_step(deploy(P.RUN), deploying(group, other), DEADLINE - 1) == Wait(what)
    ends = next_step(deploy(P.RUN), deploying(group, other), DEADLINE)
    assert isinstance(ends, GiveUp)
    assert ends.message == "These did not start in time: Power."
    assert [fault["title"] for fault in ends.faults] == ["Power"]


# --- deadlines, and who was not heard


@pytest.mark.parametrize(
    ("progress", "seen"),
    [
        (deploy(P.PLACE), deploying(placement=LATER)),
        (deploy(P.START), deploying(placement=LATER)),
        (deploy(P.RUN), deploying(STARTING)),
        (deploy(P.RUN, failing={"power": T0}), deploying(FAILING)),
        (deploy(P.STOP, error="No."), deploying(running=("Power on edge-a",))),
        (upgrade(P.ORDER, "power"), running(replace(OWNS, moving=True))),
        (upgrade(P.OWN, "power"), running(STARTING)),
        (upgrade(P.OWN, "power", failing={"power": T0}), running(FAILING)),
        (undeploy(P.SETTLE), undeploying(unsettled=("Power is being moved",))),
        (undeploy(P.RETIRE), undeploying(OWNS)),
        (undeploy(P.STOP), undeploying(running=("Power on edge-a",))),
    ],
)
def test_nothing_is_concluded_before_nodes_were_heard_for_a_while(progress: Progress, seen: Observed) -> None:
    back_ms = DEADLINE + 3_600_000  # control was away for an hour
    waits = next_step(progress, replace(seen, heard_since_ms=None), back_ms)
    assert isinstance(waits, Wait)
    assert "Redis is away" in waits.for_what
    heard = replace(seen, heard_since_ms=back_ms)
    # an error that is shown needs no time to come up
    heard_ms = ERROR_MS_MAX if progress.failing else min(HEARD_MS, LIMIT_MS[progress.phase])
    assert isinstance(next_step(progress, heard, back_ms + heard_ms - 1), Wait)
    assert not isinstance(next_step(progress, heard, back_ms + heard_ms), Wait)


@pytest.mark.parametrize(
    ("progress", "seen", "step"),
    [
        (deploy(P.RUN, failing={"power": T0}), deploying(OWNS), Done()),
        (undeploy(P.RETIRE), undeploying(replace(OWNS, retired=True)), P.STOP),
        (upgrade(P.OWN, "power"), running(OWNS), P.ORDER),
    ],
)
def test_what_came_while_control_was_away_counts_however_late_it_is(
    progress: Progress, seen: Observed, step: Step | P
) -> None:
    now_ms = DEADLINE + 3_600_000
    expected = enters(step, now_ms) if isinstance(step, P) else step
    assert next_step(progress, replace(seen, heard_since_ms=now_ms), now_ms) == expected


# --- undeploy


@pytest.mark.parametrize(
    ("progress", "seen", "step"),
    [
        (undeploy(P.PENDING), undeploying(), enters(P.SETTLE)),
        (undeploy(P.SETTLE), undeploying(), enters(P.RETIRE)),
        (undeploy(P.SETTLE), undeploying(unsettled=("x",)), Wait("x")),
        (undeploy(P.RETIRE), undeploying(), enters(P.STOP)),
        (undeploy(P.RETIRE), undeploying(OWNS), Wait("Power on edge-a to end")),
        (undeploy(P.STOP), undeploying(), enters(P.DELETE)),
        (undeploy(P.STOP), undeploying(running=("Power on edge-a",)), Wait("Power on edge-a to stop")),
        (undeploy(P.DELETE), undeploying(), DeleteTopics()),
        (undeploy(P.DELETE), undeploying(kafka=MADE), Done()),
        (
            undeploy(P.DELETE),
            undeploying(kafka=REFUSAL),
            Wait(f"Kafka to delete the streams: {REFUSAL.refused}"),
        ),
    ],
)
def test_an_undeployment_goes_on_as_soon_as_it_can(progress: Progress, seen: Observed, step: Step) -> None:
    assert next_step(progress, seen, T0) == step


@pytest.mark.parametrize(
    "hopeless", [SILENT, FAILING, replace(OWNS, retired=True), replace(OWNS, wanted=False)]
)
def test_who_cannot_confirm_its_end_is_not_waited_for(hopeless: GroupSeen) -> None:
    assert next_step(undeploy(P.RETIRE), undeploying(hopeless), T0) == enters(P.STOP)


@pytest.mark.parametrize("answer", [AWAY, REFUSAL])
def test_topics_that_cannot_be_deleted_are_named_at_the_end(answer: Answer) -> None:
    seen = undeploying(kafka=answer)
    assert next_step(undeploy(P.DELETE), seen, T0 + ASK_AGAIN_MS) == DeleteTopics()
    ends = next_step(undeploy(P.DELETE), seen, DEADLINE)
    assert isinstance(ends, Done)
    assert (answer.refused or answer.away) in ends.left_over
    assert "Delete them in Kafka" in ends.left_over


def test_a_failed_deployment_asks_once_for_the_end_of_its_topics() -> None:
    progress = replace(deploy(P.DELETE, error="No."), deadline_ms=T0)
    assert next_step(progress, deploying(kafka=AWAY), T0) == Fail("No.")


# --- undeployed in between


@pytest.mark.parametrize("phase", [p for p in P if p not in (P.ORDER, P.OWN, P.SETTLE, P.RETIRE, P.DELIVER)])
def test_a_deployment_that_is_undeployed_meanwhile_just_ends(phase: P) -> None:
    ends = next_step(deploy(phase), undeploying(STARTING, kafka=AWAY, placement=NOWHERE), DEADLINE)
    assert ends == Fail(UNDEPLOYED_BEFORE, overtaken=True)


@pytest.mark.parametrize("phase", [P.PENDING, P.ORDER, P.OWN])
def test_an_upgrade_that_is_undeployed_meanwhile_just_ends(phase: P) -> None:
    ends = next_step(upgrade(phase, "power"), undeploying(REFUSED), DEADLINE)
    assert ends == Fail(UNDEPLOYED_BEFORE_UPGRADE, overtaken=True)


# --- it never gets stuck

PHASES: dict[Kind, list[P]] = {
    "deploy": [P.PENDING, P.VALIDATE, P.PLACE, P.TOPICS, P.START, P.RUN, P.STOP, P.DELETE],
    "upgrade": [P.PENDING, P.SETTLE, P.READ, P.RETIRE, P.DELIVER, P.ORDER, P.OWN],
    "undeploy": [P.PENDING, P.SETTLE, P.READ, P.RETIRE, P.DELIVER, P.STOP, P.DELETE],
}
STATUS = {"deploy": "deploying", "upgrade": "running", "undeploy": "undeploying"}
GROUPS = ("power", "saved")
SAID = [STARTING, OWNS, FAILING, REFUSED, SILENT, replace(OWNS, moving=True)]


@st.composite
def progresses(draw: st.DrawFn) -> Progress:
    kind = draw(st.sampled_from(list(PHASES)))
    phase = draw(st.sampled_from(PHASES[kind]))
    clears_away = kind == "deploy" and phase in (P.STOP, P.DELETE)
    return Progress(
        kind,
        phase,
        draw(st.integers(T0 - 10**6, T0 + 180_000)) if phase in LIMIT_MS else None,
        error="No." if clears_away else "",
        groups=tuple(draw(st.lists(st.sampled_from(GROUPS), unique=True))) if kind == "upgrade" else (),
        asks=kind == "upgrade" and draw(st.booleans()),
        orders=draw(st.integers(0, ORDERS_MAX)),
        failing=draw(st.dictionaries(st.sampled_from(GROUPS), st.integers(T0 - 10**6, T0))),
        delivers=phase is P.DELIVER or (phase in (P.RETIRE, P.STOP) and draw(st.booleans())),
        later=tuple(draw(st.lists(st.sampled_from(GROUPS), unique=True))) if kind == "undeploy" else (),
        hurries=kind == "undeploy" and draw(st.booleans()),
    )


def hostile(status: str, asked: bool) -> Observed:
    """Nothing that is waited for ever comes, and nothing fails either."""
    return Observed(
        status,
        placement=LATER if status == "deploying" else {},
        kafka=AWAY if asked else None,
        groups=tuple(replace(STARTING, group=group, title=group, moving=False) for group in GROUPS),
        unsettled=("power is being moved",),
        running=("power on edge-a",),
    )


def world(chance: Random, status: str, asked: bool) -> Observed:
    """All that nodes and Kafka may say at a moment, but for Redis being away for ever."""
    answers = [MADE, AWAY, REFUSAL, WAITING]
    return Observed(
        status,
        heard_since_ms=chance.choice([0, T0]),
        invalid=chance.choice([None, None, "1 mistake"]),
        placement=chance.choice([{"power": EDGE_A}, LATER, NOWHERE]),
        kafka=chance.choice(answers) if asked else None,
        groups=tuple(replace(chance.choice(SAID), group=group, title=group) for group in GROUPS),
        unsettled=chance.choice([(), ("power is being moved",)]),
        running=chance.choice([(), ("power on edge-a",)]),
    )


def carried_out(progress: Progress, step: Step) -> Progress:
    """What the driver persists."""
    match step:
        case Enter(phase, deadline_ms):
            left = progress.groups[1:] if progress.phase is P.OWN else progress.groups
            if progress.phase is P.PENDING and progress.kind == "upgrade":
                left = GROUPS
            later = progress.later[1:] if phase is P.RETIRE else progress.later
            progress = replace(progress, groups=left, later=later, orders=1, failing={})
            return replace(progress, phase=phase, deadline_ms=deadline_ms)
        case OrderOwners(_, deadline_ms):
            return replace(progress, phase=P.RUN, deadline_ms=deadline_ms, failing={})
        case OrderAgain():
            return replace(progress, orders=progress.orders + 1)
        case NoteUndelivered(found, deadline_ms):
            return replace(progress, undelivered=found, deadline_ms=deadline_ms)
        case GiveUp(message, _, deadline_ms):
            return replace(progress, phase=P.STOP, deadline_ms=deadline_ms, error=message, failing={})
        case _:
            return progress


@given(progresses(), st.integers(0, 10**9), st.booleans())
def test_from_any_state_an_end_is_reached_whatever_is_answered(
    progress: Progress, seed: int, nothing_comes: bool
) -> None:
    """Time passes, and what nodes and Kafka say may change at each look, or never: it ends within the sum of
    its phases' times, in a way that says why."""
    chance, now_ms, asked = Random(seed), T0, False
    while now_ms < T0 + 2 * sum(LIMIT_MS.values()):
        status = STATUS[progress.kind]
        seen = hostile(status, asked) if nothing_comes else world(chance, status, asked)
        progress = replace(progress, failing=failing_since(progress, seen, now_ms))
        step = next_step(progress, seen, now_ms)
        match step:
            case Done():
                return
            case Fail(message):
                assert message
                return
            case Wait(for_what):
                assert for_what, "the user is told what it waits for"
            case CreateTopics() | DeleteTopics() | ReadPositions() | CountUndelivered():
                asked = True
            case NoteUndelivered():
                progress = carried_out(progress, step)
            case _:
                asked, progress = False, carried_out(progress, step)
        now_ms += chance.choice([100, 1_000, 30_000])
    raise AssertionError(f"still in {progress}")


UPGRADES = [
    P.PENDING,
    P.PLACE,
    P.TOPICS,
    P.SETTLE,
    P.READ,
    P.RETIRE,
    P.DELIVER,
    P.STOP,
    P.ORDER,
    P.OWN,
    P.START,
    P.RUN,
    P.DELETE,
]


def test_each_phase_is_entered_where_the_table_says_and_everywhere_it_says() -> None:
    """What is decided at each phase, whatever is to do and whatever is answered."""
    chance, entered = Random(41), set[tuple[Kind, P, P]]()
    done_after: dict[Kind, set[P]] = {kind: set() for kind in NEXT}
    for _ in range(10_000):
        kind = chance.choice([*NEXT])
        phase = chance.choice(UPGRADES if kind == "upgrade" else PHASES[kind])
        progress = Progress(kind, phase, T0, error="No." if kind == "deploy" and phase is P.STOP else "")
        if kind != "deploy":
            delivers = phase is P.DELIVER or (phase in (P.RETIRE, P.STOP) and chance.random() < 0.5)
            later = phase in (P.SETTLE, P.READ, P.RETIRE) and chance.random() < 0.5
            progress = replace(progress, delivers=delivers, later=("power",) if later else ())
        if kind == "upgrade":
            progress = to_do(chance, progress)
        seen = replace(world(chance, STATUS[kind], asked=True), new_topics=chance.random() < 0.5)
        step = next_step(progress, seen, T0 + 1)
        if isinstance(step, Done):
            done_after[kind].add(phase)
        elif (following := carried_out(progress, step).phase) is not phase:
            entered.add((kind, phase, following))
    assert entered == {
        (kind, before, after) for kind in NEXT for before in NEXT[kind] for after in NEXT[kind][before]
    }
    assert done_after == {kind: set(phases) for kind, phases in DONE_AFTER.items()}


def to_do(chance: Random, progress: Progress) -> Progress:
    """What an upgrade may still have to do in its phase."""

    def some(now: bool) -> tuple[str, ...]:
        return ("power",) if now or chance.random() < 0.5 else ()

    phase = progress.phase
    return replace(
        progress,
        added=some(phase in (P.PLACE, P.START)) if phase is not P.RUN else (),
        removed=some(phase in (P.SETTLE, P.READ, P.RETIRE, P.DELIVER)),
        later=some(now=False),
        groups=some(phase is P.OWN),
        asks=phase in (P.SETTLE, P.READ) and chance.random() < 0.5,
        obsolete=chance.random() < 0.5,
    )


def test_of_many_that_are_waited_for_some_are_named() -> None:
    many = [replace(STARTING, group=f"g{n}", title=f"G{n}") for n in range(5)]
    waits = next_step(deploy(P.RUN), deploying(*many), T0)
    assert isinstance(waits, Wait)
    assert waits.for_what.startswith("G0 on edge-a: it is starting; G1")
    assert waits.for_what.endswith("; and 2 more")
