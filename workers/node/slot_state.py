"""The memory of a slot between two actions. It is frozen: each change makes a new one.

So a reader in another thread sees everything as of one moment. Changes are pure: `reconcile` decides by the
state, the slot acts, and the outcome is the next state.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from pipeline_runtime.model.desired import DesiredReplica, Directive, ReplicaError, ReplicaStatus, Role
from pipeline_runtime.model.ids import Seq
from pipeline_runtime.model.spec import GroupSpec
from workers.node.reconcile import Failures
from workers.node.runtime import Taken

REPLACE_EVERY_MS = 3_600_000
"""Local state that cannot be used is replaced by a checkpoint at most this often. If it goes bad again and
again, people should see that."""
_FINAL_PHASES = ("fenced", "failed", "retired", "refused")
OUTDATED = "state-outdated"
"""The code of an error that says nothing against the disk: a checkpoint that comes later may end it."""
NONE_IS_NEW_ENOUGH = (
    "No checkpoint is new enough, and the rows behind the newest one are deleted. When the node that ran the "
    "element last is back, restore it there: the newest state is on its disk. If that node is gone for good, "
    "undeploy the pipeline and deploy it again: the element then begins without a state."
)
STAYS_DOWN = (
    "It failed 5 times in 10 minutes and stays down. Mend the cause, then restart this node, or restore the "
    "element on another one. If its parameters are the cause, change them and deploy again. Each of these "
    "ways goes on from its state."
)
TOO_LONG = "batch-too-long"
"""The code of an error after which nothing is tried again: the same batch would take as long."""
REGISTRY = "schema-registry"
"""The code of an error that ends by itself when a schema registry is back, or takes the schema. The replica
never gives up because of it."""


@dataclass(frozen=True)
class SlotState:
    last: ReplicaStatus  # of the replica that ended last
    spec: GroupSpec | None = None  # which was started last
    told: Directive | None = None  # what the running replica was told last
    ended_for: str | None = None  # the order under which it stopped for good
    damaged: bool = False  # the local state cannot be used and may be replaced
    replaced_at_ms: int | None = None
    final_checkpoint: bool = False  # one was taken since it stopped, or the state was fetched
    failures: Failures = field(default_factory=Failures)  # since the wish below was made
    wish: tuple[object, ...] = ()
    error: ReplicaError | None = None  # belongs to that wish, as the phase does
    phase: str = ""
    unwanted_since_ms: int | None = None
    bytes_fetched: int = 0
    started_ms: int = 0
    fell_at_work_ms: int = 0  # when a replica was found to have ended in a batch

    # -- what is wanted

    def wished(self, want: DesiredReplica | None) -> SlotState:
        """Returns the state with a wish.

        A new wish clears old failures, so that nobody takes an old error for its
        answer."""
        if want is None:
            return self
        wish = key_of(want)
        if wish == self.wish:
            return replace(self, unwanted_since_ms=None)
        phase = "waiting" if self.phase == "failed" else self.phase
        return replace(self, wish=wish, failures=Failures(), error=None, phase=phase, unwanted_since_ms=None)

    def error_for(self, want: DesiredReplica | None) -> ReplicaError | None:
        """Returns the error, if it belongs to what is wanted: a new wish may have come meanwhile."""
        return self.error if want is None or key_of(want) == self.wish else None

    # -- a replica begins and ends

    def fetched(self, bytes_fetched: int) -> SlotState:
        return replace(self, bytes_fetched=bytes_fetched, final_checkpoint=True, phase="fetched")

    def started(self, spec: GroupSpec, directive: Directive, now_ms: int) -> SlotState:
        return replace(
            self,
            spec=spec,
            told=directive,
            ended_for=None,
            final_checkpoint=False,
            error=None,
            phase="",
            started_ms=now_ms,
        )

    def put_down(self, status: ReplicaStatus) -> SlotState:
        """Returns the state after the replica has ended, with this status."""
        last = status.model_copy(update={"role": Role.STOPPED, "error": None})
        phase = status.phase if status.phase in _FINAL_PHASES else "stopped"
        return replace(self, last=last, phase=phase, told=None, final_checkpoint=False)

    def ended_by_itself(self, status: ReplicaStatus, now_ms: int) -> SlotState:
        """Returns the state after the replica has ended although nobody had told it to."""
        order = self.told.order if self.told else None
        down = self.put_down(status)
        if status.retired or status.order_refused is not None or status.phase == "fenced":
            return replace(down, ended_for=order.id if order else None, error=status.error)
        if status.error is None:
            error = ReplicaError.of("ended-unasked", "It ended by itself, without an order.", now_ms)
            return down.failed(error, now_ms)
        if status.error.damaged:
            return down.with_damage(status.error, now_ms)
        return down.failed(status.error, now_ms, of_others=status.error.code == REGISTRY)

    def with_damage(self, error: ReplicaError, now_ms: int) -> SlotState:
        """Lets the local state be replaced, unless that was done lately."""
        lately = self.replaced_at_ms is not None and now_ms - self.replaced_at_ms < REPLACE_EVERY_MS
        if lately and error.code != OUTDATED:
            next_step = (
                "Its state was already replaced by a checkpoint within the last hour, so look for the "
                "cause: the disk, or the operator. Meanwhile, restore the element on another node."
            )
            return self.failed(error.model_copy(update={"next": next_step}), now_ms)
        next_step = (
            "The node takes the newest checkpoint instead and goes on from there. You need not do anything."
        )
        state = replace(self, damaged=True, replaced_at_ms=now_ms)
        return state.failed(error.model_copy(update={"next": next_step}), now_ms)

    def checkpointed(self, taken: Taken | None) -> SlotState:
        """Returns the state after the last checkpoint was taken.

        A successor gets the local state as it stands. After a kill that may be behind the journal, which the
        successor then follows.
        """
        update: dict[str, object] = {"seq": Seq(0), "checkpoint_seq": Seq(0)}
        if taken is not None:
            update = {"seq": taken.seq, "epoch": max(self.last.epoch, taken.epoch)}
        return replace(self, last=self.last.model_copy(update=update), final_checkpoint=True, phase="stopped")

    # -- what fails

    def failed(self, error: ReplicaError, now_ms: int, *, of_others: bool = False) -> SlotState:
        """Returns the state after a failure. `of_others` is that of Failures.and_one_at."""
        failures = self.failures.and_one_at(now_ms, of_others=of_others)
        if error.code == TOO_LONG:
            failures = replace(failures, for_good=True)
        elif failures.gave_up:
            next_step = NONE_IS_NEW_ENOUGH if error.code == OUTDATED else STAYS_DOWN
            error = error.model_copy(update={"next": next_step})
        return replace(self, error=error, phase="failed", failures=failures)


def key_of(want: DesiredReplica) -> tuple[object, ...]:
    """Returns what tells wishes apart: for a new one, nothing has failed yet."""
    source = (want.source.url, want.source.seq) if want.source else None
    order_id = want.order.id if want.order else None
    return (want.generation, order_id, want.spec.version, want.role, source, want.vouched)
