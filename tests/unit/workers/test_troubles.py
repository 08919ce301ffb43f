"""When people are told that a connector fails, and that it works again."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

from hypothesis import given, strategies as st

from pipeline_runtime.model.connectors import ConnectorStatus
from workers.control.reports.troubles import (
    FAILS_MS,
    OFTEN,
    STEADY_MS,
    WORKS_MS,
    Trouble,
    trouble_after,
    trouble_notice,
)

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
FAILING = ConnectorStatus(element="e", state="failing", why="Nobody listens. It is tried again within 5 s.")
CONNECTED = ConnectorStatus(element="e", state="connected")
STARTING = ConnectorStatus(element="e")


def test_it_is_told_when_it_has_failed_or_worked_for_some_seconds() -> None:
    assert trouble_after(None, CONNECTED, 10_000, NOW) is None
    assert trouble_after(None, FAILING, FAILS_MS - 1, NOW) is None
    fails = trouble_after(None, FAILING, FAILS_MS, NOW)
    assert fails == Trouble("Nobody listens.", NOW)
    for unknown in (STARTING, CONNECTED):
        assert trouble_after(fails, unknown, WORKS_MS - 1, NOW) == fails
    assert trouble_after(fails, STARTING, STEADY_MS, NOW) == fails
    works = trouble_after(fails, CONNECTED, WORKS_MS, NOW)
    assert works == Trouble("Nobody listens.", NOW, over=True)
    assert trouble_after(works, CONNECTED, STEADY_MS - 1, NOW) == works
    assert trouble_after(works, CONNECTED, STEADY_MS, NOW) is None


def test_one_that_fails_often_has_to_work_for_long() -> None:
    fails: Trouble | None = Trouble("Nobody listens.", NOW, over=True, times=OFTEN - 1)
    after = trouble_after(fails, FAILING, FAILS_MS, NOW)
    assert after is not None
    assert (after.over, after.times) == (False, OFTEN)
    notice = trouble_notice(fails, after, "Press", "edge-a")
    assert notice is not None
    assert notice.message == (
        "The connector of Press fails on edge-a: Nobody listens. It has failed 3 times. From now on, it has "
        "to work for 5 minutes until Fogline says that it works again."
    )
    assert trouble_after(after, CONNECTED, STEADY_MS - 1, NOW) == after
    over = trouble_after(after, CONNECTED, STEADY_MS, NOW)
    assert over is not None
    assert over.over


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 400)), max_size=300))
def test_one_that_flaps_makes_no_flood(turns: list[tuple[bool, int]]) -> None:
    """`turns`: whether it fails, and for how many seconds."""
    told, now, kinds, at = None, NOW, Counter[str](), list[datetime]()
    for fails, lasts_s in turns:
        for second in range(0, lasts_s, 2):
            before, said = told, FAILING if fails else CONNECTED
            told = trouble_after(told, said, second * 1000, now + timedelta(seconds=second))
            notice = trouble_notice(before, told, "Press", "edge-a")
            if notice is not None:
                kinds[notice.kind] += 1
                at.append(now + timedelta(seconds=second))
        now += timedelta(seconds=lasts_s)
    assert 0 <= kinds["connector.failing"] - kinds["connector.works"] <= 1, "each end follows a begin"
    assert all(later - at[n] >= timedelta(milliseconds=STEADY_MS) for n, later in enumerate(at[2 * OFTEN :]))
