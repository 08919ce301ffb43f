"""One group's place on this node: a thread that carries out `next_action` until nothing is left to do.

Each group has its own thread, so a slow fetch or stop never holds up another group.
"""

from __future__ import annotations

import logging
import shutil
import threading
import traceback
from dataclasses import replace

from pipeline_runtime.checkpoint.errors import CheckpointError, ServiceUnavailable
from pipeline_runtime.checkpoint.growing import GrowingFiles
from pipeline_runtime.model.desired import (
    DesiredReplica,
    Directive,
    ReplicaError,
    ReplicaStatus,
    Role,
    WayOn,
    held_error,
    is_held,
)
from pipeline_runtime.model.kept import KeptAnswer, KeptQuestion
from pipeline_runtime.model.spec import GroupSpec
from workers.node.java_ends import has_come_through, is_suspect
from workers.node.reconcile import (
    Action,
    Discard,
    Failures,
    Fetch,
    FinalCheckpoint,
    Forget,
    Have,
    Idle,
    MarkUnwanted,
    Start,
    Stop,
    Tell,
    next_action,
)
from workers.node.runtime import LocalState, NodeRuntime, RunningReplica, Taken
from workers.node.slot_state import SlotState

log = logging.getLogger(__name__)

STOP_TIMEOUT_S = 20.0
AT_WORK_MS = 10_000
"""A replica fails soon after its Java process has ended, and the node may see the failure first."""
LOOK_AGAIN_S = 1.0
"""How often a slot looks at its replica if nobody wakes it."""


class Slot:
    def __init__(self, group: str, runtime: NodeRuntime) -> None:
        self.group = group
        self._runtime = runtime
        self._local = LocalState(runtime.directory, group)
        self._wake = threading.Condition()
        self._want: DesiredReplica | None = None
        self._closing = False
        self.gone = False  # nothing is left of the group here, and nothing is wanted
        # What follows is changed only by the slot's thread, and read by others.
        self._replica: RunningReplica | None = None
        self._growing: GrowingFiles | None = None  # the files of the replica that ended last
        self._state = SlotState(last=ReplicaStatus(group=group, role=Role.STOPPED))
        self._taken: Taken | None = None  # the newest checkpoint; also changed by who takes one
        # A snapshot must not see its directory being replaced.
        self._files = threading.Lock()
        self._thread = threading.Thread(target=self._run, name=f"slot {group}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def want(self, desired: DesiredReplica | None) -> bool:
        """Tells what is wanted. Returns False if this slot has ended: then another one is needed."""
        with self._wake:
            if self.gone:
                return desired is None
            self._want = desired
            self._wake.notify_all()
            return True

    def wake(self) -> None:
        with self._wake:
            self._wake.notify_all()

    def close(self, timeout_s: float) -> None:
        """Ends the replica after its running batch and keeps the local state. Blocks."""
        with self._wake:
            self._closing = True
            self._wake.notify_all()
        replica = self._replica
        if replica is not None:
            replica.stop(timeout_s)

    # -- what others see -------------------------------------------------------------------------

    @property
    def started_spec(self) -> GroupSpec | None:
        """What was started last, and may still run."""
        return self._state.spec

    def status(self) -> ReplicaStatus:
        replica, state, want, taken = self._replica, self._state, self._want, self._taken
        status = replica.status() if replica is not None else state.last
        update: dict[str, object] = {
            "group": self.group,
            "generation": self._local.generation() or (want.generation if want else 1),
            "bytes_fetched": state.bytes_fetched,
        }
        if replica is None:
            update |= {"role": Role.STOPPED, "phase": state.phase or status.phase}
        ends = self._runtime.java_ends.of(self.group, want)
        update |= {"java_ends": ends, "vouched": want.vouched if want else ""}
        if replica is None and want is not None and want.role is not Role.STOPPED and is_held(ends):
            update |= {"phase": "held", "error": held_error(ends)}
            return status.model_copy(update=update)
        error = state.error_for(want)
        if error is not None and status.error is None:
            update["error"] = error
        if taken is not None:
            update |= {
                "checkpoint_seq": taken.seq,
                "checkpoint_at_ms": taken.at_ms,
                "checkpoint_bytes": taken.bytes_total,
                "checkpoint_where": self._runtime.checkpoints.where(self.group, taken.seq),
            }
        return status.model_copy(update=update)

    def wanted_at_work(self) -> DesiredReplica | None:
        """Returns what is wanted, if the replica was starting or in a batch until just now."""
        replica = self._replica
        just_now = self._runtime.now_ms() - self._state.fell_at_work_ms < AT_WORK_MS
        return self._want if just_now or (replica is not None and replica.status().at_work) else None

    def last_read(self) -> tuple[str, WayOn | None]:
        """Returns what its replica's batch reads or was reading when it ended, and the way to go on behind
        that. Returns ("", None) if it was in no batch."""
        replica = self._replica
        status = replica.status() if replica is not None else self._state.last
        return status.reads, status.skip

    @property
    def failures(self) -> Failures:
        """The failures since the present wish was made."""
        return self._state.failures

    @property
    def told(self) -> Directive | None:
        """What the running replica was told last."""
        return self._state.told

    def checkpoint(self) -> bool:
        """Takes a checkpoint if the replica owns and has a new batch. Returns whether there is a new one."""
        replica, spec = self._replica, self._state.spec
        if replica is None or spec is None:
            return False
        status = replica.status()
        if status.role is not Role.OWNER or (self._taken and self._taken.seq >= status.seq):
            return False
        with self._files:
            generation = self._local.generation()
            if generation is None or self._replica is not replica:
                return False
            directory = self._local.at(generation)
            taken = self._runtime.checkpoints.take(spec, status.epoch, directory, replica.growing)
        if taken is None:
            return False
        self._taken = taken
        self._runtime.changed()
        return True

    def look(self, question: KeptQuestion) -> KeptAnswer:
        """Answers what its replica keeps by key, while the replica runs."""
        looking = self._replica.looking if self._replica is not None else None
        return looking.answer(question) if looking is not None else KeptAnswer(refused="away")

    # -- the thread ------------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            with self._wake:
                if self._closing:
                    return
                want = self._want
            try:
                self._observe(want)
                action = next_action(want, self._have(want), self._runtime.now_ms())
            except Exception:
                # For example, no more files can be opened. Without this thread, nothing would reach the
                # group.
                log.exception("%s: could not be looked at; it is tried again", self.group)
                action = Idle()
            if isinstance(action, Idle):
                self._wait(want, action.until_ms)
                continue
            if isinstance(action, Forget):
                if self._forget():
                    return
                continue
            try:
                self._perform(action)
            except Exception as error:
                self._failed(error, action)
            self._runtime.changed()

    def _wait(self, want: DesiredReplica | None, until_ms: int | None) -> None:
        timeout_s = LOOK_AGAIN_S
        if until_ms is not None:
            timeout_s = min(timeout_s, max(0.01, (until_ms - self._runtime.now_ms()) / 1000))
        with self._wake:
            if self._want is want and not self._closing:
                self._wake.wait(timeout_s)

    def _have(self, want: DesiredReplica | None) -> Have:
        replica, state = self._replica, self._state
        ends = self._runtime.java_ends.of(self.group, want)
        status = replica.status() if replica is not None else None
        return Have(
            group=self.group,
            generation=self._local.generation(),
            running=replica is not None,
            version=state.spec.version if replica is not None and state.spec else None,
            told=state.told,
            may_own=status is not None and self._may_own(status),
            owns_by=status.order_id if status is not None and status.role is Role.OWNER else None,
            ended_for=state.ended_for,
            damaged=state.damaged,
            final_checkpoint=state.final_checkpoint,
            retry_at_ms=state.failures.retry_at_ms,
            gave_up=state.failures.gave_up,
            held=is_held(ends),
            in_turn=not self._is_suspect(want) or self._runtime.java_ends.may_try(self.group),
            unwanted_since_ms=state.unwanted_since_ms,
        )

    def _is_suspect(self, want: DesiredReplica | None) -> bool:
        return is_suspect(self._runtime.java_ends.of(self.group, want), self._runtime.now_ms())

    def _may_own(self, status: ReplicaStatus) -> bool:
        """Returns whether it owns, or may own at any moment by an order that it has not carried out yet."""
        told = self._state.told
        order = told.order if told else None
        return status.role is Role.OWNER or (order is not None and order.id != status.order_id)

    def _observe(self, want: DesiredReplica | None) -> None:
        """Takes note of a replica that ended by itself, and of a new wish, which clears old failures."""
        self._state = self._state.wished(want)
        replica = self._replica
        if replica is None:
            return
        status = replica.status()
        if status.role is not Role.STOPPED:
            self._give_turn_on(want, status)
            return
        if status.at_work:
            self._state = replace(self._state, fell_at_work_ms=self._runtime.now_ms())
        # It has ended, but its query may still be closing files in the directory that is used next.
        replica.stop(STOP_TIMEOUT_S)
        self._put_down(replica, self._state.ended_by_itself(replica.status(), self._runtime.now_ms()))

    def _give_turn_on(self, want: DesiredReplica | None, status: ReplicaStatus) -> None:
        """Lets the next suspect start, once this one has done what ended Java before and Java still runs."""
        if status.at_work or status.phase in ("starting", "reading the journal"):
            return
        ends = self._runtime.java_ends.of(self.group, want)
        for_ms = self._runtime.now_ms() - self._state.started_ms
        if has_come_through(ends, status.batch_ms_p50 is not None, for_ms):
            self._runtime.java_ends.tried(self.group)

    def _perform(self, action: Action) -> None:
        replica = self._replica
        match action:
            case Fetch():
                self._fetch(action)
            case Start():
                self._start_replica(action)
            case Stop():
                log.info("%s: stopping, %s", self.group, action.reason)
                assert replica is not None
                replica.stop(STOP_TIMEOUT_S)
                self._put_down(replica, self._state.put_down(replica.status()))
            case FinalCheckpoint():
                self._final_checkpoint()
            case Discard():
                with self._files:
                    shutil.rmtree(self._local.at(action.generation))
                self._taken = self._growing = None
                self._state = replace(self._state, damaged=False)
            case Tell():
                assert replica is not None
                replica.direct(action.directive)
                self._state = replace(self._state, told=action.directive)
            case MarkUnwanted():
                self._state = replace(self._state, unwanted_since_ms=self._runtime.now_ms())

    def _fetch(self, action: Fetch) -> None:
        self._set_phase("fetching")
        incoming = self._local.incoming(action.generation)
        shutil.rmtree(incoming, ignore_errors=True)
        incoming.parent.mkdir(parents=True, exist_ok=True)
        bytes_fetched = self._runtime.checkpoints.fetch(
            self.group, action.source, incoming, lambda note: log.info("%s: %s", self.group, note)
        )
        with self._files:
            incoming.rename(self._local.at(action.generation))
        self._state = self._state.fetched(bytes_fetched)
        self._runtime.changed()

    def _start_replica(self, action: Start) -> None:
        if self._is_suspect(self._want) and not self._runtime.java_ends.try_(self.group):
            return  # another slot was faster; this one looks again
        self._set_phase("starting")
        directory = self._local.at(action.generation)
        directory.mkdir(parents=True, exist_ok=True)
        self._runtime.fetch_files(action.spec)
        replica = self._runtime.open_replica(action.spec, directory)
        replica.direct(action.directive)
        replica.start()
        self._state = self._state.started(action.spec, action.directive, self._runtime.now_ms())
        self._replica = replica

    def _final_checkpoint(self) -> None:
        self._set_phase("checkpointing")
        generation, want = self._local.generation(), self._want
        assert generation is not None
        spec = self._state.spec or (want.spec if want else None)
        if spec is not None:
            with self._files:
                directory = self._local.at(generation)
                epoch = self._state.last.epoch
                self._taken = self._runtime.checkpoints.take(spec, epoch, directory, self._growing)
            self._state = self._state.checkpointed(self._taken)
        else:
            self._state = replace(self._state, final_checkpoint=True, phase="stopped")
        self._runtime.changed()

    def _forget(self) -> bool:
        with self._wake:
            if self._want is not None:
                return False
            self.gone = True
        with self._files:
            shutil.rmtree(self._local.root, ignore_errors=True)
        try:
            self._runtime.checkpoints.forget(self.group)
        except CheckpointError:
            log.exception("%s: its checkpoints on this node could not be removed", self.group)
        self._runtime.changed()
        return True

    def _put_down(self, replica: RunningReplica, state: SlotState) -> None:
        """Takes over the `state` after the replica has ended."""
        self._state, self._growing, self._replica = state, replica.growing, None
        self._runtime.java_ends.tried(self.group)

    def _set_phase(self, phase: str) -> None:
        self._state = replace(self._state, phase=phase)
        self._runtime.changed()

    def _failed(self, error: Exception, action: Action) -> None:
        log.error("%s: %s failed", self.group, type(action).__name__, exc_info=error)
        if isinstance(action, Start):
            self._runtime.java_ends.tried(self.group)
        now_ms = self._runtime.now_ms()
        self._state = self._state.failed(
            ReplicaError.of(
                "checkpoint-not-fetched" if isinstance(action, Fetch) else "order-failed",
                f"{_FAILED.get(type(action), 'It could not be brought to what is wanted')}: {error}",
                now_ms,
                traceback="".join(traceback.format_exception(error)),
            ),
            now_ms,
            of_others=isinstance(error, ServiceUnavailable),
        )
        if not isinstance(action, Fetch | Start):
            with self._wake:  # these have no back-off of their own
                self._wake.wait(LOOK_AGAIN_S)


_FAILED: dict[type[Action], str] = {
    Start: "It could not be started",
    Fetch: "Its checkpoint could not be fetched",
    Stop: "It could not be stopped",
    FinalCheckpoint: "Its last checkpoint could not be taken",
}
