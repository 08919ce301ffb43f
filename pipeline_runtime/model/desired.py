"""The desired state of a node, and the node's report. Both travel as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

from pydantic import Field as PydanticField, ValidationError

from pipeline_runtime.model.connectors import ConnectorStatus, SealedConnection
from pipeline_runtime.model.error_codes import ERRORS
from pipeline_runtime.model.faults import join_path, pydantic_faults
from pipeline_runtime.model.ids import Epoch, Seq
from pipeline_runtime.model.plain_data import unfit
from pipeline_runtime.model.spec import Frozen, GroupSpec


class Role(StrEnum):
    """What a replica is in its group, or is to be."""

    OWNER = "owner"  # commits batches
    STANDBY = "standby"  # follows the journal, emits nothing
    STOPPED = "stopped"  # no query; the local state is kept


class ClaimOrder(Frozen):
    """An order to own. It is valid only while the journal's highest grant is still `over`.

    `over` is the newest epoch that control knows of (0 for a new group). So the node itself refuses an order
    that reaches it late, after another node was granted the group.
    """

    id: str
    over: Epoch
    rewind: Seq | None = None  # batches after this seq are void: they are processed and emitted again
    fresh: bool = False  # the successor begins without the state of another definition
    keeps_state_of: tuple[str, ...] = ()  # versions of definitions whose state it keeps all the same
    # Where the group begins in inputs that the definition before it did not read, as pairs
    # ("<topic>-<partition>", offset). An input that is not named is read from its first row by a new group,
    # and from now on by a group that existed before. A source element has a pair (its id, its position as
    # JSON). The key journal.records.ENDED lists the inputs that have ended.
    starts: tuple[tuple[str, int | str], ...] = ()

    @property
    def positions(self) -> dict[str, Any]:
        """Returns `starts` in the form of a boundary's `ends`."""
        return {key: json.loads(at) if isinstance(at, str) else at for key, at in self.starts}


def starts_of(positions: Mapping[str, Any]) -> tuple[tuple[str, int | str], ...]:
    """Returns ClaimOrder.starts in a fixed order. A source's position becomes JSON text, since its value
    cannot be hashed."""
    return tuple(
        (key, at if isinstance(at, int) else json.dumps(at, sort_keys=True, separators=(",", ":")))
        for key, at in sorted(positions.items())
    )


class ArmOrder(Frozen):
    """An order to a standby: become ready as the one successor to whom the owner may release."""

    id: str  # the handover's id
    nonce: str  # new for each try, to tell it from every earlier one

    @property
    def token(self) -> str:
        return f"{self.id}/{self.nonce}"


class CheckpointSource(Frozen):
    """Where a replica without local state gets its checkpoint."""

    url: str  # of a chunk service: another node's or the central one
    token: str  # the bearer token for that group, see checkpoint.access
    seq: Seq | None = None  # the newest checkpoint when it is None
    fallbacks: tuple[str, ...] = ()  # other chunk services that may have the checkpoint, or a newer one


class BackupPlace(Frozen):
    """The node that holds a group's checkpoints besides the central store."""

    node: str
    url: str  # of its chunk service


class WayOn(Frozen):
    """A way in which an element that stands can go on, for a person to choose."""

    id: str  # says what it answers to, so that it answers to nothing else
    title: str  # in a few words, for a button
    cost: str  # what follows from it


class JavaEnd(Frozen):
    """One end of a node's Java process, or of the node, while the group started there or was in a batch."""

    node: str
    at_ms: int
    alone: bool  # no other group can have caused it
    silent: bool = False  # the node fell silent instead, and nothing is known of its Java
    reads: str = ""  # what the group's batch was reading, if that is known
    skip: WayOn | None = None  # to go on behind that


ENDS_WITHIN_MS = 3_600_000
"""Ends that are further apart than this do not count together."""


def joined_ends(*parts: tuple[JavaEnd, ...]) -> tuple[JavaEnd, ...]:
    """Returns the ends in order of time, each once, without those too long before the newest one."""
    ends = sorted({end for part in parts for end in part}, key=lambda end: (end.at_ms, end.node))
    return tuple(end for end in ends if end.at_ms > ends[-1].at_ms - ENDS_WITHIN_MS)


def is_held(ends: tuple[JavaEnd, ...]) -> bool:
    """Returns whether the group is held: Java or its node ended twice, and the second time only this group
    can have caused it. A held group is not started any more, on any node."""
    return len(ends) >= 2 and ends[-1].alone


@dataclass(frozen=True)
class Directive:
    """What a running replica has to do, as a whole. Receiving it again changes nothing."""

    order: ClaimOrder | None = None  # own by claim, once caught up
    succeed: str | None = None  # the handover to arm for; the group's owner may then release to this replica
    release: str | None = None  # as owner: the handover in which to give the group away
    followed: bool = False  # as owner: leave time for an exact standby to follow
    paused_since_ms: int | None = None
    retire: bool = False  # as owner: end the group for good, then stop
    latency_ms: int | None = None  # as owner: the latency target; the definition's target when it is None
    accepts: tuple[str, ...] = ()  # as owner: WayOn.id of the ways on that a person has chosen


class DesiredReplica(Frozen):
    """What control wants of one group on a node."""

    spec: GroupSpec
    role: Role
    order: ClaimOrder | None = None  # with role OWNER
    source: CheckpointSource | None = None  # without a source: local state, or an empty state for a new group
    succeed: str | None = None  # with role STANDBY: arm for the handover of this id once caught up
    release: str | None = None  # with role OWNER: release to the replica that has armed for this handover
    followed: bool = False  # with role OWNER: a standby follows exactly, leave time for it
    backup: BackupPlace | None = None  # where its checkpoints also go
    paused_since_ms: int | None = None  # when the user paused it; None while it is not paused
    retire: bool = False  # with role OWNER: commit RETIRE, then stop
    closing: bool = False  # with role OWNER: its ingesters end for good, the rest goes on
    generation: int = 1  # a new generation discards the local state and starts from `source` again
    java_ends: tuple[JavaEnd, ...] = ()  # on any node, since a user last vouched for the group
    vouched: str = ""  # changes when a user asks to start the group again; earlier ends do not count then
    accepts: tuple[str, ...] = ()  # WayOn.id of the ways on that a person has chosen

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
            accepts=self.accepts if owner else (),
        )


class RefusedReplica(Frozen):
    """A part of a desired state that the node cannot accept."""

    group: str  # GroupSpec.id
    generation: int = 1
    reason: str


class Peer(Frozen):
    """Another node to which this node measures the line."""

    node: str
    url: str  # of its chunk service


class NodeDesired(Frozen):
    """Everything that one node has to run. A node ignores a revision that is not newer than its own."""

    node: str
    revision: int
    replicas: tuple[DesiredReplica, ...] = ()
    keeps: tuple[str, ...] = ()  # groups of other nodes whose checkpoints this node holds
    connections: tuple[SealedConnection, ...] = ()  # those that its elements name
    stuck: bool = False  # the node is leaving, and nothing that it still owns can be moved away
    peers: tuple[Peer, ...] = ()  # the nodes to which it measures the lines
    # never sent: what the node itself could not accept when it read this
    refused: tuple[RefusedReplica, ...] = ()


def read_desired(data: Any) -> NodeDesired:
    """Reads a desired state that came over the wire or from the disk.

    A replica that cannot be read, or cannot be written down, becomes one of `refused`; the others go on.
    Raises ValidationError if the whole cannot be read, or if a part has no readable group name.
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
    """Returns the refusal. Its reason names places and no values, since values may be tokens and every user
    sees the reason."""
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
    """What is wrong with a replica, in words for a person."""

    code: str = ""  # one of error_codes.AT_ELEMENTS
    message: str  # what happened
    safe: str  # what was kept safe
    next: str  # what to do
    traceback: str | None = None
    at_ms: int = 0
    damaged: bool = False  # the local state cannot be used, but a checkpoint can
    ways: tuple[WayOn, ...] = ()  # each of them ends it

    @classmethod
    def of(
        cls,
        code: str,
        message: str,
        at_ms: int,
        *,
        traceback: str | None = None,
        damaged: bool = False,
        ways: tuple[WayOn, ...] = (),
    ) -> ReplicaError:
        """The error with this code: what is safe and what to do are the table's."""
        known = ERRORS[code]
        return cls(
            code=code,
            message=message,
            safe=known.safe,
            next=known.next,
            traceback=traceback,
            at_ms=at_ms,
            damaged=damaged,
            ways=ways,
        )


def held_error(ends: tuple[JavaEnd, ...]) -> ReplicaError:
    """Says why a group is held that `is_held`."""
    nodes = " and ".join(dict.fromkeys(end.node for end in ends))
    # It may have ended the node while it started, before it was in the batch that it was in before.
    known = next((end for end in reversed(ends) if end.reads), ends[-1])
    reads = f" Its batch was reading {known.reads}." if known.reads else ""
    ways = () if known.skip is None else (known.skip,)
    if not ends[-1].silent:
        return ReplicaError.of(
            "java-ended-twice",
            f"It is held: it has ended Spark's Java process {len(ends)} times (on {nodes}), each "
            f"time while it started or in one of its batches.{reads}",
            ends[-1].at_ms,
            ways=ways,
        )
    return ReplicaError.of(
        "nodes-fell-silent",
        f"It is held: {nodes} fell silent one after the other, the last one soon after the element was "
        f"restored there, and before it had committed a batch.{reads}",
        ends[-1].at_ms,
        ways=ways,
    )


class ElementRows(Frozen):
    """What went through one element of a group. Rows are None when only Spark saw them."""

    rows_in_total: int | None = None
    rows_out_total: int | None = None
    dead_letters_total: int = 0
    last_row_at_ms: int | None = None  # when a batch in which it had rows was last committed


class Takeover(Frozen):
    """The newest change of owner, as the journal records it. All times are the broker's."""

    epoch: Epoch  # of the new owner
    by: Literal["claim", "release"]
    order: str
    node: str
    at_ms: int  # the time of the CLAIM or RELEASE
    last_commit_at_ms: int | None = None  # by the old owner
    first_commit_at_ms: int | None = None  # by the new owner; None until there is one
    first_wait_ms: int | None = None  # Commit.wait_ms of the new owner's first commit
    usual_wait_ms: int | None = None  # the median of it before; None when there were too few
    round_trips: int | None = None  # requests that the new owner waited for, from RELEASE to its first commit

    @property
    def gap_ms(self) -> int | None:
        """From the old owner's last commit to the new owner's first."""
        if self.last_commit_at_ms is None or self.first_commit_at_ms is None:
            return None
        return self.first_commit_at_ms - self.last_commit_at_ms


class Stalled(Frozen):
    """What keeps a replica from going on that should."""

    why: str  # in words, to be said behind its name: "it waits for Kafka, which does not answer"
    since_ms: int


class ReplicaNote(Frozen):
    """Something that has happened to a replica, and that it has got over."""

    kind: str  # of the event that tells it
    message: str
    at_ms: int


class ReplicaStatus(Frozen):
    """One replica as its node sees it. Totals of rows are the journal's, of all owners that there ever were.
    Others count from the replica's start on this node."""

    group: str  # GroupSpec.id
    generation: int = 1
    role: Role
    phase: str = ""  # finer than the role: fetching, starting, following, claiming, owning, ...
    epoch: Epoch = Epoch(0)  # as OWNER its own epoch, else the highest grant that it has read
    seq: Seq = Seq(0)
    fresh_from: Seq = Seq(0)  # its state was empty after this seq, and holds nothing from before
    # the newest order to own (claim or succession) that it carried out or refused
    order_id: str | None = None
    order_refused: str | None = None  # why it refused
    armed: str | None = None  # the handover that it is armed for
    released: str | None = None  # the newest handover for which it committed RELEASE
    behind: int = 0  # committed batches that it has not followed yet
    takeover: Takeover | None = None
    rows_in_total: int = 0
    rows_out_total: int = 0
    # by output, "element.port": bytes of keys and values, not compressed
    stream_bytes_total: dict[str, int] = {}
    elements: dict[str, ElementRows] = {}  # for a group of several elements
    dead_letters_total: int = 0
    # rows of its input topics that no batch has taken yet; None while nobody knows, or it is no owner
    lag_rows: int | None = None
    last_row_at_ms: int | None = None  # when a batch with rows was last committed
    next_row_due_ms: int | None = None  # of a source: when the next row is due; None if nobody can know
    batches_total: int = 0
    rows_processed_total: int = 0  # rows in of these batches
    busy_ms_total: float = 0.0  # the time of all its batches together
    # the longest wait of its rows, whatever the target; None when only the target limits it
    wait_ms_max: float | None = None
    # What it costs on its node over the newest half minute (workers/node/cost.py). None until that is
    # measured.
    cpu_cores: float | None = None
    batches_per_s: float | None = None
    rows_per_s: float | None = None  # rows that the group reads
    batch_ms_p50: float | None = None
    batch_ms_p95: float | None = None
    batch_ms_p99: float | None = None
    # from the arrival in the record's timestamp to the commit of its output
    latency_ms_p50: float | None = None
    latency_ms_p95: float | None = None
    latency_ms_p99: float | None = None
    latency_ms_target: int | None = None
    state_bytes: int = 0
    state_keys: int | None = None  # for a keyed processor
    at_work: bool = False  # its query is starting or in a batch
    stalled: Stalled | None = None
    reads: str = ""  # what the batch reads that is running: "orders, partition 0, offsets 12 to 15"
    skip: WayOn | None = None  # to go on behind that, should the batch be what ends the node
    java_ends: tuple[JavaEnd, ...] = ()  # the ends that this node knows of
    vouched: str = ""  # the value of `vouched` that the ends belong to
    paused: bool = False  # it was told to pause, and no batch of it runs any more
    ended: bool = False
    retired: bool = False
    checkpoint_seq: Seq | None = None
    checkpoint_at_ms: int | None = None
    checkpoint_bytes: int | None = None
    checkpoint_where: tuple[str, ...] = ()
    bytes_fetched: int = 0
    last_output_at_ms: int | None = None  # commit time of the newest batch with output
    first_output_at_ms: int | None = None  # commit time of its first batch with output as owner
    owner_since_ms: int | None = None
    error: ReplicaError | None = None
    left_out_total: int = 0  # offsets of users' topics that were passed, since their records were deleted
    notes: tuple[ReplicaNote, ...] = ()  # the newest ones
    connectors: tuple[ConnectorStatus, ...] = ()  # of its elements that have one, on the owner's node


class NodeLoad(Frozen):
    """How loaded a node is. Ratios are 0 to 1."""

    cpu_ratio: float  # 0..1 over all cores
    memory_bytes: int  # of the agent and its children
    java_bytes: int  # of these, Java's: all groups on the node share its heap
    memory_total_bytes: int
    memory_ratio: float
    disk_free_bytes: int
    disk_ratio: float
    battery_ratio: float | None = None
    on_battery: bool | None = None


class LinkReport(Frozen):
    """What a node's newest probes of a peer say. All times are the node's."""

    peer: str
    rtt_ms: float | None = PydanticField(default=None, ge=0, allow_inf_nan=False)  # None if it did not answer
    bytes_per_s: float | None = PydanticField(
        default=None, ge=0, allow_inf_nan=False
    )  # from the peer; None while it is unknown
    at_ms: int  # when the newest probe was
    bytes_at_ms: int | None = None  # when the rate was last measured, which happens less often
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
    revision: int  # the NodeDesired that it works on
    cores: int
    ready: bool = PydanticField(description="the Spark session is up")
    load: NodeLoad
    replicas: tuple[ReplicaStatus, ...] = ()
    alerts: tuple[str, ...] = ()  # what is wrong with the node itself: its disk, its checkpoints
    # Set when the node was told to stop: it hands its elements over until then at the latest, by its own
    # clock.
    leaving_until_ms: int | None = None
    links: tuple[LinkReport, ...] = ()  # to all its peers, from one round; empty until a round has ended
    broker: BrokerReport | None = None  # None until a probe has been answered
