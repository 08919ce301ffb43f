"""Decides what a node does next for one connector, from the desired and the actual state. Pure.

    wanted, no process    -> start it; it waits, and costs nothing outside
    it is to run          -> tell it to run
    it must not run, its parameters changed, or its replica owns by a later epoch
                          -> end it in order; it is started again if it is wanted

A connector runs where its group's owner is. In a move the successor's node has its process ready before the
release. When the owner releases, its node ends its own connector and the successor's node runs the other one,
each as soon as it sees it. So there may be a moment with both or with none. Nothing is lost by that: a
system that can wait keeps its rows until they are acknowledged. What an ingester has acknowledged is in Kafka
or on its node's disk, from where a process that only drains takes it to Kafka.

When a group ends for good, its ingesters end first, so that it can read what they have taken in. Its
deliverers go on until control lets go of the group, so that they deliver what the group has put out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from pipeline_runtime.connectors.backoff import pause_s
from pipeline_runtime.model.desired import DesiredReplica, ReplicaStatus, Role

STEADY_MS = 60_000
SILENT_MS = 15_000
"""A process that has said nothing for this long hangs."""
START_MS = 60_000
"""The same before its first word. A start takes more than a second of CPU, so it may take long on a busy
machine. Killing the process and starting it again would only add to the load."""
END_MS = 6_000
"""A process that was told to end, and has not within this time, is killed."""


def may_run(want: DesiredReplica, status: ReplicaStatus | None) -> bool:
    """Returns whether the group's connectors run on this node.

    They do while its replica owns, and also while a replica that is to own has failed or starts: a system
    that does not wait must not lose rows because an operator has failed.
    """
    if want.role is not Role.OWNER or want.order is None:
        return status is not None and status.role is Role.OWNER
    if want.retire or want.closing or status is None:
        return False
    if status.role is Role.OWNER:
        return True
    released = want.release is not None and status.released == want.release
    refused = status.order_refused is not None and status.order_id == want.order.id
    return not (released or refused or status.phase == "fenced" or status.retired)


def may_deliver(want: DesiredReplica, status: ReplicaStatus | None) -> bool:
    """Returns whether the group's deliverers run on this node: also while the group ends, and when it has
    ended."""
    ends = want.retire and status is not None and status.retired
    return ends or may_run(want.model_copy(update={"retire": False, "closing": False}), status)


def deliverers_epoch(status: ReplicaStatus | None) -> int | None:
    """Returns the epoch in which the replica owns, or None while it does not own. If the group has ended for
    good, it is the last one: nobody owns after it.

    Any other status has the epoch of some former owner. A deliverer that ran with that one would be refused
    as an earlier owner, or would keep the true one out.
    """
    if status is None or not (status.role is Role.OWNER or status.retired):
        return None
    return status.epoch


@dataclass(frozen=True)
class Wanted:
    """A connector that is to be on this node."""

    config: str  # ConnectorConfig as JSON: whatever changes it ends the process
    run: bool
    epoch: int | None = 0  # of its owner; while it is None, it does not begin to run
    forever: bool = False  # if it is ended, then for good
    drains: bool = False  # it ends by itself when nothing is left on the disk


@dataclass(frozen=True)
class Held:
    """A connector's process, or what is left of the last one. Its times are those of a clock that nobody
    sets."""

    config: str = ""
    alive: bool = False
    running: bool = False  # it was told to run
    epoch: int = 0  # with which it runs
    started_ms: int = 0
    said_ms: int = 0  # when it said something last
    ending_ms: int | None = None  # when it was told to end
    failures: int = 0  # in a row
    again_ms: int = 0  # not to be started before

    def ended(self, now_ms: int) -> Held:
        """Returns what is left of a process that has ended. One that ended unasked is started again later
        each time."""
        if self.ending_ms is not None:
            return Held()
        failures = 1 if now_ms - self.started_ms >= STEADY_MS else self.failures + 1
        return Held(failures=failures, again_ms=now_ms + int(pause_s(failures) * 1000))

    def started(self, config: str, now_ms: int) -> Held:
        return replace(
            self, config=config, alive=True, running=False, started_ms=now_ms, said_ms=now_ms, ending_ms=None
        )

    def told_to_run(self, epoch: int) -> Held:
        return replace(self, running=True, epoch=epoch)


Act = Literal["nothing", "start", "run", "end", "kill", "forget"]


def next_act(want: Wanted | None, held: Held, now_ms: int) -> Act:
    """Returns what to do now."""
    if not held.alive:
        if want is None:
            return "forget"
        return "start" if now_ms >= held.again_ms else "nothing"
    if held.ending_ms is not None:
        return "kill" if now_ms - held.ending_ms > END_MS else "nothing"
    if now_ms - held.said_ms > (SILENT_MS if held.said_ms > held.started_ms else START_MS):
        return "kill"
    if want is None or want.config != held.config:
        return "end"
    if held.running:
        return "end" if not want.run or (want.epoch is not None and want.epoch > held.epoch) else "nothing"
    return "run" if want.run and want.epoch is not None else "nothing"
