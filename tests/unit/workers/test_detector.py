"""When a silent node counts as down, and when nobody can tell."""

from __future__ import annotations

import pytest

from workers.control.detector import Sighting, Verdict, judge

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
        ("Redis back long enough", {"a": 1, "b": NOW}, NOW - 10_001, Verdict(down=("a",))),
    ],
)
def test_verdict(law: str, seen: dict[str, int], hearing_since_ms: int | None, verdict: Verdict) -> None:
    up = [Sighting(node, at) for node, at in seen.items()]
    assert judge(up, NOW, SILENCE, hearing_since_ms) == verdict
