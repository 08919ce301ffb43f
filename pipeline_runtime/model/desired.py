"""What the control side wants of a node, and what the node reports back. Both travel as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

from pydantic import Field as PydanticField, ValidationError

from pipeline_runtime.model.faults import join_path, pydantic_faults
from pipeline_runtime.model.ids import Epoch, Seq
from pipeline_runtime.model.plain_data import unfit
from pipeline_runtime.model.spec import Frozen, GroupSpec


class Role(StrEnum):
    OWNER = "owner"  # commits batches
    STANDBY = "standby"  # follows the journal, emits nothing
    STOPPED = "stopped"  # no query; the local state is kept


class ClaimOrder(Frozen):
    """An order to own: valid only while the journal's highest grant is still `over`.

    `over` is the newest epoch that the control side knows of (0 for a new group), so an order that
    reaches a node late, after somebody else was granted, is refused by the node itself.
    """

    id: str
    over: Epoch
    rewind: Seq | None = None  # what was committed after this seq is void: it is processed and emitted again
    anew: bool = False  # taking over from another definition, it begins without the state that this one left
    anew_but_for: tuple[str, ...] = ()  # versions of definitions whose state it goes on with all the same
    # ("<topic>-<partition>", offset): where it begins inputs that the definition before it did not read. Of
    # others, a group that is new reads all there is, one that was there before what comes from now on. Of a
    # source element: (its id, its position as JSON). And, by journal.records.ENDED, those that have ended.
    starts: tuple[tuple[str, int | str], ...] = ()

    @property
    def positions(self) -> dict[str, Any]:
        """`starts` as they stand in a boundary's `ends`."""
        return {key: json.loads(at) if isinstance(at, str) else at for key, at in self.starts}


def starts_of(positions: Mapping[str, Any]) -> tuple[tuple[str, int | str], ...]:
    """ClaimOrder.starts, in a fixed order: a source's position is a JSON value, which cannot be hashed."""
    return tuple(
        (key, at if isinstance(at, int) else json.dumps(at, sort_keys=True, separators=(",", ":")))
        for key, at in sorted(positions.items())
    )


class ArmOrder(Frozen):
    """An order to a standby to make itself ready as the one successor to whom the owner may release."""

    id: str  # of the handover
    nonce: str  # new for each try: tells this initialisation from every earlier one

    @property
    def token(self) -> str:
        return f"{self.id}/{self.nonce}"


class CheckpointSource(Frozen):
    """Where a replica without local state gets its checkpoint."""

    url: str  # of a chunk service: another node's or the central one
    token: str  # bearer token for that group, see checkpoint.access
    seq: Seq | None = None  # None: the newest
    fallbacks: tuple[str, ...] = ()  # other chunk services that may have it, or a newer one


class BackupPlace(Frozen):
    """The node that holds a group's checkpoints beside the central store."""

    node: str
    url: str  # of its chunk service


class JavaEnd(Frozen):
    """The Java process of a node ended while the group started there, or was in a batch."""

    node: str
    at_ms: int
    alone: bool  # no other group comes into question


ENDS_WITHIN_MS = 3_600_000
"""Ends that are further apart do not count together."""


def joined_ends(*parts: tuple[JavaEnd, ...]) -> tuple[JavaEnd, ...]:
    """In order of time, each once, without those that the newest one has outlived."""
    ends = sorted({end for part in parts for end in part}, key=lambda end: (end.at_ms, end.node))
    return tuple(end for end in ends if end.at_ms > ends[-1].at_ms - ENDS_WITHIN_MS)


def is_held(ends: tuple[JavaEnd, ...]) -> bool:
    """Twice, and the second time it was this group beyond doubt: it is not started any more, anywhere."""
    return len(ends) >= 2 and ends[-1].alone


@dataclass(frozen=True)
class Directive:
    """What a running replica is to do, as a whole: told again, it changes nothing."""

    order: ClaimOrder | None = None  # to own, by claim, once it has caught up
    succeed: str | None = None  # the handover to arm for: its owner may release to this replica
    release: str | None = None  # the handover in which to give the group away, as its owner
    followed: bool = False  # as its owner, leave an exact standby time to follow
    paused_since_ms: int | None = None
    retire: bool = False  # as its owner, end the group for good, then stop
    latency_ms: int | None = None  # the target, as its owner; None: as its definition says


class DesiredReplica(Frozen):
    spec: GroupSpec
    role: Role
    order: ClaimOrder | None = None  # with role OWNER
    source: CheckpointSource | None = None  # None: local state, or empty for a new group
    succeed: str | None = None  # with role STANDBY: arm for the handover of this id once caught up
    release: str | None = None  # with role OWNER: release to whoever has armed for this handover
    followed: bool = False  # with role OWNER: somebody follows exactly, leave time for that
    backup: BackupPlace | None = None  # where its checkpoints go, too
    paused_since_ms: int | None = None  # when its user paused it; None: it is not paused
    retire: bool = False  # with role OWNER: commit RETIRE, then stop
    generation: int = 1  # a new generation discards the local state and starts from `source` again
    java_ends: tuple[JavaEnd, ...] = ()  # on any node, since a user vouched for it
    vouched: str = ""  # another one: a user has asked for it anew, and what was before does not count

    @property
    def directive(self) -> Directive:
        owner = self.role is Role.OWNER
        return Directive(
            order=self.order if owner else None,
            succeed=None if owner else self.succeed,
            release=self.release if owner else None,
            followed=self.followed and owner,
            paused_since_ms=self.paused_since_ms,
            retire=self.retire and owner,
            latency_ms=self.spec.pace.latency_ms,
        )


class RefusedReplica(Frozen):
    """A part of a desired state that the node cannot take."""

    group: str  # GroupSpec.id
    generation: int = 1
    reason: str


class Peer(Frozen):
    """Another node, to which the line is to be measured."""

    node: str
    url: str  # of its chunk service


class NodeDesired(Frozen):
    """All that one node shall run. A node ignores a revision that is not newer than its own."""

    node: str
    revision: int
    replicas: tuple[DesiredReplica, ...] = ()
    keeps: tuple[str, ...] = ()  # groups of other nodes whose checkpoints this one holds
    stuck: bool = False  # the node is leaving, and nothing that it still owns can be moved away
    peers: tuple[Peer, ...] = ()  # to which it measures the lines
    refused: tuple[RefusedReplica, ...] = ()  # never sent: what the node itself found when it read this


def read_desired(data: Any) -> NodeDesired:
    """A desired state as it came over the wire or from the disk.

    A replica that cannot be read, or not be written down, is one of `refused`: the others go on. Raises
    ValidationError when the whole cannot be read, or not even the name of a group that is refused.
    """
    parts = data.get("replicas") if isinstance(data, Mapping) else None
    if not isinstance(parts, list | tuple):
        return NodeDesired.model_validate(data)
    taken: list[DesiredReplica] = []
    refused: list[RefusedReplica] = []
    for part in parts:
        try:
            replica = DesiredReplica.model_validate(part)
            replica.model_dump_json()
        except ValueError as error:  # pydantic's errors of both kinds are ValueErrors
            refused.append(_refused(part, error))
        else:
            taken.append(replica)
    whole = NodeDesired.model_validate({**data, "replicas": ()})
    return whole.model_copy(update={"replicas": tuple(taken), "refused": (*whole.refused, *refused)})


def _refused(part: Any, error: ValueError) -> RefusedReplica:
    """Its reason names places and no values: those may be tokens, and it is shown to everybody."""
    if isinstance(error, ValidationError):
        faults = [(path, message) for path, message, _, _ in pydantic_faults(error)]
    else:
        faults = [(join_path(*loc), reason) for loc, reason in unfit(part)]
    reason = "; ".join(f"{path} {message}" for path, message in faults[:5]) or "it cannot be written down"
    spec = part.get("spec") if isinstance(part, Mapping) else None
    known = spec if isinstance(spec, Mapping) else {}
    deployment, group = known.get("deployment"), known.get("group")
    if not isinstance(deployment, str) or not isinstance(group, str) or unfit([deployment, group]):
        raise error
    generation = part.get("generation", 1)
    return RefusedReplica(
        group=f"{deployment}.{group}",
        generation=generation if isinstance(generation, int) else 1,
        reason=reason,
    )


class ReplicaError(Frozen):
    message: str  # what happened
    safe: str  # what was kept safe
    next: str  # what to do
    traceback: str | None = None
    at_ms: int = 0
    damaged: bool = False  # it is the local state that cannot be used; a checkpoint can


class ElementRows(Frozen):
    """What went through one element of a group; None: Spark alone saw the rows."""

    rows_in_total: int | None = None
    rows_out_total: int | None = None


class Takeover(Frozen):
    """The newest change of owner, as the journal has it: all times are the broker's."""

    epoch: Epoch  # the new owner's
    by: Literal["claim", "release"]
    order: str
    node: str
    at_ms: int  # of the CLAIM or RELEASE
    last_output_at_ms: int | None = None  # of the old owner
    first_output_at_ms: int | None = None  # of the new one; None: none yet
    last_commit_at_ms: int | None = None  # of the old owner, with an output or without
    first_commit_at_ms: int | None = None  # of the new one; None: none yet
    usual_output_ms: int | None = None  # from one output to the next before; None: too few to tell
    usual_commit_ms: int | None = None  # from one commit to the next before
    round_trips: int | None = None  # that the new owner waited for, from RELEASE to its first commit

    @property
    def gap_ms(self) -> int | None:
        if self.last_output_at_ms is None or self.first_output_at_ms is None:
            return None
        return self.first_output_at_ms - self.last_output_at_ms


class ReplicaStatus(Frozen):
    """One replica as its node sees it. Totals count from the replica's start on this node."""

    group: str  # GroupSpec.id
    generation: int = 1
    role: Role
    phase: str = ""  # finer than the role: fetching, starting, following, claiming, owning, ...
    epoch: Epoch = Epoch(0)  # as OWNER: its own; else the highest grant it has read
    seq: Seq = Seq(0)
    anew_from: Seq = Seq(0)  # its state was begun anew behind this seq: nothing of before is in it
    order_id: str | None = None  # the newest order to own (claim or succession) it has carried out or refused
    order_refused: str | None = None  # why
    armed: str | None = None  # the handover it is armed for
    released: str | None = None  # the newest handover for which it has committed RELEASE
    behind: int = 0  # committed batches that it has still to follow
    takeover: Takeover | None = None
    rows_in_total: int = 0
    rows_out_total: int = 0
    stream_bytes_total: dict[str, int] = {}  # by output, "element.port": keys and values, not compressed
    elements: dict[str, ElementRows] = {}  # of a group of several
    dead_letters_total: int = 0
    lag_rows: int = 0
    batches_total: int = 0
    busy_ms_total: float = 0.0  # what its batches took together
    wait_ms_max: float | None = None  # however long the target, its rows wait no longer; None: as it allows
    # What it costs on its node (workers/node/cost.py), of the newest half minute; None: not measured yet.
    cpu_cores: float | None = None
    batches_per_s: float | None = None
    rows_per_s: float | None = None  # read by the group
    batch_ms_p50: float | None = None
    batch_ms_p95: float | None = None
    batch_ms_p99: float | None = None
    latency_ms_p50: float | None = None  # record's timestamp of arrival to its output's commit
    latency_ms_p95: float | None = None
    latency_ms_p99: float | None = None
    latency_ms_target: int | None = None
    state_bytes: int = 0
    state_keys: int | None = None  # of a keyed processor
    at_work: bool = False  # its query starts, or is in a batch
    java_ends: tuple[JavaEnd, ...] = ()  # that this node knows of
    vouched: str = ""  # of the wish that they belong to
    paused: bool = False
    ended: bool = False
    retired: bool = False
    checkpoint_seq: Seq | None = None
    checkpoint_at_ms: int | None = None
    checkpoint_bytes: int | None = None
    checkpoint_where: tuple[str, ...] = ()
    bytes_fetched: int = 0
    last_output_at_ms: int | None = None  # commit time of the newest batch with output
    first_output_at_ms: int | None = None  # the same of the first one after it became owner
    owner_since_ms: int | None = None
    error: ReplicaError | None = None


class NodeLoad(Frozen):
    cpu_ratio: float  # 0..1 over all cores
    memory_bytes: int  # used by the agent and its children
    java_bytes: int = 0  # of these, Java's: its heap is for all that run there
    memory_total_bytes: int
    memory_ratio: float
    disk_free_bytes: int
    disk_ratio: float
    battery_ratio: float | None = None
    on_battery: bool | None = None


class LinkReport(Frozen):
    """What a node's newest probes of a peer say. All times are the node's."""

    peer: str
    rtt_ms: float | None = PydanticField(default=None, ge=0, allow_inf_nan=False)  # None: it did not answer
    bytes_per_s: float | None = PydanticField(
        default=None, ge=0, allow_inf_nan=False
    )  # from the peer; None: unknown
    at_ms: int  # of the newest probe
    bytes_at_ms: int | None = None  # of the newest measurement of the rate, which is rarer
    error: str | None = None  # why it does not answer


class BrokerReport(Frozen):
    """The newest probe of the way to the Kafka broker that was answered. The time is the node's."""

    rtt_ms: float = PydanticField(ge=0, allow_inf_nan=False)
    at_ms: int


class NodeReport(Frozen):
    """One heartbeat: an entry of the Redis stream `fogline:reports`."""

    kind: Literal["heartbeat", "bye"] = "heartbeat"
    node: str
    run_id: str  # new for each start of the agent
    number: int  # increases within a run
    at_ms: int
    version: str
    url: str  # of this node's chunk service
    revision: int  # of the NodeDesired it works on
    cores: int
    ready: bool = PydanticField(description="the Spark session is up")
    load: NodeLoad
    replicas: tuple[ReplicaStatus, ...] = ()
    alerts: tuple[str, ...] = ()  # what is wrong with the node itself: its disk, its checkpoints
    # It was told to stop and hands its elements over, until then at the latest, by its clock; None: neither.
    leaving_until_ms: int | None = None
    links: tuple[LinkReport, ...] = ()  # to its peers, all of a round; empty: none has ended yet
    broker: BrokerReport | None = None  # None: none has been answered yet
