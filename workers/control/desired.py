"""Derives the desired state of each node from the database, and sends it until the node confirms it."""

from __future__ import annotations

import hashlib
import json
import logging
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

import redis
from django.db import close_old_connections
from django.db.models import F
from kombu.exceptions import OperationalError

from pipeline_runtime.checkpoint import access
from pipeline_runtime.checkpoint.errors import CheckpointError
from pipeline_runtime.model.connectors import SealedConnection
from pipeline_runtime.model.desired import (
    CheckpointSource,
    ClaimOrder,
    DesiredReplica,
    NodeDesired,
    Peer,
    Role,
    starts_of,
)
from pipeline_runtime.model.ids import Epoch, Seq
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.placement.links import Place, peers
from pipeline_runtime.wire import tasks
from webapp.connections.selectors import named_in, sent_of
from webapp.moments import ms_of_moment
from webapp.nodes.models import Node
from webapp.placements.copies import standbys
from webapp.placements.models import Deployment, ExtraReplica, GroupPlacement
from webapp.placements.selectors import java_ends
from workers import messages
from workers.control.bulkhead import Bulkhead
from workers.control.checkpoints.backups import BackupPlan, Backups
from workers.control.context import ControlContext
from workers.messages import CENTRAL

log = logging.getLogger(__name__)

TOKEN_DAYS = 7


def replicas_of(
    node: Node, cluster_key: str, has_checkpoint: Callable[[str], bool]
) -> tuple[DesiredReplica, ...]:
    """Returns everything that the database wants of one node, in a fixed order.

    `has_checkpoint(group id)` says whether the central store has one. A node that lost its disk starts there.
    """
    placements = GroupPlacement.objects.filter(node=node, deployment__status__in=Deployment.ACTIVE)
    wanted = {}
    for placement in placements:
        id = f"{placement.deployment_id}.{placement.group}"
        fallback = {"url": CENTRAL, "seq": None} if has_checkpoint(id) else None
        wanted[id] = _of_placement(placement, placement.source or fallback, cluster_key)
    extras = ExtraReplica.objects.filter(node=node, deployment__status__in=Deployment.ACTIVE)
    for extra in extras:
        id = f"{extra.deployment_id}.{extra.group}"
        owner = GroupPlacement.objects.filter(deployment=extra.deployment_id, group=extra.group).first()
        if owner is not None and id not in wanted:  # a node never has two replicas of one group
            follows = extra.role == Role.STANDBY.value
            fallback = {"url": CENTRAL, "seq": None} if follows and has_checkpoint(id) else None
            wanted[id] = _of_extra(extra, owner, extra.source or fallback, cluster_key)
    return tuple(wanted[key] for key in sorted(wanted))


def _of_placement(
    placement: GroupPlacement, source: dict[str, Any] | None, cluster_key: str
) -> DesiredReplica:
    spec = GroupSpec.model_validate(placement.spec)
    owner = placement.role == "owner"
    rewind = placement.order_rewind
    order = ClaimOrder(
        id=placement.order_id,
        over=Epoch(placement.order_over),
        rewind=None if rewind is None else Seq(rewind),
        fresh=placement.order_fresh,
        keeps_state_of=tuple(placement.order_keeps_state_of),
        starts=starts_of(placement.starts),
    )
    return DesiredReplica(
        spec=spec,
        role=Role.OWNER if owner else Role.STOPPED,
        order=order if owner else None,
        # A stopped one fetches nothing: it only keeps what it has.
        source=_source(source, spec, cluster_key) if owner else None,
        release=placement.release or None if owner else None,
        followed=owner and spec.follow == "exact" and _is_followed(placement),
        paused_since_ms=_paused_since_ms(placement),
        retire=placement.retire and owner,
        closing=placement.closing and owner,
        generation=placement.generation,
        java_ends=java_ends(placement),
        vouched=placement.vouched,
        accepts=tuple(placement.accepts),
    )


def _paused_since_ms(placement: GroupPlacement) -> int | None:
    return None if placement.paused_at is None else ms_of_moment(placement.paused_at)


def _is_followed(placement: GroupPlacement) -> bool:
    return bool(standbys(placement.deployment_id, placement.group))


def _of_extra(
    extra: ExtraReplica, placement: GroupPlacement, source: dict[str, Any] | None, cluster_key: str
) -> DesiredReplica:
    spec = GroupSpec.model_validate(placement.spec)
    return DesiredReplica(
        spec=spec,
        role=Role(extra.role),
        source=_source(source, spec, cluster_key),
        succeed=extra.succeed or None,
        paused_since_ms=_paused_since_ms(placement),
        generation=extra.generation,
        java_ends=java_ends(placement),
        vouched=placement.vouched,
    )


def _source(source: dict[str, Any] | None, spec: GroupSpec, cluster_key: str) -> CheckpointSource | None:
    """Returns where to fetch a checkpoint.

    The database keeps `{url, seq}`; the token is minted here, for one group.
    """
    if source is None:
        return None
    # Whole days, so that the desired state does not change at every look.
    expires_at = (int(time.time()) // 86_400 + TOKEN_DAYS) * 86_400
    seq = source.get("seq")
    return CheckpointSource(
        url=source["url"],
        token=access.mint(cluster_key, access.group_read(spec.id), expires_at),
        seq=None if seq is None else Seq(seq),
    )


def peers_of(node: Node, nodes: Iterable[Node]) -> tuple[Peer, ...]:
    """Returns which peers a node probes.

    Nodes that are down count too, so that what others are told stays the same.
    """
    urls = {other.name: other.url for other in nodes if other.url or other.name == node.name}
    places = [Place(other.name, other.place) for other in nodes if other.name in urls]
    return tuple(Peer(node=name, url=urls[name]) for name in peers(node.name, places))


def connections_of(replicas: Iterable[DesiredReplica]) -> tuple[SealedConnection, ...]:
    """Returns the connections that the elements of these replicas name, in a fixed order."""
    elements = (each.model_dump() for replica in replicas for each in replica.spec.elements)
    names = {each.name for each in named_in(elements)}
    return sent_of(names)


class DesiredSender:
    """A thread that derives, compares, numbers and sends.

    Whoever changes the database only has to wake it.
    """

    def __init__(self, context: ControlContext) -> None:
        self._context = context
        self._digests: dict[int, str] = {}  # Node.pk -> digest of what its revision_wanted says
        self._sent: dict[int, tuple[int, float]] = {}  # Node.pk -> (revision, monotonic seconds)
        self._bulkhead = Bulkhead()
        self._backups = Backups(context, self._bulkhead)
        self._with_checkpoint: set[str] = set()  # groups with a checkpoint in the central store
        self._redis = redis.Redis.from_url(
            context.settings.redis_url, socket_timeout=10, socket_connect_timeout=5, health_check_interval=10
        )
        self._known: set[str] = set()  # names of all nodes at the last look
        self._emptied: set[str] = set()  # nodes that are away and whose queues were deleted
        self._away = False
        self._thread = threading.Thread(target=self._run, name="desired", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def join(self, timeout_s: float) -> None:
        self._thread.join(timeout_s)

    def _run(self) -> None:
        seen = -1
        while not self._context.closing.is_set():
            try:
                close_old_connections()
                self._round()
            except Exception:
                log.exception("the desired state could not be derived; it is tried again")
            seen = self._context.desired.wait(seen, 1.0)

    def _round(self) -> None:
        backups, nodes = self._backups.plan(), list(Node.objects.all())
        self._empty_queues_of_absent(nodes)
        for node in nodes:
            # The node as a whole: a list without one of its replicas would order it to stop that one.
            alert = (
                f"Control cannot compute what {node.name} has to run. The node keeps its last desired state."
            )
            with self._bulkhead.only(f"deriving what {node.name} is to run", alert, node.name):
                self._tend(node, backups, peers_of(node, nodes))

    def _empty_queues_of_absent(self, nodes: list[Node]) -> None:
        """Deletes the queues of nodes that are away: nobody reads them.

        Nothing is missed, because a node that is back is told everything that is wanted of it.
        """
        up = {node.name for node in nodes if node.up}
        there = {node.name for node in nodes}
        away = (self._known | there) - up - self._emptied
        try:
            for name in away:
                self._redis.delete(tasks.node_queue(name))
        except redis.RedisError as error:
            log.debug("the queues of absent nodes are deleted later: %s", error)
            self._known |= there
            return
        self._known = there
        self._emptied = (self._emptied | away) - up

    def _has_checkpoint(self, group: str) -> bool:
        try:
            if self._context.central.manifests(group):
                self._with_checkpoint.add(group)
            else:
                self._with_checkpoint.discard(group)
        except CheckpointError:
            pass  # the central store is being repaired, so what was known before counts
        return group in self._with_checkpoint

    def _tend(self, node: Node, backups: BackupPlan, peers: tuple[Peer, ...]) -> None:
        wanted = replicas_of(node, self._context.settings.cluster_key, self._has_checkpoint)
        replicas = tuple(backups.applied(replica, node.name) for replica in wanted)
        keeps, connections = backups.keeps(node.name), connections_of(replicas)
        content = json.dumps(
            [
                keeps,
                node.leaving_stuck,
                [[each.name, each.version] for each in connections],
                *(each.model_dump(mode="json") for each in (*peers, *replicas)),
            ],
            sort_keys=True,
        )
        digest = hashlib.sha256(content.encode()).hexdigest()
        if self._digests.get(node.pk) != digest:
            # A node ignores a revision that is not newer than its own. The database may have been restored
            # from a backup, so the number goes past what the node has seen.
            revision = max(node.revision_wanted, node.revision_seen) + 1
            updated = Node.objects.filter(pk=node.pk, revision_wanted=node.revision_wanted)
            if not updated.update(revision_wanted=revision):
                return  # somebody else has counted it up; the next look sees that
            self._digests[node.pk] = digest
            node.revision_wanted = revision
        elif node.revision_seen > node.revision_wanted:
            Node.objects.filter(pk=node.pk).update(revision_wanted=F("revision_seen") + 1)
            return
        if not node.up:
            # It cannot read, and its queue would grow without end. Its first report will say that it is up.
            self._sent.pop(node.pk, None)
            return
        if node.revision_seen >= node.revision_wanted or not node.run_id:
            return
        revision_sent, at_s = self._sent.get(node.pk, (0, 0.0))
        repeated = revision_sent == node.revision_wanted
        if repeated and (
            time.monotonic() - at_s < self._context.tuning.resend_s or self._waits_for(node.name)
        ):
            return
        desired = NodeDesired(
            node=node.name,
            revision=node.revision_wanted,
            replicas=replicas,
            keeps=keeps,
            peers=peers,
            connections=connections,
            stuck=node.leaving_stuck,
        )
        self._send(desired, node.pk)

    def _waits_for(self, node: str) -> bool:
        """Returns whether what was sent before is not read yet, so that it is no use to send it again.

        A node that does not read may count as up: when all fall silent at once, none is counted as down.
        """
        try:
            return bool(self._redis.llen(tasks.node_queue(node)))
        except redis.RedisError:
            return False  # sending will show whether Redis answers

    def _send(self, desired: NodeDesired, key: int) -> None:
        try:
            messages.send(
                self._context.app,
                tasks.NODE_SYNC,
                [desired.model_dump(mode="json")],
                tasks.node_queue(desired.node),
            )
        except (OperationalError, OSError) as error:
            if not self._away:
                log.warning("Redis is away. Nodes go on with what they have. (%s)", error)
            self._away = True
            return
        self._away = False
        self._sent[key] = (desired.revision, time.monotonic())
