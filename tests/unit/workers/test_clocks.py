"""When a node's clock is told to be wrong, and when no longer."""

from __future__ import annotations

import pytest

from workers.control.reports.clocks import Clocks

NOW = 1_000_000


def told(*late_ms: int) -> list[str]:
    """After each report, that was made so long before it was heard."""
    clocks = Clocks()
    after_each = (clocks.alerts("edge-a", NOW - late, NOW) for late in late_ms)
    return [
        "behind" if "behind Redis" in "".join(alerts) else "ahead" if alerts else "" for alerts in after_each
    ]


@pytest.mark.parametrize(
    ("law", "late_ms", "expected"),
    [
        ("a right clock", [5, 100, 900, 5], ["", "", "", ""]),
        ("behind", [6000, 6100, 6000], ["", "", "behind"]),
        ("ahead", [-6000, -5900, -6000], ["", "", "ahead"]),
        ("late reports of a right clock", [9000, 8000, 10, 9000, 8000], [""] * 5),
        ("late reports of a clock that is ahead", [-6000, 3000, 3000], ["", "", "ahead"]),
        ("right again", [-6000] * 3 + [10] * 3, ["", "", "ahead", "ahead", "ahead", ""]),
        ("just about there: told once", [-5001] * 3 + [-4500] * 3, ["", "", *["ahead"] * 4]),
        ("just about there: not told", [-4500] * 4, [""] * 4),
    ],
)
def test_law(law: str, late_ms: list[int], expected: list[str]) -> None:
    assert told(*late_ms) == expected


def test_each_node_has_its_own_clock_and_the_text_does_not_change_while_it_lasts() -> None:
    clocks = Clocks()
    texts = {clocks.alerts("edge-a", NOW - late, NOW) for late in (7000, 8000, 9000, 10_000, 90_000)}
    assert len(texts) == 2, "none, and one"
    assert clocks.alerts("edge-b", NOW, NOW) == ()


@pytest.mark.parametrize(("late_ms", "stays"), [(-4500, True), (10, False)])
def test_what_was_told_before_a_start_stays_until_enough_is_known(late_ms: int, stays: bool) -> None:
    earlier, clocks = Clocks(), Clocks()
    [*_, told] = [earlier.alerts("edge-a", NOW + 6000, NOW) for _ in range(3)]
    after = [clocks.alerts("edge-a", NOW - late_ms, NOW, [*told, "The disk is full."]) for _ in range(3)]
    assert after == [told, told, told if stays else ()]
