"""Finds what a person should know about a replica's report. Pure: compares it with the report before it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pipeline_runtime.model.desired import ReplicaStatus
from pipeline_runtime.model.names import sentence


@dataclass(frozen=True)
class Notice:
    """Something that a person should know."""

    kind: str
    severity: str
    message: str


def notices(
    before: ReplicaStatus | None, now: ReplicaStatus, name: Callable[[], str], node: str
) -> list[Notice]:
    """Returns what is new in `now`, so that it is told once and not at each heartbeat.

    `name()` is what people call the group. It is looked up only if there is something to tell.
    """
    found = []
    old_error = before.error if before is not None else None
    if now.error is not None and (old_error is None or old_error.at_ms != now.error.at_ms):
        text = f"{name()} on {node}: {sentence(now.error.message)} {now.error.safe} {now.error.next}"
        if now.phase == "fenced":  # another owner took over, so nothing is broken
            found.append(Notice("replica.fenced", "warning", text))
        else:
            found.append(Notice("element.failed", "error", text))
    refused_before = before is not None and before.order_refused == now.order_refused
    if now.order_refused is not None and not refused_before:
        found.append(
            Notice(
                "order.refused",
                "warning",
                f"{node} was not allowed to take over {name()}: {now.order_refused} Nothing was "
                "written twice.",
            )
        )
    if now.dead_letters_total > 0 and (before is None or before.dead_letters_total == 0):
        found.append(
            Notice(
                "element.dead_letters",
                "warning",
                f"Records of {name()} go to dead letters. The rest is processed. Look there for the reasons.",
            )
        )
    told = {(note.at_ms, note.message) for note in (before.notes if before is not None else ())}
    found += [
        Notice(note.kind, "warning", f"{name()} on {node}: {note.message} It goes on.")
        for note in now.notes
        if (note.at_ms, note.message) not in told
    ]
    return found
