"""When a silent node counts as down, and when nobody can tell."""

from __future__ import annotations

import pytest

from workers.control.detector import UNHEARD_MS, Sighting, Verdict, judge

NOW = 100_000
SILENCE = 10_000
LONG_AGO = 0


@pytest.mark.parametrize(
    ("law", "seen", "hearing_since_ms", "verdict"),
    [
        ("nobody is up", {}, LONG_AGO, Verdict()),
        ("all are heard", {"a": NOW - 1000, "b": NOW - 9000}, LONG_AGO, Verdict()),
        ("one is silent", {"a": NOW - 1000, "b": NOW - 10_001}, LONG_AGO, Verdict(down=("b",))),
        ("exactly the limit is not over it", {"a": NOW, "b": NOW - 10_000}, LONG_AGO, Verdict()),
        ("two of three", {"a": 1, "b": 1, "c": NOW}, LONG_AGO, Verdict(down=("a", "b"))),
        ("all at once: blind", {"a": 1, "b": 1}, LONG_AGO, Verdict(blind="all 2 nodes fell silent at once")),
        ("the only one that is up", {"a": 1}, LONG_AGO, Verdict(down=("a",))),
        ("Redis away: blind", {"a": 1, "b": NOW}, None, Verdict(blind="Redis does not answer")),
        ("Redis just back: no verdict", {"a": 1, "b": NOW}, NOW - 5000, Verdict()),
        ("not heard since: more time", {"a": 1, "b": NOW}, NOW - UNHEARD_MS, Verdict()),
        ("not heard since for long", {"a": 1, "b": NOW}, NOW - UNHEARD_MS - 1, Verdict(down=("a",))),
        ("heard since, then silent", {"a": NOW - 10_001, "b": NOW}, NOW - 10_002, Verdict(down=("a",))),
    ],
)
def test_verdict(law: str, seen: dict[str, int], hearing_since_ms: int | None, verdict: Verdict) -> None:
    up = [Sighting(node, at) for node, at in seen.items()]
    assert judge(up, NOW, SILENCE, hearing_since_ms) == verdict


@pytest.mark.parametrize(("deaf_ms", "down"), [(0, ("a",)), (9_999, ("a",)), (10_000, ())])
def test_while_redis_stood_still_nobody_could_be_heard(deaf_ms: int, down: tuple[str, ...]) -> None:
    up = [Sighting("a", NOW - 20_000, deaf_ms), Sighting("b", NOW)]
    assert judge(up, NOW, SILENCE, LONG_AGO) == Verdict(down=down)
