"""Says in which state a deployed group is, and what users may do with it. Pure: takes facts and returns
words.

The same functions decide whether a button is available and whether an action refuses. So an available button
works, and another one gives the reason that the API would give.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pipeline_runtime.handover.phases import Strategy
from webapp.json_types import Allowed, Follow
from webapp.placements.schemas import ElementAction, ElementStatus

# Rows that wait longer than this at the present rate count as lagging. One slow batch does not.
LAG_S_MAX = 5.0
LAG_ROWS_MIN = 200
UNREPEATABLE = (
    "it may give different results when it runs again on the same rows, so a standby cannot follow it"
)
ENDED_DEPLOYMENTS = ("undeployed", "failed")


@dataclass(frozen=True)
class NodeFacts:
    name: str
    up: bool
    ready: bool
    closed: str | None  # why it takes nothing new; None if nothing told it so
    heard: bool = True  # when it is False, control does not hear it, and `up` is what was found last


@dataclass(frozen=True)
class ReplicaFacts:
    node: str
    role: str
    epoch: int
    seq: int
    status: Mapping[str, Any] = field(default_factory=dict)  # ReplicaStatus
    rates: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class StandbyFacts:
    """A standby that has to be there. Its replica says whether it is."""

    node: str
    wanted: bool = False  # a user asked to keep it


@dataclass(frozen=True)
class GroupFacts:
    """A group as the database has it. `node` is None while it is not placed (not deployed, or not yet)."""

    group: str
    elements: tuple[str, ...] = ()  # the elements that run in it
    deployment_status: str | None = None
    node: str | None = None
    role: str = "owner"  # wanted
    paused: bool = False
    resumed_at: datetime | None = None  # when its last pause ended
    retire: bool = False
    follow: Follow = "exact"
    fresh_from: int = 0  # the newest seq at which its state was begun fresh, as far as was ever reported
    upgrading: bool = False  # its deployment is being upgraded
    handover: str | None = None  # id of the running one
    restoring: bool = False  # that is a restoration
    replicas: tuple[ReplicaFacts, ...] = ()
    standbys: tuple[StandbyFacts, ...] = ()
    nodes: Mapping[str, NodeFacts] = field(default_factory=dict)  # all registered ones
    held: Mapping[str, Any] | None = None  # ReplicaError, if it is not started on any node
    backlog_rows: int | None = None  # rows that wait while no replica says so, as control counted them
    recovery_node: str = ""  # where it goes on when its node fails, as planned; empty when no node has room

    @property
    def owner(self) -> ReplicaFacts | None:
        """Returns the copy that stands for the group: the one on its node, else the one of the newest
        epoch."""
        placed = next((replica for replica in self.replicas if replica.node == self.node), None)
        if placed is not None or not self.replicas:
            return placed
        return max(self.replicas, key=lambda replica: (replica.role == "owner", replica.epoch, replica.seq))

    @property
    def owner_is_heard(self) -> bool:
        """Returns whether the owner's status is current. The status of a silent node is its last report."""
        node = self.nodes.get(self.owner.node) if self.owner is not None else None
        return node is not None and node.up and node.heard

    @property
    def hot_standby(self) -> ReplicaFacts | None:
        """Returns the running standby that has come furthest."""
        wanted = {standby.node for standby in self.standbys}
        running = [
            replica
            for replica in self.replicas
            if replica.node in wanted and replica.role == "standby" and not replica.status.get("error")
        ]
        up = [replica for replica in running if self.nodes[replica.node].up] if running else []
        return max(up, key=lambda replica: (replica.seq, replica.node), default=None)

    def replica_on(self, node: str) -> ReplicaFacts | None:
        return next((replica for replica in self.replicas if replica.node == node), None)

    @property
    def node_is_up(self) -> bool:
        node = self.nodes.get(self.node or "")
        return node is not None and node.up

    @property
    def node_is_known(self) -> bool:
        """Returns whether control hears its node, or knows that it is down."""
        node = self.nodes.get(self.node or "")
        return node is not None and node.heard

    @property
    def node_is_heard(self) -> bool:
        return self.node_is_up and self.nodes[self.node or ""].heard


_DOES: dict[ElementStatus, str] = {
    "starting": "does not process yet",
    "restoring": "is being restored",
    "lagging": "lags behind",
    "stalled": "does not go on",
    "failed": "has failed",
    "silent": "runs on a node that does not answer",
    "unheard": "is not heard, as control gets no reports",
}


def does(status: ElementStatus) -> str:
    """Returns what an element of this status does, as the end of a sentence."""
    return _DOES.get(status, f"is {status}")


def status_of(group: GroupFacts) -> ElementStatus:
    """Returns the group's status in one word. Only what processes, or would if it had rows, is running."""
    if group.deployment_status is None or group.deployment_status == "undeployed":
        return "draft"
    if group.node is None:
        return "failed" if group.deployment_status == "failed" else "deploying"
    if group.handover is not None and group.restoring:
        return "restoring"
    owner = group.owner
    if group.handover is not None and (group.node_is_up or not group.node_is_known):
        return "moving"
    if group.held is not None:
        return "failed"
    if not group.node_is_up:
        return "silent"
    if not group.node_is_heard:
        return "unheard"
    if owner is not None and owner.status.get("error"):
        return "failed"
    if group.retire or group.role == "stopped" or (owner is not None and owner.status.get("retired")):
        return "stopped"
    said = owner.status if owner is not None else {}
    if said.get("stalled") and not (said.get("paused") or said.get("ended")):
        return "stalled"
    if owner is None or owner.node != group.node or owner.role != "owner":
        runs = group.deployment_status == "running" and not group.upgrading
        return "starting" if runs else "deploying"
    if owner.status.get("ended"):
        return "ended"
    if owner.status.get("paused"):  # one that was only told to may still put out a batch
        return "paused"
    lag_rows = owner.status.get("lag_rows") or 0
    rate = owner.rates.get("rows_in_per_s") or 0.0
    return "lagging" if lag_rows > max(LAG_ROWS_MIN, LAG_S_MAX * rate) else "running"


def default_strategy(group: GroupFacts) -> str:
    """Returns the strategy of a live migration: a standby can take over only what it can follow."""
    return "stop-and-copy" if group.follow == "none" else "standby"


def migrate_refusal(group: GroupFacts, target: str | None = None, strategy: str | None = None) -> str | None:
    """Returns why the group cannot move now, or None if it can. Without `target` this is about any node."""
    reason = _change_refusal(group)
    if reason is not None:
        return reason
    if not group.node_is_up:
        return f"its node {group.node} does not answer, so it cannot hand over: restore it elsewhere instead"
    owner = group.owner
    if owner is not None and owner.status.get("error"):
        return f"it has failed on {group.node}, so it cannot hand over: restore it elsewhere instead"
    if owner is None or owner.role != "owner":
        return "it has not started on its node yet"
    if strategy == Strategy.STANDBY and group.follow == "none":
        return f"{UNREPEATABLE}: use stop and copy"
    if strategy not in (None, Strategy.STANDBY, Strategy.STOP_AND_COPY):
        return f"there is no strategy {strategy}: use standby or stop-and-copy"
    return target_refusal(group, target)


def restore_refusal(group: GroupFacts, target: str | None = None) -> str | None:
    """Returns why the group cannot be restored now, or None if it can. Without `target` this is about any
    node."""
    return _change_refusal(group) or target_refusal(group, target)


def keep_standby_refusal(group: GroupFacts, node: str | None = None) -> str | None:
    """Returns why no hot standby can be kept, or None if one can. Without `node` this is about any node."""
    reason = _change_refusal(group)
    if reason is not None:
        return reason
    if group.follow == "none":
        return UNREPEATABLE
    return target_refusal(group, node)


def drop_standby_refusal(group: GroupFacts) -> str | None:
    reason = _deployed_refusal(group)
    if reason is not None:
        return reason
    if group.handover is not None:
        return "it is being moved, maybe to that standby"
    return None if group.standbys else "it has no standby"


REWIND_NOTE = (
    "All rows after the checkpoint are processed and written again, so readers of its output "
    "see those rows twice. Newer checkpoints are removed. It moves to another node."
)

FOLLOW_NOTES: dict[Follow, str] = {
    "exact": (
        "A standby repeats it batch by batch, so it moves almost without a pause and is restored without "
        "loss or repetition. While a standby catches up, it may work a little slower."
    ),
    "coalesced": (
        "A standby follows it in large steps at little cost, so it moves almost without a pause and is "
        "restored without loss or repetition."
    ),
    "none": (
        "It may give different results when it runs again on the same rows, so a standby cannot follow it. "
        "It moves with a pause, and after a restoration the results since the checkpoint may differ."
    ),
}


def restore_note(group: GroupFacts) -> str | None:
    if group.follow == "none":
        return (
            "It may give different results when it runs again on the same rows: after a restoration, the "
            "results since the checkpoint may differ."
        )
    if group.node_is_up:
        return (
            f"{group.node} still answers: its copy will be locked out, and the rows that it has written stay."
        )
    return None


def pause_refusal(group: GroupFacts) -> str | None:
    return _deployed_refusal(group) or ("it is already paused" if group.paused else None)


def resume_refusal(group: GroupFacts) -> str | None:
    return _deployed_refusal(group) or (None if group.paused else "it is not paused")


def checkpoint_refusal(group: GroupFacts) -> str | None:
    reason = _deployed_refusal(group)
    if reason is not None:
        return reason
    if not group.node_is_up:
        return f"its node {group.node} does not answer"
    if not group.node_is_heard:
        return f"its node {group.node} cannot be heard now"
    owner = group.owner
    if owner is None or owner.node != group.node or owner.role != "owner":
        return "it does not run on its node yet"
    return f"it has failed on {group.node}" if owner.status.get("error") else None


def next_step(group: GroupFacts, target: str | None = None) -> str:
    """Returns what a user can do about one of the refusals above. `target` is the node that the user
    chose."""
    if group.deployment_status is None or group.deployment_status in ENDED_DEPLOYMENTS:
        return "Deploy the pipeline first."
    if group.deployment_status == "undeploying":
        return "Wait until it is undeployed, then deploy the pipeline again."
    if group.handover is not None:
        return "Wait until this move has ended, or cancel it."
    if group.retire:
        return "Choose another element: this one is about to be gone."
    if group.node is None or group.deployment_status == "deploying":
        return "Wait until the deployment has ended, then try again."
    if target_refusal(group, target) is not None:
        return "Choose a node that answers and takes new elements, or start or add one."
    if not group.node_is_up:
        return "Restore the element on another node, or start its node again."
    if group.owner is not None and group.owner.status.get("error"):
        return "Look at its error first. Then restore it on another node, or deploy a corrected version."
    if group.follow == "none":
        return "Move it by stop and copy. If its node fails, it is restored from a checkpoint."
    return "Wait a moment, then try again."


def rows_per_s(rates: Mapping[str, Any]) -> float:
    """Returns the rows/s by which a group's share of its node's CPU is estimated. A source takes no rows in,
    and a sink gives none out. `rates` are its owner's."""
    return max(float(rates.get(name) or 0.0) for name in ("rows_in_per_s", "rows_out_per_s"))


def standby_target(group: GroupFacts, without: Collection[str] = ()) -> str | None:
    """Returns the node of its hot standby, if that can take the group: it is restored soonest there."""
    hot = group.hot_standby
    if hot is not None and hot.node not in without and target_refusal(group, hot.node) is None:
        return hot.node
    return None


def restoration_strategy(group: GroupFacts, target: str, checkpoint: int | None) -> str:
    """Returns the restoration from the standby that follows there, if there is one and no checkpoint was
    chosen."""
    replica = group.replica_on(target)
    follows = (
        checkpoint is None
        and any(standby.node == target for standby in group.standbys)
        and replica is not None
        and replica.role == "standby"
        and not replica.status.get("error")
    )
    return "hot-standby" if follows else "checkpoint"


def actions_of(group: GroupFacts) -> dict[ElementAction, Allowed]:
    refusals: dict[ElementAction, str | None] = {
        "migrate": migrate_refusal(group),
        "restore": restore_refusal(group),
        "pause": pause_refusal(group),
        "resume": resume_refusal(group),
        "checkpoint": checkpoint_refusal(group),
        "keep_standby": keep_standby_refusal(group),
        "drop_standby": drop_standby_refusal(group),
        "rewind": restore_refusal(group),
    }
    actions: dict[ElementAction, Allowed] = {
        name: {"allowed": reason is None, "reason": reason, "note": None} for name, reason in refusals.items()
    }
    actions["restore"]["note"] = restore_note(group)
    actions["rewind"]["note"] = REWIND_NOTE
    return actions


def _deployed_refusal(group: GroupFacts) -> str | None:
    if group.deployment_status is None or group.deployment_status in ENDED_DEPLOYMENTS:
        return "it is not deployed"
    if group.deployment_status == "undeploying":
        return "it is being undeployed"
    return "it has no node yet" if group.node is None else None


def _change_refusal(group: GroupFacts) -> str | None:
    reason = _deployed_refusal(group)
    if reason is not None:
        return reason
    if group.handover is not None:
        return "it is already being moved"
    if group.retire:
        return "it is being removed"
    return "it is still being deployed" if group.deployment_status == "deploying" else None


def target_refusal(group: GroupFacts, target: str | None) -> str | None:
    """Returns why that node cannot take the group now, whatever the group itself does, or None if it can.
    Without `target` this is about any node."""
    if target is None:
        fit = any(target_refusal(group, name) is None for name in group.nodes)
        return None if fit else "no other node is running and takes new elements"
    node = group.nodes.get(target)
    if node is None:
        return f"there is no node {target}"
    if target == group.node:
        return f"it already runs on {target}"
    if not node.up:
        return f"{target} does not answer"
    return f"{target} is {node.closed}: it takes no new elements" if node.closed is not None else None
