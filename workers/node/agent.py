"""The agent: holds the node's slots, and brings them to the newest desired state."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from time import monotonic

from pipeline_runtime.model.connectors import SealedConnection
from pipeline_runtime.model.desired import (
    DesiredReplica,
    NodeDesired,
    RefusedReplica,
    ReplicaError,
    ReplicaStatus,
    Role,
)
from pipeline_runtime.model.ids import Seq
from pipeline_runtime.model.kept import KeptAnswer, KeptQuestion
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.planning.plan import topics
from workers.node.checkpoints import Tried, due
from workers.node.desired_store import DesiredStore
from workers.node.leaving import elements_held
from workers.node.runtime import NodeRuntime
from workers.node.slot import Slot

log = logging.getLogger(__name__)

# How often batches are counted if nothing else tells of them.
LOOK_S = 1.0
_NEVER = Tried(float("-inf"), Seq(-1))


Connected = tuple[Sequence[tuple[DesiredReplica, ReplicaStatus | None]], Sequence[SealedConnection]]


def topics_wanted(desired: NodeDesired) -> frozenset[str]:
    """Returns the topics of groups that are to go on. Those of a group that retires or stops may be deleted
    before its node hears that it is gone. Pure."""
    specs = [each.spec for each in desired.replicas if each.role is not Role.STOPPED and not each.retire]
    own = {topic.name for spec in specs for topic in topics(spec)}
    read = {item.topic for spec in specs for item in spec.inputs}
    return frozenset(own | read | {item.topic for spec in specs for item in spec.outputs})


class Agent:
    def __init__(
        self,
        node: str,
        runtime: NodeRuntime,
        store: DesiredStore,
        checkpoint_s: float,
        checkpoint_batches: int = 0,
        directed: Callable[[NodeDesired], None] = lambda _: None,
    ) -> None:
        """`directed` is told each desired state before the slots are."""
        self._node = node
        self._runtime = runtime
        self._store = store
        # Held during writes to a slow disk, so nothing that a batch or a heartbeat waits for may need it.
        self._applying = threading.Lock()
        self._slots: dict[str, Slot] = {}  # replaced as a whole, so it is read without a lock
        self._refused: dict[str, tuple[int, ReplicaError]] = {}  # group -> its generation, the error
        self._desired = NodeDesired(node=node, revision=0)
        self._closing = threading.Event()
        self._every_s = checkpoint_s
        self._every_batches = checkpoint_batches
        self._directed = directed
        self._tried: dict[str, Tried] = {}
        self._look = threading.Event()
        self._checkpointer = threading.Thread(target=self._checkpoint_all, name="checkpoints", daemon=True)

    def start(self) -> None:
        """Brings up what the disk says, without asking anybody."""
        stored = self._store.load()
        if stored is not None and stored.node == self._node:
            with self._applying:
                self._tell_slots(stored)
        self._checkpointer.start()

    @property
    def revision(self) -> int:
        return self._desired.revision

    def apply(self, desired: NodeDesired) -> bool:
        """Takes over a newer desired state. Returns False if it is not newer, or not for this node."""
        if desired.node != self._node:
            log.error("ignored the desired state of %s, which came to %s", desired.node, self._node)
            return False
        with self._applying:
            if desired.revision <= self._desired.revision or self._closing.is_set():
                return False
            try:
                self._store.save(desired)
            except (OSError, ValueError) as error:
                # Not even a full disk may keep a node from letting elements go. After a restart it is told
                # again.
                log.error("what is wanted of this node could not be written down: %s", error)
            self._tell_slots(desired)
        self._runtime.changed()
        return True

    def wake(self) -> None:
        """Lets the slots look at their replicas now: something has changed in one."""
        for slot in self._slots.values():
            slot.wake()
        if self._every_batches:
            self._look.set()

    @property
    def is_stuck(self) -> bool:
        """Whether control says that nothing this leaving node still owns can be moved away."""
        return self._desired.stuck

    def to_hand_over(self) -> int:
        """Returns how many elements would stand still if the node ended now."""
        return elements_held(self._desired, self.statuses())

    def statuses(self) -> tuple[ReplicaStatus, ...]:
        found = {slot.group: slot.status() for slot in self._slots.values() if not slot.gone}
        for group, (generation, error) in self._refused.items():
            status = found.get(group) or ReplicaStatus(
                group=group, generation=generation, role=Role.STOPPED, phase="failed"
            )
            found[group] = status.model_copy(update={"error": error})
        return tuple(found.values())

    def connected(self, concerns: Callable[[GroupSpec], bool]) -> Connected:
        """Returns what is wanted here of the groups that `concerns` names, with how they stand, and the
        connections that elements may use."""
        desired, slots = self._desired, self._slots
        found: list[tuple[DesiredReplica, ReplicaStatus | None]] = []
        for replica in desired.replicas:
            if concerns(replica.spec):
                slot = slots.get(replica.spec.id)
                found.append((replica, None if slot is None or slot.gone else slot.status()))
        return found, desired.connections

    @property
    def connections(self) -> tuple[SealedConnection, ...]:
        """Returns the connections that elements may use."""
        return self._desired.connections

    def files_in_use(self) -> frozenset[str]:
        """Returns the sha256s of the files that replicas read which run here or are wanted here."""
        started = [slot.started_spec for slot in self._slots.values() if not slot.gone]
        specs = [*(replica.spec for replica in self._desired.replicas), *filter(None, started)]
        return frozenset(sha for spec in specs for sha in spec.files.values())

    def topics_wanted(self) -> frozenset[str]:
        """Returns the topics that the groups read and write which are to run here and go on."""
        return topics_wanted(self._desired)

    def java_ended(self) -> None:
        """Notes which groups may have ended Java, so that it does not happen for ever."""
        slots = ((slot.group, slot.wanted_at_work()) for slot in self._slots.values())
        at_work = {group: want for group, want in slots if want is not None}
        read = {slot.group: slot.last_read() for slot in self._slots.values() if slot.group in at_work}
        self._runtime.java_ends.note(at_work, self._runtime.now_ms(), read)
        self._runtime.changed()

    def checkpoint(self, group: str) -> bool:
        """Takes a checkpoint now.

        Returns False if the group does not own here, or has no batch since the last one.
        """
        slot = self._slots.get(group)
        return slot is not None and slot.checkpoint()

    def look(self, question: KeptQuestion) -> KeptAnswer:
        slot = self._slots.get(question.group)
        return slot.look(question) if slot is not None else KeptAnswer(refused="away")

    def close(self, timeout_s: float) -> None:
        """Ends all replicas at the same time, each after its running batch. Local state is kept."""
        self._closing.set()
        self._look.set()
        deadline = monotonic() + timeout_s
        with self._applying:  # so that slots which are being started are ended as well
            slots = list(self._slots.values())
        threads = [
            threading.Thread(target=slot.close, args=(max(0.1, deadline - monotonic()),), daemon=True)
            for slot in slots
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(0.0, deadline - monotonic()))

    def _tell_slots(self, desired: NodeDesired) -> None:
        self._directed(desired)
        wanted = {replica.spec.id: replica for replica in desired.replicas}
        # Groups that are on the disk and that nobody wants are let go of after a while.
        on_disk = {path.name for path in (self._runtime.directory / "replicas").glob("*") if path.is_dir()}
        slots = {group: slot for group, slot in self._slots.items() if not slot.gone}
        self._refused = {part.group: (part.generation, self._refusal(part)) for part in desired.refused}
        new = []
        # A refused group stays as it is: nobody knows what is wanted of it, but nobody gave it up.
        for group in (wanted.keys() | slots.keys() | on_disk) - self._refused.keys():
            slot = slots.get(group)
            if slot is None or not slot.want(wanted.get(group)):
                slot = Slot(group, self._runtime)
                slot.want(wanted.get(group))
                new.append(slot)
        try:
            for slot in new:
                slot.start()
                slots[slot.group] = slot
        finally:
            # The machine may have no thread left. Then the slot is missing, and the revision does not count
            # as seen, so it comes again.
            self._slots = slots
        self._desired = desired

    def _refusal(self, part: RefusedReplica) -> ReplicaError:
        message = f"{self._node} cannot take what is wanted of it: {part.reason}."
        _, before = self._refused.get(part.group, (0, None))
        if before is not None and before.message == message:
            return before  # with its old time, so that it is not told as something new
        log.error("%s: %s The other groups go on.", part.group, message)
        return ReplicaError.of("definition-refused", message, self._runtime.now_ms())

    def _checkpoint_all(self) -> None:
        """Takes checkpoints when they are due by time or, if batches are counted, by batches.

        For batches it looks at each change of a replica, and every second, because not every batch is told.
        """
        while not self._closing.is_set():
            now_s = monotonic()
            left_s = (tried.at_s + self._every_s - now_s for tried in self._tried.values())
            until_s = min((wait_s for wait_s in left_s if wait_s > 0), default=self._every_s)
            self._look.wait(min(until_s, LOOK_S) if self._every_batches else until_s)
            self._look.clear()
            slots = list(self._slots.values())
            self._tried = {slot.group: self._tried.get(slot.group, _NEVER) for slot in slots}
            for slot in slots:
                if self._closing.is_set():
                    return
                self._checkpoint_if_due(slot)

    def _checkpoint_if_due(self, slot: Slot) -> None:
        try:
            status = slot.status()
            tried, now_s = self._tried[slot.group], monotonic()
            if status.role is not Role.OWNER:
                return
            if not due(tried, status.seq, now_s, self._every_s, self._every_batches):
                return
            self._tried[slot.group] = Tried(now_s, status.seq)
            slot.checkpoint()
        except Exception:
            # The group runs on. The dashboard shows the age of its newest checkpoint.
            log.exception("%s: no checkpoint this time", slot.group)
