"""One group's place on this node: a thread that carries out `next_action` until nothing is left to do.

Each group has its own, so that a slow fetch or stop never holds up another group.
"""

from __future__ import annotations

import logging
import shutil
import threading
import traceback

from pipeline_runtime.checkpoint.errors import CheckpointError, ServiceUnavailable
from pipeline_runtime.checkpoint.growing import GrowingFiles
from pipeline_runtime.model.desired import (
    DesiredReplica,
    Directive,
    ReplicaError,
    ReplicaStatus,
    Role,
    is_held,
)
from pipeline_runtime.model.ids import Seq
from pipeline_runtime.model.kept import KeptAnswer, KeptQuestion
from pipeline_runtime.model.spec import GroupSpec
from workers.node.java_ends import has_come_through, held_error, is_suspect
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

log = logging.getLogger(__name__)

STOP_TIMEOUT_S = 20.0
AT_WORK_MS = 10_000
"""A replica whose Java process ends fails soon after, and the node may see that first."""
LOOK_AGAIN_S = 1.0
"""How often a slot looks at its replica when nobody woke it."""
REPLACE_EVERY_MS = 3_600_000
"""Local state that cannot be used is replaced by a checkpoint at most this often: a state that goes bad
again and again is to be seen, not to be hidden."""


class Slot:
    def __init__(self, group: str, runtime: NodeRuntime) -> None:
        self.group = group
        self._runtime = runtime
        self._local = LocalState(runtime.directory, group)
        self._wake = threading.Condition()
        self._want: DesiredReplica | None = None
        self._closing = False
        self.gone = False  # nothing is left of the group here, and nothing is wanted
        # Below: changed by the slot's thread alone, read by `status`.
        self._replica: RunningReplica | None = None
        self._spec: GroupSpec | None = None
        self._growing: GrowingFiles | None = None  # of the replica that ended last
        self._told: Directive | None = None
        self._ended_for: str | None = None
        self._damaged = False
        self._replaced_at_ms: int | None = None
        self._final: bool = False
        self._failures = Failures()
        self._failures_of: tuple[object, ...] = ()
        self._error: ReplicaError | None = None
        self._unwanted_since_ms: int | None = None
        self._phase = ""  # like the error, what came of the wish that the failures are of
        self._bytes_fetched = 0
        self._started_ms = 0
        self._fell_at_work_ms = 0  # when a replica was found to have ended in a batch
        self._taken: Taken | None = None
        self._last = ReplicaStatus(group=group, role=Role.STOPPED)
        # A snapshot must not see its directory being replaced.
        self._files = threading.Lock()
        self._thread = threading.Thread(target=self._run, name=f"slot {group}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def want(self, desired: DesiredReplica | None) -> bool:
        """Tell what is wanted; False: this slot has ended, make another."""
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
        """Ends the replica after its running batch and keeps its local state. Blocks."""
        with self._wake:
            self._closing = True
            self._wake.notify_all()
        replica = self._replica
        if replica is not None:
            replica.stop(timeout_s)

    # -- what others see -------------------------------------------------------------------------

    def status(self) -> ReplicaStatus:
        replica, want, taken = self._replica, self._want, self._taken
        status = replica.status() if replica is not None else self._last
        update: dict[str, object] = {
            "group": self.group,
            "generation": self._local.generation() or (want.generation if want else 1),
            "bytes_fetched": self._bytes_fetched,
        }
        if replica is None:
            update |= {"role": Role.STOPPED, "phase": self._phase or status.phase}
        ends = self._runtime.java_ends.of(self.group, want)
        update |= {"java_ends": ends, "vouched": want.vouched if want else ""}
        if replica is None and want is not None and want.role is not Role.STOPPED and is_held(ends):
            update |= {"phase": "held", "error": held_error(ends)}
            return status.model_copy(update=update)
        # A new wish may have come while the slot was still busy with the one before.
        error = self._error if want is None or _key(want) == self._failures_of else None
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
        """What is wanted, if the replica was starting or in a batch until just now."""
        replica = self._replica
        just_now = self._runtime.now_ms() - self._fell_at_work_ms < AT_WORK_MS
        return self._want if just_now or (replica is not None and replica.status().at_work) else None

    @property
    def failures(self) -> Failures:
        """Of the present wish: another one begins anew."""
        return self._failures

    @property
    def told(self) -> Directive | None:
        """What the running replica was told last."""
        return self._told

    def checkpoint(self) -> bool:
        """Take one now if the replica owns and has moved on since; True: there is a new one."""
        replica, spec = self._replica, self._spec
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
        """At what its replica keeps by key, while that runs."""
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
                # Say, no more files may be opened: without this thread the node would hear nothing any more.
                log.exception("%s: cannot be looked at, it is tried again", self.group)
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
        replica = self._replica
        ends = self._runtime.java_ends.of(self.group, want)
        status = replica.status() if replica is not None else None
        return Have(
            group=self.group,
            generation=self._local.generation(),
            running=replica is not None,
            version=self._spec.version if replica is not None and self._spec else None,
            told=self._told,
            may_own=status is not None and self._may_own(status),
            owns_by=status.order_id if status is not None and status.role is Role.OWNER else None,
            ended_for=self._ended_for,
            damaged=self._damaged,
            final_checkpoint=self._final,
            retry_at_ms=self._failures.retry_at_ms,
            gave_up=self._failures.gave_up,
            held=is_held(ends),
            in_turn=not self._is_suspect(want) or self._runtime.java_ends.may_try(self.group),
            unwanted_since_ms=self._unwanted_since_ms,
        )

    def _is_suspect(self, want: DesiredReplica | None) -> bool:
        return is_suspect(self._runtime.java_ends.of(self.group, want), self._runtime.now_ms())

    def _may_own(self, status: ReplicaStatus) -> bool:
        """An order that it was given and has not carried out may make it an owner any moment."""
        order = self._told.order if self._told else None
        return status.role is Role.OWNER or (order is not None and order.id != status.order_id)

    def _observe(self, want: DesiredReplica | None) -> None:
        """Take note of a replica that ended by itself, and of a new wish that clears old failures."""
        if want is not None:
            self._unwanted_since_ms = None
            key = _key(want)
            if key != self._failures_of:
                self._failures_of, self._failures = key, Failures()
                self._forget_error()
        replica = self._replica
        if replica is None:
            return
        status = replica.status()
        if status.role is not Role.STOPPED:
            self._give_turn_on(want, status)
            return
        if status.at_work:
            self._fell_at_work_ms = self._runtime.now_ms()
        ended_for = self._told.order.id if self._told and self._told.order else None
        # It has ended, but its query may still be closing files of the directory we go on with.
        replica.stop(STOP_TIMEOUT_S)
        status = replica.status()
        self._put_down(status)
        if status.retired or status.order_refused is not None or status.phase == "fenced":
            self._ended_for = ended_for
            self._error = status.error
        elif status.error is not None:
            self._count_failure(self._may_replace(status.error) if status.error.damaged else status.error)
        else:
            self._count_failure(
                ReplicaError(
                    message="It ended without being told to.",
                    safe="What was committed stays committed; the local state is kept.",
                    next="It is started again from its local state.",
                    at_ms=self._runtime.now_ms(),
                )
            )

    def _give_turn_on(self, want: DesiredReplica | None, status: ReplicaStatus) -> None:
        """When it has done what ended Java before, and Java is still there."""
        if status.at_work or status.phase in ("starting", "reading the journal"):
            return
        ends = self._runtime.java_ends.of(self.group, want)
        for_ms = self._runtime.now_ms() - self._started_ms
        if has_come_through(ends, status.batch_ms_p50 is not None, for_ms):
            self._runtime.java_ends.tried(self.group)

    def _forget_error(self) -> None:
        """Whoever gave the new wish must not take the former one's error for its answer."""
        self._error = None
        if self._phase == "failed":
            self._phase = "waiting"

    def _may_replace(self, error: ReplicaError) -> ReplicaError:
        """Let the local state be replaced, unless that was done lately."""
        now_ms = self._runtime.now_ms()
        if self._replaced_at_ms is not None and now_ms - self._replaced_at_ms < REPLACE_EVERY_MS:
            next_step = (
                "Its state was replaced by a checkpoint within the last hour already, so look for the "
                "cause: the disk, or the operator. Restore the element on another node meanwhile."
            )
        else:
            self._damaged, self._replaced_at_ms = True, now_ms
            next_step = "The node takes the newest checkpoint instead, by itself, and goes on from there."
        return error.model_copy(update={"next": next_step})

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
                self._put_down(replica.status())
            case FinalCheckpoint():
                self._final_checkpoint()
            case Discard():
                with self._files:
                    shutil.rmtree(self._local.at(action.generation))
                self._taken, self._growing, self._damaged = None, None, False
            case Tell():
                assert replica is not None
                self._tell(replica, action.directive)
            case MarkUnwanted():
                self._unwanted_since_ms = self._runtime.now_ms()

    def _tell(self, replica: RunningReplica, directive: Directive) -> None:
        replica.direct(directive)
        self._told = directive

    def _fetch(self, action: Fetch) -> None:
        self._set_phase("fetching")
        incoming = self._local.incoming(action.generation)
        shutil.rmtree(incoming, ignore_errors=True)
        incoming.parent.mkdir(parents=True, exist_ok=True)
        self._bytes_fetched = self._runtime.checkpoints.fetch(
            self.group, action.source, incoming, lambda note: log.info("%s: %s", self.group, note)
        )
        with self._files:
            incoming.rename(self._local.at(action.generation))
        self._final = True
        self._set_phase("fetched")

    def _start_replica(self, action: Start) -> None:
        if self._is_suspect(self._want) and not self._runtime.java_ends.try_(self.group):
            return  # another slot was faster: it is looked at again
        self._set_phase("starting")
        directory = self._local.at(action.generation)
        directory.mkdir(parents=True, exist_ok=True)
        self._runtime.fetch_files(action.spec)
        replica = self._runtime.open_replica(action.spec, directory)
        self._tell(replica, action.directive)
        replica.start()
        self._started_ms = self._runtime.now_ms()
        self._spec, self._ended_for, self._final = action.spec, None, False
        self._error = None
        self._phase = ""
        self._replica = replica

    def _final_checkpoint(self) -> None:
        self._set_phase("checkpointing")
        generation, want = self._local.generation(), self._want
        assert generation is not None
        spec = self._spec or (want.spec if want else None)
        if spec is not None:
            with self._files:
                directory = self._local.at(generation)
                taken = self._runtime.checkpoints.take(spec, self._last.epoch, directory, self._growing)
            # Where the local state stands is what a successor gets: after a kill that may be behind
            # the journal, which the successor then follows.
            self._taken = taken
            seq = taken.seq if taken else Seq(0)
            self._last = self._last.model_copy(
                update={"seq": seq, "epoch": max(self._last.epoch, taken.epoch if taken else 0)}
                | ({} if taken else {"checkpoint_seq": Seq(0)})
            )
        self._final = True
        self._set_phase("stopped")

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

    def _put_down(self, status: ReplicaStatus) -> None:
        self._last = status.model_copy(update={"role": Role.STOPPED, "error": None})
        self._phase = (
            status.phase if status.phase in ("fenced", "failed", "retired", "refused") else "stopped"
        )
        if self._replica is not None:
            self._growing = self._replica.growing
        self._replica = self._told = None
        self._final = False
        self._runtime.java_ends.tried(self.group)

    def _set_phase(self, phase: str) -> None:
        self._phase = phase
        self._runtime.changed()

    def _failed(self, error: Exception, action: Action) -> None:
        log.error("%s: %s failed", self.group, type(action).__name__, exc_info=error)
        self._phase = "failed"
        if isinstance(action, Start):
            self._runtime.java_ends.tried(self.group)
        self._count_failure(
            ReplicaError(
                message=f"{_FAILED.get(type(action), 'It could not be brought to what is wanted')}: {error}",
                safe="What was committed stays committed; no state was lost.",
                next="It is tried again by itself; see the node's log when that does not help.",
                traceback="".join(traceback.format_exception(error)),
                at_ms=self._runtime.now_ms(),
            ),
            of_others=isinstance(error, ServiceUnavailable),
        )
        if not isinstance(action, Fetch | Start):
            with self._wake:  # these have no back-off of their own
                self._wake.wait(LOOK_AGAIN_S)

    def _count_failure(self, error: ReplicaError, *, of_others: bool = False) -> None:
        failures = self._failures.and_one_at(self._runtime.now_ms(), of_others=of_others)
        if failures.gave_up:
            error = error.model_copy(
                update={
                    "next": "It failed 5 times in 10 minutes and stays down. Mend the cause, then restart "
                    "this node or restore the element on another one; when its parameters are the cause, "
                    "change them and deploy again. Each way it goes on from its state."
                }
            )
        self._error, self._phase = error, "failed"
        self._failures = failures


_FAILED: dict[type[Action], str] = {
    Start: "It could not be started",
    Fetch: "Its checkpoint could not be fetched",
    Stop: "It could not be stopped",
    FinalCheckpoint: "Its last checkpoint could not be taken",
}


def _key(want: DesiredReplica) -> tuple[object, ...]:
    """What makes it another wish, for which nothing has failed yet."""
    source = (want.source.url, want.source.seq) if want.source else None
    order_id = want.order.id if want.order else None
    return (want.generation, order_id, want.spec.version, want.role, source, want.vouched)
