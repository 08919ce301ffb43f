"""Finds what a person should know about a connector that fails. Pure: compares what its node reports with
what people were told last.

    it works --fails for FAILS_MS--> told that it fails --works for WORKS_MS--> told that it works again
                                          ^------------------fails once more------------------'

A connector may fail and work in turn. When it has failed OFTEN times, it has to work for STEADY_MS until
people are told that it works again. So they are told at most 2 * OFTEN things of it within STEADY_MS.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from pipeline_runtime.model.connectors import ConnectorStatus
from pipeline_runtime.model.names import sentence
from workers.control.reports.notices import Notice

FAILS_MS = 10_000
"""A connector that fails for less is not told of: its system may only be slow to answer."""
WORKS_MS = 8_000
"""Longer than a connector that hangs counts as one that works: sdk.TELL_S."""
OFTEN = 3
STEADY_MS = 300_000


@dataclass(frozen=True)
class Trouble:
    """What people were told last of a connector that has failed."""

    why: str
    """a sentence"""
    since: datetime
    """when they were told that it fails, by control's clock"""
    over: bool = False
    """they were told that it works again"""
    times: int = 1
    """how often they were told that it fails, since it last worked for STEADY_MS"""


def trouble_after(
    told: Trouble | None, said: ConnectorStatus, lasts_ms: int, now: datetime
) -> Trouble | None:
    """Returns what people know when they are told of this report, or None if they need to know nothing.
    `lasts_ms`: for how long the connector has been in its state, by its node's clock."""
    if said.state == "failing" and lasts_ms >= FAILS_MS and (told is None or told.over):
        times = 1 if told is None else told.times + 1
        return Trouble(sentence(said.trouble), now, times=times)
    if said.state == "connected" and told is not None:
        if told.over:
            return None if lasts_ms >= STEADY_MS else told
        if lasts_ms >= (WORKS_MS if told.times < OFTEN else STEADY_MS):
            return replace(told, over=True)
    return told


def trouble_notice(before: Trouble | None, after: Trouble | None, name: str, node: str) -> Notice | None:
    """Returns what to tell when `before` has become `after`. `name`: what people call the element."""
    if after is None or after == before:
        return None
    if after.over:
        since = f"{after.since:%-d %B, %H:%M:%S} UTC"
        return Notice(
            "connector.works",
            "info",
            f"The connector of {name} works again on {node}. It has failed since {since}.",
        )
    often = ""
    if after.times >= OFTEN:
        minutes = timedelta(milliseconds=STEADY_MS) // timedelta(minutes=1)
        often = (
            f" It has failed {after.times} times. From now on, it has to work for {minutes} minutes until "
            "Fogline says that it works again."
        )
    return Notice(
        "connector.failing", "warning", f"The connector of {name} fails on {node}: {after.why}{often}"
    )
