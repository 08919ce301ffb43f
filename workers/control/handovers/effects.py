"""What a handover's steps change in the desired state: its placement, its copies, its timeline.

All of it is called inside the transaction in which the step is persisted.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone
from kombu.exceptions import OperationalError

from pipeline_runtime.handover.phases import NEXT, Phase, Strategy
from pipeline_runtime.model.desired import ReplicaStatus, Role
from pipeline_runtime.model.ids import Epoch, Seq
from pipeline_runtime.wire import tasks
from webapp.audit.records import record_event
from webapp.handovers.models import Handover
from webapp.nodes.models import Node
from webapp.placements.copies import next_generation
from webapp.placements.models import ExtraReplica, GroupPlacement, Replica
from workers import messages
from workers.control.context import ControlContext, now_ms
from workers.control.handovers.retries import Attempt
from workers.control.handovers.steps import wants_fresh_checkpoint
from workers.control.phases import check_turn
from workers.control.replica_rows import epoch_known, reported

log = logging.getLogger(__name__)

_MOVED = ("node", "role", "source", "generation", *GroupPlacement.ORDER, "release", *GroupPlacement.PLACED)


class Effects:
    """Of one handover, whose row and placement the caller has read and saves."""

    def __init__(self, handover: Handover, placement: GroupPlacement, context: ControlContext) -> None:
        self.handover = handover
        self.placement = placement
        self._context = context
        self._group = f"{handover.deployment_id}.{handover.group}"

    # -- the copy on the target --------------------------------------------------------------------

    def ask_for_checkpoint(self) -> None:
        """Of the origin, when its newest is old. Sent once: without an answer, the old one does."""
        origin = self.status_on(self.handover.origin)
        if wants_fresh_checkpoint(origin, now_ms()):
            queue, app, group = tasks.node_queue(self.handover.origin), self._context.app, self._group

            def send() -> None:
                try:
                    messages.send(app, tasks.NODE_CHECKPOINT, [group], queue)
                except (OperationalError, OSError) as error:
                    log.warning("Redis is away, %s is not asked for a checkpoint: %s", group, error)

            transaction.on_commit(send)

    def order_standby(self) -> None:
        """A copy on the target that follows, from the origin's newest checkpoint."""
        origin = self.status_on(self.handover.origin)
        source = None
        if origin is not None and origin.checkpoint_seq is not None:
            source = {"url": Node.objects.get(name=self.handover.origin).url, "seq": None}
        elif self._has_replicated_checkpoint():
            source = {"url": messages.CENTRAL, "seq": None}
        self._order_copy(Role.STANDBY, source)

    def copy_from_central(self) -> None:
        # Of another generation, so that nobody takes a late report of the first try for the second one's.
        self.copies().filter(node__name=self.handover.target).update(
            source={"url": messages.CENTRAL, "seq": None},
            generation=next_generation(self.handover.deployment_id, self.handover.group),
        )

    def order_copy(self) -> None:
        """For stop-and-copy and restorations: of the checkpoint that counts there."""
        source: dict[str, Any] | None
        if Strategy(self.handover.strategy).restores:
            source = {"url": messages.CENTRAL, "seq": self.handover.checkpoint_seq}
            if self.handover.checkpoint_seq is None and not self._has_replicated_checkpoint():
                source = None  # nothing was ever replicated: it starts empty and reads from the beginning
        else:
            origin = self.status_on(self.handover.origin)
            node = Node.objects.get(name=self.handover.origin)
            seq = origin.checkpoint_seq if origin is not None else None
            source = {"url": node.url, "seq": seq} if seq else None
        if self.handover.strategy == Strategy.REWIND:
            self._stop_all_others()
            self._order_copy(Role.STOPPED, source)
        else:
            self._order_copy(Role.STANDBY, source)

    def _order_copy(self, role: Role, source: dict[str, Any] | None) -> None:
        self.copies().update_or_create(
            node=Node.objects.get(name=self.handover.target),
            defaults={
                "role": role.value,
                "source": source,
                "generation": next_generation(self.handover.deployment_id, self.handover.group),
                "handover": str(self.handover.pk),
                "succeed": "",
                "until": None,
            },
            create_defaults={
                "deployment_id": self.handover.deployment_id,
                "group": self.handover.group,
                "role": role.value,
                "source": source,
                "generation": next_generation(self.handover.deployment_id, self.handover.group),
                "handover": str(self.handover.pk),
            },
        )

    def _stop_all_others(self) -> None:
        """Before a rewind: what has read on in the journal must not meet its new end."""
        self.placement.role = "stopped"
        self.placement.save(update_fields=["role"])
        others = self.copies().exclude(node__name=self.handover.target)
        others.filter(wanted=False).delete()
        for extra in others:
            extra.role, extra.source = Role.STOPPED.value, None
            extra.generation = next_generation(self.handover.deployment_id, self.handover.group)
            extra.save()

    def arm_target(self) -> None:
        self.copies().filter(node__name=self.handover.target).update(succeed=str(self.handover.pk))

    def order_release(self) -> None:
        self.placement.release = str(self.handover.pk)
        self.placement.save(update_fields=["release"])

    # -- the owner changes -------------------------------------------------------------------------

    def order_claim(self) -> None:
        """The placement moves to the target, which is ordered to own."""
        self._move_to_target()
        rewinds = self.handover.strategy == Strategy.REWIND
        rewind = self.handover.checkpoint_seq if rewinds else None
        self.placement.give_order(epoch_known(self.placement), rewind=rewind)
        self.placement.save(update_fields=_MOVED)

    def order_again(self, over: Epoch) -> None:
        self.placement.give_order(over, rewind=self.placement.order_rewind)
        self.placement.save(update_fields=GroupPlacement.ORDER)

    def order_origin_back(self) -> None:
        """The placement is still the origin's: it claims what it has released."""
        self.placement.release = ""
        self.placement.give_order(epoch_known(self.placement))
        self.placement.save(update_fields=_MOVED)
        self._drop_target()

    def finish(self) -> None:
        """The target owns: by the release, or by the order to claim that was given when that took long."""
        target, id = self.status_on(self.handover.target), str(self.handover.pk)
        released = self.placement.node.name != self.handover.target
        if released:
            self._move_to_target()
        if released or (target is not None and target.order_id == id):
            self.placement.give_order(max(0, epoch_known(self.placement) - 1), id=id)
        self.placement.order_rewind = None  # a rewind is done once: a node that restarts goes on behind it
        # The checkpoint that it began with may be pruned: from now on the newest is where to start again.
        self.placement.source = None
        self.placement.save(update_fields=_MOVED)
        # What only the handover needed goes: the origin's stopped copy.
        self.copies().filter(handover=str(self.handover.pk), wanted=False, until__isnull=True).delete()
        self.copies().filter(handover=str(self.handover.pk)).update(handover="")
        if self.handover.strategy == Strategy.REWIND:
            self._void_checkpoints()
            self.copies().filter(wanted=True).update(role=Role.STANDBY.value)

    def _move_to_target(self) -> None:
        handover, placement = self.handover, self.placement
        origin, generation = placement.node, placement.generation
        extra = self.copies().select_related("node").get(node__name=handover.target)
        wanted = extra.wanted
        extra.delete()
        placement.node, placement.role = extra.node, "owner"
        placement.source, placement.generation, placement.release = extra.source, extra.generation, ""
        if origin.name != handover.target:
            placement.note_placed(handover=str(handover.pk))
            self._keep_origin(origin, generation, wanted)

    def _keep_origin(self, origin: Node, generation: int, wanted: bool) -> None:
        """What becomes of the old owner's copy: a standby for a while or for good, or a stopped copy."""
        strategy, standby_s = Strategy(self.handover.strategy), self._context.settings.standby_s
        kept = {"role": Role.STANDBY.value, "source": None, "generation": generation, "succeed": ""}
        if wanted and origin.takes_new and strategy is not Strategy.REWIND:
            kept |= {"wanted": True, "until": None}
        elif strategy is Strategy.STANDBY and standby_s > 0 and origin.takes_new:
            kept |= {"wanted": False, "until": timezone.now() + timedelta(seconds=standby_s)}
        elif strategy is Strategy.STOP_AND_COPY:
            # It stays until the target owns: were the target to fail, its state is the newest there is.
            kept |= {"role": Role.STOPPED.value, "handover": str(self.handover.pk)}
        else:
            if wanted:
                self._say_standby_is_gone(origin)
            return
        ExtraReplica.objects.update_or_create(
            deployment_id=self.handover.deployment_id, group=self.handover.group, node=origin, defaults=kept
        )

    def _say_standby_is_gone(self, origin: Node) -> None:
        name = self.handover.deployment.name_of(self.handover.element)
        record_event(
            "standby.dropped",
            f"{name} has no standby any more: the one on {self.handover.target} owns now, and "
            f"{origin.name} takes nothing new. Keep one elsewhere.",
            severity="warning",
            pipeline=self.handover.deployment.pipeline.name,
            element=self.handover.element,
            node=origin.name,
        )

    def _void_checkpoints(self) -> None:
        """After a rewind: those that are newer say what was undone. The owner tells the other places."""
        seq, undone_up_to = Seq(self.handover.checkpoint_seq or 0), Epoch(self.placement.order_over)
        self._context.central.void(self._group, seq, undone_up_to)

    # -- giving back -------------------------------------------------------------------------------

    def give_back(self) -> None:
        """Before the cut: forget the copy; an origin that was stopped owns again."""
        self._drop_target()
        self.copies().filter(wanted=True, role=Role.STOPPED.value).update(role=Role.STANDBY.value)
        if self.placement.role == "stopped":
            origin = self.status_on(self.handover.origin)
            self.placement.role = "owner"
            self.placement.give_order(origin.epoch if origin else epoch_known(self.placement))
            self.placement.save(update_fields=["role", *GroupPlacement.ORDER])

    def _drop_target(self) -> None:
        copy = self.copies().filter(node__name=self.handover.target)
        copy.filter(handover=str(self.handover.pk), wanted=False).delete()
        copy.update(succeed="", handover="")

    # -- small things ------------------------------------------------------------------------------

    def copies(self) -> Any:
        return ExtraReplica.objects.filter(
            deployment_id=self.handover.deployment_id, group=self.handover.group
        )

    def status_on(self, node: str) -> ReplicaStatus | None:
        row = Replica.objects.filter(
            deployment=self.handover.deployment_id, group=self.handover.group, node__name=node
        ).first()
        return reported(row)

    def _has_replicated_checkpoint(self) -> bool:
        """By the central store; or, since that may have been begun anew, by what the origin said last: its
        backup node is asked, too."""
        if self._context.central.manifests(self._group):
            return True
        origin = self.status_on(self.handover.origin)
        return origin is not None and any(place != self.handover.origin for place in origin.checkpoint_where)


# -- the row itself ----------------------------------------------------------------------------------


def enter(handover: Handover, phase: Phase, note: str = "") -> None:
    """Sets the phase of a handover and begins its entry in the timeline; the caller saves it.

    Raises PhaseOutOfTurn if the phase may not follow.
    """
    check_turn(NEXT[Strategy(handover.strategy)], Phase(handover.phase), phase)
    _close_phase(handover)
    handover.phase = phase.value
    handover.timeline.append(
        {"phase": phase.value, "start_ms": now_ms(), "end_ms": None, "bytes": 0, "note": note}
    )


def note_progress(handover: Handover, target: ReplicaStatus | None, copies: bool) -> bool:
    """Keep what the target's copy has come to; True: there is something new to show.

    `copies`: the copy was made by this handover, so what it fetched counts.
    """
    if target is None or not handover.timeline:
        return False
    last, before = handover.timeline[-1], (handover.bytes_copied, dict(handover.timeline[-1]))
    if copies:
        handover.bytes_copied = max(handover.bytes_copied, target.bytes_fetched)
    if last["phase"] in (Phase.PREPARE, Phase.COPY):
        last["bytes"] = handover.bytes_copied
    if last["phase"] == Phase.WARM:
        last["behind"] = target.behind
    return before != (handover.bytes_copied, last)


def _close_phase(handover: Handover) -> None:
    if handover.timeline:
        handover.timeline[-1]["end_ms"] = now_ms()


# "Migration" alone is Django's word.
_KIND_WORDS = {"migration": "Live migration", "restoration": "Restoration"}


def end(handover: Handover, outcome: str, message: str) -> None:
    _close_phase(handover)
    name = handover.deployment.name_of(handover.element)
    handover.outcome, handover.message = outcome, _ordered_why(handover) + message
    handover.ended_at = timezone.now()
    handover.save()
    record_event(
        f"handover.{outcome}",
        f"{_KIND_WORDS[handover.kind]} of {name} from {handover.origin} to "
        f"{handover.target}: {handover.message}",
        severity="warning" if outcome == Handover.Outcome.FAILED else "info",
        pipeline=handover.deployment.pipeline.name,
        element=handover.element,
        node=handover.target,
        handover=str(handover.pk),
        gap_ms=handover.gap_ms,
    )


def _ordered_why(handover: Handover) -> str:
    """What the message of one that was ordered by itself begins with."""
    return f"{handover.reason[:1].upper()}{handover.reason[1:]}: " if handover.reason else ""


def attempts_of(handovers: Iterable[Handover]) -> list[Attempt]:
    """Those of them, newest first, that came to nothing."""
    to_nothing = (Handover.Outcome.FAILED, Handover.Outcome.CANCELLED)
    return [
        Attempt(
            target=handover.target,
            why=handover.message.removeprefix(_ordered_why(handover)),
            ended_at=handover.ended_at or handover.created_at,
            cancelled=handover.outcome == Handover.Outcome.CANCELLED,
            stops=handover.strategy == Strategy.STOP_AND_COPY,
        )
        for handover in handovers
        if handover.outcome in to_nothing
    ]
