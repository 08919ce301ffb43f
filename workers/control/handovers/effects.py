"""The effects of a handover's steps on the desired state: the placement, the copies, the timeline.

Everything here runs in the transaction in which the step is stored.
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
from webapp.audit.records import record_event, silence_of
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
    """The effects of one handover, whose row and placement the caller has read and will save."""

    def __init__(self, handover: Handover, placement: GroupPlacement, context: ControlContext) -> None:
        self.handover = handover
        self.placement = placement
        self._context = context
        self._group = f"{handover.deployment_id}.{handover.group}"

    # -- the copy on the target --------------------------------------------------------------------

    def ask_for_checkpoint(self) -> None:
        """Asks the origin for a checkpoint if its newest is old.

        Asks once: without an answer, the old one does.
        """
        origin = self.status_on(self.handover.origin)
        if wants_fresh_checkpoint(origin, now_ms()):
            queue, app, group = tasks.node_queue(self.handover.origin), self._context.app, self._group

            def send() -> None:
                try:
                    messages.send(app, tasks.NODE_CHECKPOINT, [group], queue)
                except (OperationalError, OSError) as error:
                    log.warning("Redis is away, so %s is not asked for a checkpoint: %s", group, error)

            transaction.on_commit(send)

    def order_standby(self) -> None:
        """Orders a copy on the target that follows, from the origin's newest checkpoint."""
        origin = self.status_on(self.handover.origin)
        source = None
        if origin is not None and origin.checkpoint_seq is not None:
            source = {"url": Node.objects.get(name=self.handover.origin).url, "seq": None}
        elif self._has_replicated_checkpoint():
            source = {"url": messages.CENTRAL, "seq": None}
        self._order_copy(Role.STANDBY, source)

    def copy_from_central(self) -> None:
        # With a new generation, so that a late report of the first try is not taken for one of the second.
        self.copies().filter(node__name=self.handover.target).update(
            source={"url": messages.CENTRAL, "seq": None},
            generation=next_generation(self.handover.deployment_id, self.handover.group),
        )

    def order_copy(self) -> None:
        """Orders a copy on the target of the checkpoint that counts, for stop-and-copy and restorations."""
        source: dict[str, Any] | None
        if Strategy(self.handover.strategy).restores:
            source = {"url": messages.CENTRAL, "seq": self.handover.checkpoint_seq}
            if self.handover.checkpoint_seq is None and not self._has_replicated_checkpoint():
                source = None  # nothing was ever replicated, so it starts empty and reads from the beginning
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
        """Stops all other copies before a rewind: one that has read further must not meet the journal's new
        end."""
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
        """Moves the placement to the target, and orders that to own."""
        self._move_to_target()
        rewinds = self.handover.strategy == Strategy.REWIND
        rewind = self.handover.checkpoint_seq if rewinds else None
        self.placement.give_order(epoch_known(self.placement), rewind=rewind)
        self.placement.save(update_fields=_MOVED)

    def order_again(self, over: Epoch) -> None:
        self.placement.give_order(over, rewind=self.placement.order_rewind)
        self.placement.save(update_fields=GroupPlacement.ORDER)

    def order_origin_back(self) -> None:
        """Orders the origin, which still has the placement, to claim what it has released."""
        self.placement.release = ""
        self.placement.give_order(epoch_known(self.placement))
        self.placement.save(update_fields=_MOVED)
        self._drop_target()

    def finish(self) -> None:
        """The target owns, by the release or by an order to claim: tidies the placement and the copies."""
        target, id = self.status_on(self.handover.target), str(self.handover.pk)
        released = self.placement.node.name != self.handover.target
        if released:
            self._move_to_target()
        if released or (target is not None and target.order_id == id):
            self.placement.give_order(max(0, epoch_known(self.placement) - 1), id=id)
        self.placement.order_rewind = None  # done once: a node that restarts goes on after it
        # The checkpoint that it began with may be deleted. From now on it starts again from the newest one.
        self.placement.source = None
        self.placement.save(update_fields=_MOVED)
        # The origin's stopped copy goes: only the handover needed it.
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
        """Turns the old owner's copy into a standby, for a while or for good, or into a stopped copy."""
        strategy, standby_s = Strategy(self.handover.strategy), self._context.settings.standby_s
        kept = {"role": Role.STANDBY.value, "source": None, "generation": generation, "succeed": ""}
        if wanted and origin.takes_new and strategy is not Strategy.REWIND:
            kept |= {"wanted": True, "until": None}
        elif strategy is Strategy.STANDBY and standby_s > 0 and origin.takes_new:
            kept |= {"wanted": False, "until": timezone.now() + timedelta(seconds=standby_s)}
        elif strategy is Strategy.STOP_AND_COPY:
            # It stays until the target owns. If the target fails, this is the newest state that there is.
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
            f"No standby of {name} is left: the one on {self.handover.target} now owns, and "
            f"{origin.name} takes nothing new. Keep one elsewhere.",
            severity="warning",
            pipeline=self.handover.deployment.pipeline.name,
            element=self.handover.element,
            node=origin.name,
        )

    def _void_checkpoints(self) -> None:
        """Voids the newer checkpoints after a rewind: they hold what was undone.

        The owner tells the other stores.
        """
        seq, undone_up_to = Seq(self.handover.checkpoint_seq or 0), Epoch(self.placement.order_over)
        self._context.central.void(self._group, seq, undone_up_to)

    # -- giving back -------------------------------------------------------------------------------

    def give_back(self) -> None:
        """Drops the copy, before the cut. An origin that was stopped owns again."""
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
        """Returns whether a checkpoint of the group was replicated, so that the target may find one.

        The central store may be new and empty. So what the origin said last counts too: the target also asks
        the backup node.
        """
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
    """Keeps how far the target's copy has come. Returns whether there is something new to show.

    `copies` says that this handover made the copy, so what the copy fetched counts.
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


def end(handover: Handover, outcome: str, message: str, code: str = "") -> None:
    """`code` leads to the page about a failure."""
    _close_phase(handover)
    name = handover.deployment.name_of(handover.element)
    handover.outcome, handover.message = outcome, _ordered_why(handover) + message
    handover.code = code
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
        cause=silence_of(handover.origin) if _is_of_a_silence(handover) else None,
        handover=str(handover.pk),
        gap_ms=handover.gap_ms,
        **({"code": code} if code else {}),
    )


def _is_of_a_silence(handover: Handover) -> bool:
    """Returns whether control ordered the restoration because the origin fell silent."""
    return handover.kind == Handover.Kind.RESTORATION and handover.created_by_id is None


def _ordered_why(handover: Handover) -> str:
    """Returns how the message of a handover begins that control has ordered by itself."""
    return f"{handover.reason[:1].upper()}{handover.reason[1:]}: " if handover.reason else ""


def attempts_of(handovers: Iterable[Handover]) -> list[Attempt]:
    """Returns those of the handovers, newest first, that failed or were cancelled."""
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
