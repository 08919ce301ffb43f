"""Which losses of numbered rows are explained by the gaps that were told. Pure, apart from `gaps`."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from datetime import datetime

import httpx

from pipeline_runtime.connectors.polls import TOLD_EVERY_S
from tests.integration.pipelines.driving import API

SLACK_S = 10.0
"""How much later than its end a gap may be told, and how long what was lost at its begin may have been under
way."""
Span = tuple[float, float]
"""From when to when, in s since 1970."""


def gaps(client: httpx.Client, pipeline: str, id: str, every_s: float = 0.0) -> list[Span]:
    """Returns from when to when the gaps of the element were, as they were told. `every_s`: how often it
    polls."""
    asked = {"kind": "connector", "pipeline": pipeline, "limit": 1000}
    events = client.get(f"{API}/events", params=asked).raise_for_status().json()
    told = [each for each in events if f"A gap in {id}: " in each["message"]]
    return [
        gap_told(each["message"], datetime.fromisoformat(each["at"]).timestamp(), every_s) for each in told
    ]


def gap_told(message: str, at_s: float, every_s: float = 0.0) -> Span:
    """Returns from when to when a gap was that was told at a time. One whose length is not told was just
    before."""
    length, polls = re.search(r"(\d+\.\d) s", message), re.search(r": (\d+) polls", message)
    if length is not None:
        return at_s - float(length[1]), at_s
    # Polls are missed one here and one there, and are told of together.
    return at_s - (0.0 if polls is None else int(polls[1]) * every_s + TOLD_EVERY_S), at_s


def missing_runs(sent: Sequence[int], found: Container[int]) -> list[tuple[int, int]]:
    """Returns the first and the last of each run of numbers that were sent and not found."""
    missing = [(place, number) for place, number in enumerate(sent) if number not in found]
    runs: list[list[tuple[int, int]]] = []
    for each in missing:
        if runs and runs[-1][-1][0] == each[0] - 1:
            runs[-1].append(each)
        else:
            runs.append([each])
    return [(run[0][1], run[-1][1]) for run in runs]


def unexplained(lost: Sequence[Span], gaps: Sequence[Span]) -> list[Span]:
    """Returns the times of losses that lie in no gap."""
    return [
        (first, last)
        for first, last in lost
        if not any(begin - SLACK_S <= first and last <= end + SLACK_S for begin, end in gaps)
    ]
