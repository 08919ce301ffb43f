"""Runs one group's copy on this node, from start to stop.

    start   the replica follows the journal from its local state
    direct  the replica carries out a `Directive`:
        order    when it has caught up, it claims, and then owns
        succeed  when it has caught up, it arms itself, and owns as soon as the owner has released to it
        release  as the owner, it releases the group to the armed successor, and then follows
    stop    the replica begins no further batch, commits the running one, and keeps its local state

The replica's own thread does all of this. The public methods only store what is wanted, and wake the thread.
`core` decides what the replica may do. So does `pipeline_runtime.handover.protocol`, through `roles`.
"""

from __future__ import annotations

import logging
import threading
import traceback
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

from pipeline_runtime.batch.tasks import KeysShared
from pipeline_runtime.checkpoint.growing import GrowingFiles
from pipeline_runtime.handover.ownership import Ownership
from pipeline_runtime.journal.records import Boundary, Ends, Retire
from pipeline_runtime.kafka.partition_reader import RangeGone
from pipeline_runtime.kafka.transactions import Doubtful, Fenced
from pipeline_runtime.model.desired import Directive, ReplicaStatus, Role, Stalled
from pipeline_runtime.model.ids import Seq
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.replica import definitions
from pipeline_runtime.replica.batch_commit import NotCommitted
from pipeline_runtime.replica.core import is_taken_over, needs_another_definition
from pipeline_runtime.replica.errors import explain, text_of
from pipeline_runtime.replica.following import JournalFollower
from pipeline_runtime.replica.host import ReplicaHost
from pipeline_runtime.replica.local_state import (
    begin_fresh,
    beginning,
    drop_unfinished,
    open_state,
    relocate,
    size_bytes,
)
from pipeline_runtime.replica.looking import Looking
from pipeline_runtime.replica.places import Places
from pipeline_runtime.replica.registry_wait import RegistryWait
from pipeline_runtime.replica.release import OwnerRelease
from pipeline_runtime.replica.roles import Roles, now_ms
from pipeline_runtime.replica.run import Run, Start
from pipeline_runtime.replica.stalls import STUCK_S, BatchTooLong, stalled
from pipeline_runtime.replica.state import ReplicaState
from pipeline_runtime.replica.status import status_of
from pipeline_runtime.replica.topic_guard import TopicGuard

log = logging.getLogger(__name__)

RETIRE_TIMEOUT_S = 30.0
# How long a fenced owner waits to read in the journal which replica has fenced it.
CLAIM_AWAITED_S = 5.0
_SIZE_EVERY_S = 5.0
# The longest time between two looks of the thread, if no change wakes it.
_LOOK_S = 0.5
# The least time between two looks of an owner that has committed. Each batch makes several changes, and none
# of them is urgent.
_OWNER_LOOK_S = 0.05


class Replica:
    """All methods are thread-safe; only `stop` blocks."""

    def __init__(self, spec: GroupSpec, directory: Path, host: ReplicaHost) -> None:
        self.spec = spec
        self.directory = directory
        self._host = host
        self._state = ReplicaState(wanted_definition=spec.version)
        self._stopping = threading.Event()
        self._killed = False
        self._thread = threading.Thread(target=self._live, name=f"replica {spec.id}", daemon=True)
        self._run: Run | None = None  # the present run, or the last one
        self._journal = JournalFollower(spec, host.kafka, directory, self._state)
        self._keys_shared = False  # several partitions of its input have had rows of one key
        self._state_bytes = 0
        self._sized_at_s = 0.0
        self._ownership = Ownership(
            spec,
            host.kafka,
            host.node,
            self._journal,
            self._start_ends,
            self._begins_fresh,
            self._moves,
        )
        # The broker may hide an acknowledged record for some milliseconds. An owner that has not read its own
        # CLAIM would decide by the records before it.
        catch_up = partial(self._journal.catch_up, hidden=True)
        self._roles = Roles(spec.id, self._state, self._ownership, catch_up, host.changed, self._begin_owning)
        self._release = OwnerRelease(self._state, self._ownership)
        self._guard = TopicGuard(spec.id, host.kafka, self._state)
        self._registry_wait = RegistryWait(self._state, self._guard.end_of, host.changed)
        self._places = Places(spec, host.kafka, self._state, self._guard, self._journal.check_not_rewound)

    # --- what is wanted of it

    def start(self) -> None:
        self._roles.set(Role.STANDBY, "starting")
        self._thread.start()

    def direct(self, directive: Directive) -> None:
        """Sets what is wanted of the replica from now on. An order that it already had changes nothing. That
        holds both if the replica owns by that order and if the order was refused."""
        with self._state.changed:
            self._pause(directive.paused_since_ms)
            self._state.direct(directive, exact=self.spec.follow == "exact")
        self._host.changed()

    @property
    def directive(self) -> Directive:
        return self._state.directive

    @property
    def growing(self) -> GrowingFiles:
        """Returns the growing files of the present run, or of the last one."""
        return self._run.growing if self._run is not None else GrowingFiles()

    @property
    def looking(self) -> Looking | None:
        """Returns what shows a processor's state, during a run and after it. Returns None before the first
        run."""
        return self._run.looking if self._run is not None else None

    def _pause(self, since_ms: int | None) -> None:
        """Pauses the group, or resumes it if `since_ms` is None. If the replica starts while its group is
        paused, the pause counts from `since_ms`, so that the sources' clocks stand still for the whole pause.
        The caller holds `changed`."""
        if since_ms is None:
            self._state.resume_at(now_ms())
        else:
            starts = self._thread.ident is None
            self._state.pause_since(since_ms if starts else now_ms())

    def stop(self, timeout_s: float) -> None:
        """Ends the replica when the running batch is committed, or after `timeout_s` without a commit."""
        with self._state.changed:
            self._stopping.set()
            self._state.drain()
        self._ownership.cancelled.set()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            deadline_s = monotonic() + timeout_s
            while self._thread.is_alive() and monotonic() < deadline_s and not self._is_stuck():
                self._thread.join(min(_LOOK_S, timeout_s))
            if self._thread.is_alive():
                self.kill()
                self._thread.join(timeout_s)

    def kill(self) -> None:
        """Ends the replica at once. The running batch may be committed or not."""
        self._killed = True
        self._stopping.set()
        self._ownership.cancelled.set()
        self._state.drain()

    def status(self) -> ReplicaStatus:
        with self._state.changed:
            return status_of(
                self.spec,
                self._state,
                self._roles,
                self._ownership,
                self._release,
                self._guard,
                self._run,
                state_bytes=self._state_bytes,
                stalled=self._stalled(),
                waits=self._registry_wait.error,
            )

    def _stalled(self) -> Stalled | None:
        """Returns what the replica has waited for too long, or None. The caller holds `changed`."""
        state = self._state
        if not self._thread.is_alive() or state.ended:
            return None
        return stalled(self._host.broker.silent_since_ms, state.batch_since_ms, state.reads_now, now_ms())

    def _is_stuck(self) -> bool:
        """Returns whether a batch has run for so long that no caller should wait for it."""
        with self._state.changed:
            since_ms = self._state.batch_since_ms
            return since_ms is not None and now_ms() - since_ms > STUCK_S * 1000

    def _check_batch(self) -> None:
        """Raises BatchTooLong if a batch takes too long. The time in which Kafka does not answer does not
        count, nor does the time of a question to a schema registry. The caller holds `changed`."""
        state, limit_s = self._state, self._host.batch_s
        if state.batch_since_ms is None:
            return
        is_asking = self._run is not None and self._run.registries.is_asking
        if is_asking or self._host.broker.silent_since_ms is not None:
            state.count_batch_from_now()
        elif now_ms() - state.batch_since_ms > limit_s * 1000:
            raise BatchTooLong(limit_s, state.reads_now, state.way_behind)

    def _check_followed(self) -> None:
        """Raises RangeGone if a follower's batch waits for rows of a deleted topic. They never come back, not
        even if somebody creates a topic with the same name. The caller holds `changed`."""
        state = self._state
        if state.permit is not None or state.granted is None or state.span is None:
            return
        topic = self._guard.gone(state.span.start.ends, state.span.end.ends)
        if topic is not None:
            raise RangeGone(
                f"the topic {topic} does not exist any more, and this copy needs the rows of it that were"
                " committed since its checkpoint"
            )

    # --- its thread

    def _live(self) -> None:
        failure: BaseException | None = None
        while not self._stopping.is_set():
            try:
                if not self._live_once():
                    break
            except Doubtful as error:
                log.warning("%s: %s; it is tried again", self.spec.id, error)
                self._stopping.wait(1.0)
            except BaseException as error:
                log.error("%s failed: %s", self.spec.id, text_of(error))
                failure = error
                break
        follows = self._state.permit is None
        self._roles.drop_permit()
        self._journal.close()
        self._ownership.cancelled.set()
        if failure is not None:
            self._roles.error = explain(
                failure, "".join(traceback.format_exception(failure)), now_ms(), follows=follows
            )
            self._roles.set(Role.STOPPED, "failed")
        else:
            self._roles.set(Role.STOPPED, self._roles.phase if self._roles.ended else "stopped")

    def _live_once(self) -> bool:
        """Runs the query from its start to its end. Returns whether to start it again.

        Reasons to start again are an owner's commit in doubt, an announced batch that was not committed, or a
        next batch of another definition.
        """
        local = self._open_local_state()
        self._roles.set(Role.STANDBY, "reading the journal")
        definitions.keep(self.directory, self.spec)
        marks = self._journal.follow(local.seq)
        if self._state.view.begins_fresh(local.seq) and beginning(self.directory).seq != local.seq:
            log.info("%s: at %d its state begins fresh, as its journal says", self.spec.id, local.seq)
            begin_fresh(self.directory, local)
        with self._state.changed:
            state = self._state
            state.state_begins_at(beginning(self.directory))
            definition = definitions.to_begin_with(
                state.view,
                local.seq,
                self.spec,
                self.directory,
                state.rewinds_to,
                fresh=state.takes_over_without_state,
            )
            ends = state.view.moved(
                Boundary(Seq(0), state.view.start or {}, 0) if not local.seq else local
            ).ends
        inputs = self._places.inputs(definition, ends)
        start = Start(definition, local, marks, inputs, tasks_max=1 if self._keys_shared else None)
        run = Run(
            start,
            self.directory,
            state,
            self._host,
            self._release,
            self._journal.remember,
            self._guard.oldest,
            self._guard.note,
        )
        self._run = run
        self._guard.watch(inputs)
        try:
            with state.changed:
                state.begin_run(ended=run.inputs.has_ended(state.view.moved(local).ends))
            return self._begin(run) and self._supervise(run)
        finally:
            run.close(stuck=self._is_stuck())
            self._guard.close()
            run.close()

    def _open_local_state(self) -> Boundary:
        """Opens the local state, and returns the boundary that it stands at. The boundary has seq 0 if there
        is no local state."""
        newest = open_state(self.directory)
        relocate(self.directory)
        dropped = drop_unfinished(self.directory)
        if dropped:
            log.info("%s: dropped the plans of unfinished batches %s", self.spec.id, dropped)
        return newest

    def _begin(self, run: Run) -> bool:
        """Starts the query. Returns False if `stop` was called while the replica waited for its turn."""
        if not self._host.starts.take(self._stopping):
            return False
        connected = self._state.connected
        connected.clear()
        self._host.starts.give_back_when(connected, lambda: self._stopping.is_set() or self._roles.ended)
        run.begin()
        self._roles.set(Role.STANDBY, "following")
        return True

    def _supervise(self, run: Run) -> bool:
        """Watches the query, and carries out orders. Returns whether to start the query again."""
        state, seen = self._state, -1
        while True:
            seen = state.wait_for_change(seen, _LOOK_S)
            if state.has_committed:
                self._stopping.wait(_OWNER_LOOK_S)
            self._measure_state(run)
            with state.changed:
                drained = state.draining and state.granted is None
                retire = state.directive.retire and state.permit is not None
                failed = state.failure is not None
                other_definition = needs_another_definition(state.facts(run.definition))
                self._journal.check_not_rewound()
                self._check_batch()
                self._check_followed()
            if self._journal.failure is not None:
                raise self._journal.failure
            if failed or not run.is_active():
                return self._after_failure(run)
            if self._killed or (self._stopping.is_set() and drained):
                return False
            if other_definition:
                log.info("%s: it starts again, with another definition", self.spec.id)
                if state.permit is not None:
                    self._roles.claim_again("it owns, but its query or its journal has another definition")
                return True
            if run.inputs.misfits(run.next_start):
                log.info("%s: it starts again, with the partitions that its topics have now", self.spec.id)
                if state.permit is not None:
                    self._roles.claim_again("it owns, but its query reads other partitions")
                return True
            if retire:
                return self._retire(run)
            if self._topics_moved(run):
                return True
            if self._registry_wait.look(run.next_start.ends):
                self._roles.claim_again("a person has chosen how it goes on")
                return True
            try:
                self._roles.step()
            except (Fenced, Doubtful) as error:
                if state.permit is None:
                    raise
                return self._after_loss(error)
            if self._roles.ended:
                return False

    def _topics_moved(self, run: Run) -> bool:
        """Checks whether the topics have changed. Returns whether the owner claims again, because it has to
        begin elsewhere in them."""
        told = self._guard.error
        why = self._guard.claims_because(run.next_start.ends)
        if self._guard.error is not told:
            self._host.changed()
        if why is not None:
            self._roles.claim_again(why)
        return why is not None

    def _after_failure(self, run: Run) -> bool:
        failure = self._state.failure
        if isinstance(failure, Fenced | Doubtful):
            return self._after_loss(failure)
        if self._stopping.is_set():
            return False
        if isinstance(failure, NotCommitted):
            log.info("%s: %s; it follows from there", self.spec.id, failure)
            return True
        if isinstance(failure, KeysShared):
            log.info("%s: %s; from now on one task processes them all", self.spec.id, failure)
            self._keys_shared = True
            return True
        if self._guard.explains_failure(self._failed_at(run)):
            log.warning("%s: %s; its topics have changed", self.spec.id, failure)
            self._roles.claim_again("a batch has failed because its topics have changed")
            return True
        failure = failure or run.exception() or RuntimeError("the query ended by itself")
        if self._is_to_wait(run, failure):
            self._roles.claim_again("a batch has failed because of a schema registry")
            return True
        raise failure

    def _is_to_wait(self, run: Run, failure: BaseException) -> bool:
        """Returns whether this owner keeps the group and waits for a schema registry. A follower fails
        instead, and its node starts it again."""
        error, needed = explain(failure, text_of(failure), now_ms()), run.registries.needed
        if self._state.permit is None or error.code != "schema-registry" or not needed:
            return False
        self._registry_wait.begin(error, needed)
        return True

    def _failed_at(self, run: Run) -> Ends:
        """Returns the offsets at which the failed batch begins. If no batch was running, returns those of the
        next batch."""
        with self._state.changed:
            span = self._state.newest_span if self._state.granted is not None else None
        return run.next_start.ends if span is None else span.start.ends

    def _after_loss(self, loss: Fenced | Doubtful) -> bool:
        """Ends the ownership, because this owner may not commit any more. The journal shows whether another
        replica owns. Returns whether to start the query again."""
        if isinstance(loss, Fenced) and self._was_replaced():
            self._roles.give_way(str(loss))
            return False
        self._roles.claim_again(str(loss))
        self._state.drain(self._stopping.is_set())
        return True

    def _was_replaced(self) -> bool:
        """Returns whether another replica owns the group now.

        A claimant fences the owner before its CLAIM is in the journal, and may die in between. The broker
        also fences an owner whose transaction has been open for too long. In both cases no replica owns.
        """
        state = self._state
        with state.changed:
            permit = state.permit
            if permit is None:
                return True

            def replaced() -> bool:
                return is_taken_over(state.view, permit.epoch)

            state.changed.wait_for(lambda: replaced() or self._stopping.is_set(), CLAIM_AWAITED_S)
            return replaced()

    def _retire(self, run: Run) -> bool:
        with self._state.changed:
            self._state.drain()
            self._state.changed.wait_for(
                lambda: self._state.granted is None or not run.is_active() or self._is_stuck(),
                timeout=RETIRE_TIMEOUT_S,
            )
            permit = self._state.permit
            if permit is None:  # the running batch has released the group: the new owner retires it
                self._state.drain(self._stopping.is_set())
                return True
        try:
            permit.commit([Retire(permit.epoch, self._host.node)])
            # The broker answers before it marks the transaction as committed. Until then it hides the RETIRE.
            self._journal.catch_up(hidden=True)
        except (Fenced, Doubtful) as error:
            return self._after_loss(error)
        self._roles.set(Role.STOPPED, "retired")
        return False

    # --- called by others

    def _start_ends(self, starts: Mapping[str, Any]) -> Ends:
        offsets = self._run.offsets if self._run is not None else None
        return self._places.start_ends(offsets, now_ms(), starts)

    def _moves(self, starts: Mapping[str, Any]) -> Ends | None:
        accepted = *self._state.directive.accepts, *self._registry_wait.chosen
        return self._places.moves(starts, accepted)

    def _begin_owning(self) -> None:
        if self._run is not None:
            self._run.timing.begin_owning()

    def _begins_fresh(self) -> bool:
        with self._state.changed:
            return self._state.takes_over_without_state

    def _measure_state(self, run: Run) -> None:
        if monotonic() - self._sized_at_s > _SIZE_EVERY_S:
            self._sized_at_s = monotonic()
            kept = run.state_bytes
            self._state_bytes = size_bytes(self.directory) if kept is None else kept
