"""Tests the states of an alarm, for events in any order."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given, strategies as st

from webapp.alarms.state import (
    SEVERITIES,
    Acknowledge,
    Change,
    Clear,
    Happening,
    Raise,
    Silence,
    State,
    is_silent,
    status_of,
    taken,
)

START = datetime(2026, 11, 29, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def raised(at: datetime = START, severity: str = "warning") -> Raise:
    return Raise(at, severity, "hot")  # type: ignore[arg-type]


def after(*happenings: Happening) -> tuple[State | None, list[Change]]:
    state, changes = None, []
    for happening in happenings:
        state, change = taken(state, happening)
        changes += [] if change is None else [change]
    return state, changes


kinds = st.one_of(
    st.sampled_from(SEVERITIES).map(lambda severity: ("raise", severity)),
    st.just(("clear", "")),
    st.just(("acknowledge", "")),
    st.integers(-2, 5).map(lambda s: ("silence", s)),
    st.just(("unsilence", "")),
)


def _happening(kind: str, what: object, at: datetime) -> Happening:
    match kind:
        case "raise":
            return raised(at, str(what))
        case "clear":
            return Clear(at)
        case "acknowledge":
            return Acknowledge(at, "ann")
        case "silence":
            return Silence(at, "ann", until=at + int(str(what)) * SECOND)
    return Silence(at, "ann")


@given(st.lists(kinds, max_size=30))
def test_each_alarm_is_raised_once_and_cleared_once(found: list[tuple[str, object]]) -> None:
    happenings = [_happening(kind, what, START + n * SECOND) for n, (kind, what) in enumerate(found)]
    state, changes = after(*happenings)
    begins = [change.kind for change in changes if change.kind in ("raised", "cleared")]
    assert begins == ["raised" if n % 2 == 0 else "cleared" for n in range(len(begins))]
    assert (state is not None and state.cleared_at is None) == (len(begins) % 2 == 1)
    # Nothing is done with an alarm that is not open.
    is_open = False
    for change in changes:
        assert is_open or change.kind == "raised"
        is_open = change.kind != "cleared"
    if state is not None:
        raises = [each for each in happenings if isinstance(each, Raise) and each.at >= state.raised_at]
        assert state.count == len(raises)


@given(st.lists(kinds, max_size=20), kinds)
def test_the_same_again_tells_nobody_again(found: list[tuple[str, object]], last: tuple[str, object]) -> None:
    state, _ = after(*(_happening(kind, what, START + n * SECOND) for n, (kind, what) in enumerate(found)))
    again = _happening(*last, START + 60 * SECOND)
    state, _ = taken(state, again)
    next, change = taken(state, again)
    assert change is None or change.kind == "silenced"
    if not isinstance(again, Raise):
        assert next == state


def test_who_acknowledged_it_is_told_when_it_gets_worse() -> None:
    state, changes = after(raised(), Acknowledge(START, "ann"), raised(), raised(severity="critical"))
    assert state is not None
    assert [change.kind for change in changes] == ["raised", "acknowledged", "worse"]
    assert (status_of(state, START), state.severity, state.count) == ("raised", "critical", 3)
    state, change = taken(state, raised(severity="info"))
    assert state is not None
    assert (state.severity, change) == ("critical", None)


def test_what_gets_worse_than_a_person_knew_is_told_in_spite_of_a_silence() -> None:
    silence = Silence(START, "ann", "we know", START + 60 * SECOND)
    later = START + 2 * SECOND
    state, changes = after(raised(), silence, raised(later, "critical"))
    assert state is not None
    assert [change.kind for change in changes] == ["raised", "silenced", "worse"]
    assert (status_of(state, later), state.silenced_until, state.silenced_by) == ("raised", None, "")
    # Also when it was cleared meanwhile, and is worse at once or later.
    cleared = Clear(START + SECOND)
    state, _ = after(raised(), silence, cleared, raised(later, "critical"))
    assert state is not None
    assert status_of(state, later) == "raised"
    for next, status in (("warning", "silenced"), ("critical", "raised")):
        state, changes = after(raised(), silence, cleared, raised(later, "info"), raised(later, next))
        assert state is not None
        assert (changes[-1].kind, status_of(state, later)) == ("worse", status)
    # Silenced once more, now that it is worse: who did that knows it.
    again = Silence(later, "bob", "on it", START + 60 * SECOND)
    state, _ = after(
        raised(), silence, raised(later, "critical"), again, Clear(later), raised(later, "critical")
    )
    assert state is not None
    assert (status_of(state, later), state.silenced_by) == ("silenced", "bob")


def test_a_silence_outlasts_the_alarm_and_ends_by_its_time() -> None:
    silence = Silence(START, "ann", "we know", START + 60 * SECOND)
    state, _ = after(raised(), silence, Clear(START + SECOND), raised(START + 2 * SECOND))
    assert state is not None
    assert (state.raised_at, state.note, state.silenced_by) == (START + 2 * SECOND, "we know", "ann")
    assert status_of(state, START + 59 * SECOND) == "silenced"
    assert status_of(state, START + 60 * SECOND) == "raised"
    state, _ = after(raised(), silence, Clear(START + SECOND), raised(START + 61 * SECOND))
    assert state is not None
    assert state.silenced_until is None
    state, _ = after(raised(), silence, Silence(START + SECOND, "bob"))
    assert state is not None
    assert not is_silent(state, START + SECOND)
