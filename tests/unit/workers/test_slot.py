"""One group's slot: what it does about failures, with a replica and a clock of the test's own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pipeline_runtime.checkpoint.growing import GrowingFiles
from pipeline_runtime.model.desired import (
    CheckpointSource,
    ClaimOrder,
    DesiredReplica,
    Directive,
    ReplicaError,
    ReplicaStatus,
    Role,
)
from pipeline_runtime.model.ids import Epoch, Seq
from pipeline_runtime.model.kept import KeptAnswer, KeptQuestion
from pipeline_runtime.model.spec import GroupSpec
from tests.waiting import PATIENCE_S, wait_until
from workers.node.java_ends import JavaEnds
from workers.node.reconcile import FORGET_AFTER_MS
from workers.node.runtime import NodeRuntime, Taken
from workers.node.slot import Slot
from workers.node.slot_state import TOO_LONG

SPEC = GroupSpec(deployment="d", pipeline="p", group="power", elements=())
ERROR = ReplicaError(message="the operator raised", safe="-", next="-", at_ms=1)


def owner(order: str = "o1", **update: object) -> DesiredReplica:
    made = DesiredReplica(spec=SPEC, role=Role.OWNER, order=ClaimOrder(id=order, over=Epoch(0)))
    return made.model_copy(update=update)


class Told:
    def answer(self, question: KeptQuestion) -> KeptAnswer:
        return KeptAnswer(keys=7)


class ScriptedReplica:
    def __init__(self) -> None:
        self.now = ReplicaStatus(group=SPEC.id, role=Role.STANDBY, phase="following")
        self.growing = GrowingFiles()
        self.looking: Told | None = None
        self.orders: list[str] = []
        self.started_after: list[str] = []

    def start(self) -> None:
        self.started_after = list(self.orders)

    def direct(self, directive: Directive) -> None:
        self.now = self.now.model_copy(update={"armed": directive.succeed})
        if directive.release is not None:
            released = {"role": Role.STANDBY, "phase": "following", "epoch": 2, "released": directive.release}
            self.now = self.now.model_copy(update=released)
        order = directive.order
        if order is not None and order.id != self.now.order_id:
            self.orders.append(order.id)
            owns = {"role": Role.OWNER, "phase": "owning", "epoch": 1, "seq": 7, "order_id": order.id}
            self.now = self.now.model_copy(update=owns)

    def become_owner_by_release(self, handover: str) -> None:
        self.now = self.now.model_copy(
            update={"role": Role.OWNER, "phase": "owning", "epoch": 2, "order_id": handover}
        )

    def stop(self, timeout_s: float) -> None:
        if self.now.role is not Role.STOPPED:
            self.end("stopped")

    def kill(self) -> None:
        pass

    def status(self) -> ReplicaStatus:
        return self.now

    def end(self, phase: str, error: ReplicaError | None = None) -> None:
        self.now = self.now.model_copy(update={"role": Role.STOPPED, "phase": phase, "error": error})


class Node:
    """A runtime whose clock moves when the test says so."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.clock_ms = 1_000_000
        self.replicas: list[ScriptedReplica] = []
        self.open_fails = False
        self.fetch_fails_from: str | None = None
        self.fetching_from: str | None = None
        self.fetch_blocks = threading.Event()
        self.fetch_blocks.set()
        self.fetched: list[int] = []
        self.taken_with: list[GrowingFiles | None] = []
        self.forgotten = False
        self.reported: Callable[[], object] = lambda: None
        self.looks = 0
        self.slot = Slot(SPEC.id, self.runtime())
        self._started = False

    def want(self, desired: DesiredReplica | None) -> None:
        assert self.slot.want(desired)
        if not self._started:  # a slot that is started without a wish ends at once
            self.slot.start()
            self._started = True

    def runtime(self) -> NodeRuntime:
        return NodeRuntime(
            directory=self.directory,
            open_replica=self.open,
            checkpoints=self,
            fetch_files=lambda _: None,
            now_ms=self._now_ms,
            changed=lambda: self.reported(),
            java_ends=JavaEnds(self.directory / "java-ends.json", "edge-a"),
        )

    def open(self, spec: GroupSpec, directory: Path) -> ScriptedReplica:
        self.replicas.append(ScriptedReplica())
        if self.open_fails:
            raise RuntimeError("no such file")
        return self.replicas[-1]

    def take(
        self, spec: GroupSpec, epoch: Epoch, directory: Path, growing: GrowingFiles | None
    ) -> Taken | None:
        self.taken_with.append(growing)
        return Taken(Seq(7), epoch, self.clock_ms, 100)

    def fetch(
        self, group: str, source: CheckpointSource, directory: Path, note: Callable[[str], None]
    ) -> int:
        self.fetching_from = source.url
        assert self.fetch_blocks.wait(PATIENCE_S)
        if source.url == self.fetch_fails_from:
            raise RuntimeError("no checkpoint there")
        directory.mkdir()
        self.fetched.append(source.seq or 0)
        return 100

    def where(self, group: str, seq: Seq) -> tuple[str, ...]:
        return ("here",)

    def forget(self, group: str) -> None:
        self.forgotten = True

    def _now_ms(self) -> int:
        self.looks += 1
        return self.clock_ms

    def pass_ms(self, ms: int) -> None:
        self.clock_ms += ms
        self.slot.wake()

    def has_looked(self) -> None:
        """Since this was called the slot has looked at the clock, and has done what was due then."""
        before = self.looks

        def looked() -> bool:
            self.slot.wake()
            return self.looks > before + 3  # it may look twice in a round, and may have been in one

        wait_until(looked, "the slot looks")


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    made = Node(tmp_path)
    yield made
    made.fetch_blocks.set()
    made.slot.close(1)


def is_owner(node: Node) -> bool:
    return node.slot.status().role is Role.OWNER


def test_a_failed_replica_is_started_again_from_its_local_state_with_back_off(node: Node) -> None:
    node.want(owner())
    wait_until(lambda: is_owner(node))
    for started, wait_ms in ((1, 1000), (2, 2000), (3, 4000)):
        node.replicas[-1].end("failed", ERROR)
        node.slot.wake()
        wait_until(lambda n=started: len(node.slot.failures.at_ms) == n)
        assert node.slot.status().error == ERROR
        node.pass_ms(wait_ms - 1)
        node.has_looked()
        assert len(node.replicas) == started
        node.pass_ms(1)
        wait_until(lambda: is_owner(node))
        assert node.slot.status().error is None


def test_after_five_failures_it_stays_down_and_a_new_order_wakes_it(node: Node) -> None:
    node.open_fails = True
    node.want(owner())
    for count in range(1, 6):
        wait_until(lambda n=count: len(node.slot.failures.at_ms) == n)
        node.pass_ms(60_000)
    error = node.slot.status().error
    assert error is not None
    assert "stays down" in error.next
    assert error.message == "It could not be started: no such file"
    node.pass_ms(60_000)
    node.has_looked()
    assert len(node.replicas) == 5
    node.open_fails = False
    node.want(owner("o2"))
    wait_until(lambda: is_owner(node))


def test_a_schema_registry_that_is_away_for_long_never_makes_it_stay_down(node: Node) -> None:
    node.want(owner())
    away = ReplicaError.of("schema-registry", "the schema registry does not answer", 0)
    for started in range(1, 8):
        wait_until(lambda: is_owner(node))
        node.replicas[-1].end("failed", away)
        node.slot.wake()
        wait_until(lambda: node.slot.failures.others_ms[-1:] == (node.clock_ms,))
        assert node.slot.status().error == away
        assert not node.slot.failures.gave_up
        assert len(node.replicas) == started
        node.pass_ms(8000)
    wait_until(lambda: is_owner(node))


def test_one_whose_batch_does_not_end_stays_down_at_once(node: Node) -> None:
    node.want(owner())
    wait_until(lambda: is_owner(node))
    node.replicas[-1].end("failed", ERROR.model_copy(update={"code": TOO_LONG, "next": "Look."}))
    node.slot.wake()
    wait_until(lambda: node.slot.failures.gave_up)
    node.pass_ms(600_000)
    node.has_looked()
    assert len(node.replicas) == 1
    error = node.slot.status().error
    assert error is not None
    assert error.next == "Look."
    node.want(owner("o2"))
    wait_until(lambda: is_owner(node))


def copy_from(url: str, generation: int = 1) -> DesiredReplica:
    source = CheckpointSource(url=url, token="t", seq=Seq(5))
    return DesiredReplica(spec=SPEC, role=Role.STANDBY, source=source, generation=generation)


def test_the_error_of_a_former_wish_is_not_shown_for_a_new_one(node: Node) -> None:
    node.fetch_fails_from = "http://origin"
    node.want(copy_from("http://origin"))
    wait_until(lambda: node.slot.status().error is not None)
    assert node.slot.status().phase == "failed"
    node.fetch_blocks.clear()
    node.want(copy_from("http://central"))
    assert node.slot.status().error is None, "also before the slot has looked at it"
    wait_until(lambda: node.fetching_from == "http://central")
    assert (node.slot.status().error, node.slot.status().phase) == (None, "fetching")
    node.fetch_blocks.set()
    wait_until(lambda: node.slot.status().role is Role.STANDBY)


def test_an_attempt_for_a_former_wish_that_fails_late_is_not_the_new_ones_error(node: Node) -> None:
    node.fetch_fails_from = "http://origin"
    node.fetch_blocks.clear()
    node.want(copy_from("http://origin"))
    wait_until(lambda: node.fetching_from == "http://origin")
    node.want(copy_from("http://central", generation=2))
    errors: list[ReplicaError | None] = []
    node.reported = lambda: errors.append(node.slot.status().error)
    node.fetch_blocks.set()
    wait_until(lambda: node.slot.status().role is Role.STANDBY)
    assert errors
    assert not any(errors)


def test_a_new_wish_that_only_waits_shows_neither_the_error_nor_the_failure(node: Node) -> None:
    node.open_fails = True
    node.want(owner())
    wait_until(lambda: node.slot.status().error is not None)
    node.want(owner(role=Role.STOPPED, generation=1))
    wait_until(lambda: node.slot.status().phase == "stopped")
    assert node.slot.status().error is None


def test_a_fenced_replica_stays_down_until_it_is_ordered_again(node: Node) -> None:
    node.want(owner())
    wait_until(lambda: is_owner(node))
    node.replicas[-1].end("fenced", ERROR)
    node.slot.wake()
    wait_until(lambda: node.slot.status().phase == "fenced")
    node.pass_ms(3_600_000)
    node.has_looked()
    assert len(node.replicas) == 1
    assert node.slot.status().error == ERROR
    node.want(owner("o2"))
    wait_until(lambda: is_owner(node))


def test_a_stopped_replica_says_at_which_checkpoint(node: Node) -> None:
    node.want(owner())
    wait_until(lambda: is_owner(node))
    node.want(owner(role=Role.STOPPED))
    wait_until(lambda: node.slot.status().phase == "stopped" and node.slot.status().checkpoint_seq)
    status = node.slot.status()
    assert (status.role, status.seq, status.checkpoint_seq) == (Role.STOPPED, 7, 7)
    node.want(owner("o2"))
    wait_until(lambda: is_owner(node))


def test_checkpoints_are_told_what_the_replica_knows_of_its_files_also_after_its_end(node: Node) -> None:
    node.want(owner())
    wait_until(lambda: is_owner(node))
    assert node.slot.checkpoint()
    node.want(owner(role=Role.STOPPED))
    wait_until(lambda: node.slot.status().phase == "stopped" and len(node.taken_with) == 2)
    assert node.taken_with == [node.replicas[0].growing] * 2


def test_a_slow_fetch_is_shown_and_followed_by_the_start(node: Node) -> None:
    node.fetch_blocks.clear()
    source = CheckpointSource(url="http://other", token="t", seq=Seq(5))
    node.want(owner(source=source, generation=2))
    wait_until(lambda: node.slot.status().phase == "fetching")
    node.fetch_blocks.set()
    wait_until(lambda: is_owner(node))
    assert node.fetched == [5]
    status = node.slot.status()
    assert (status.generation, status.bytes_fetched) == (2, 100)


def test_an_owner_that_releases_goes_on_as_a_standby_and_may_own_again(node: Node) -> None:
    node.want(owner())
    wait_until(lambda: is_owner(node))
    node.want(owner(release="h1"))
    wait_until(lambda: node.slot.status().released == "h1")
    node.want(DesiredReplica(spec=SPEC, role=Role.STANDBY))
    node.want(owner("o2"))
    wait_until(lambda: is_owner(node))
    assert len(node.replicas) == 1
    assert node.replicas[0].orders == ["o1", "o2"]


def test_who_owns_by_a_release_is_not_ordered_to_claim(node: Node) -> None:
    node.want(DesiredReplica(spec=SPEC, role=Role.STANDBY, succeed="h1"))
    wait_until(lambda: node.slot.status().armed == "h1")
    node.replicas[0].become_owner_by_release("h1")
    node.want(DesiredReplica(spec=SPEC, role=Role.STANDBY, succeed="h1", paused_since_ms=5))
    wait_until(lambda: node.slot.told is not None and node.slot.told.paused_since_ms)
    assert is_owner(node), "the control side has not heard of it yet"
    node.want(owner("h1", followed=True))
    wait_until(lambda: node.slot.told is not None and node.slot.told.followed)
    node.want(owner("h1", paused_since_ms=7))
    wait_until(lambda: node.slot.told is not None and node.slot.told.paused_since_ms)
    assert node.replicas[0].orders == []
    assert is_owner(node)


def test_an_owner_that_is_wanted_as_a_standby_ends_first(node: Node) -> None:
    node.want(owner())
    wait_until(lambda: is_owner(node))
    node.want(DesiredReplica(spec=SPEC, role=Role.STANDBY))
    wait_until(lambda: len(node.replicas) == 2)
    assert node.replicas[0].now.role is Role.STOPPED
    wait_until(lambda: node.slot.status().role is Role.STANDBY)
    assert node.replicas[1].orders == []


def test_a_replica_knows_what_is_wanted_before_it_starts(node: Node) -> None:
    node.want(owner())
    wait_until(lambda: is_owner(node))
    assert node.replicas[0].started_after == ["o1"]


def test_damaged_state_is_replaced_by_a_checkpoint_at_most_once_an_hour(node: Node) -> None:
    damaged = ERROR.model_copy(update={"damaged": True})
    node.want(owner(source=CheckpointSource(url="http://other", token="t", seq=Seq(5))))
    wait_until(lambda: is_owner(node))
    assert node.fetched == [5]
    node.replicas[-1].end("failed", damaged)
    node.slot.wake()
    wait_until(lambda: len(node.slot.failures.at_ms) == 1)
    error = node.slot.status().error
    assert error is not None
    assert "newest checkpoint instead" in error.next
    node.pass_ms(1000)
    wait_until(lambda: is_owner(node))
    assert node.fetched == [5, 5]
    node.replicas[-1].end("failed", damaged)
    node.slot.wake()
    wait_until(lambda: len(node.slot.failures.at_ms) == 2)
    error = node.slot.status().error
    assert error is not None
    assert "within the last hour" in error.next
    node.pass_ms(2000)
    wait_until(lambda: is_owner(node))
    assert node.fetched == [5, 5]


def test_a_state_that_is_too_old_is_replaced_again_and_again(node: Node) -> None:
    outdated = ReplicaError.of("state-outdated", "t-0 begins at 9", 0, damaged=True)
    node.want(owner(source=CheckpointSource(url="http://other", token="t", seq=None)))
    wait_until(lambda: is_owner(node))
    for failures in (1, 2, 3, 4, 5):
        node.replicas[-1].end("failed", outdated)
        node.slot.wake()
        wait_until(lambda n=failures: len(node.slot.failures.at_ms) == n)
        error = node.slot.status().error
        assert error is not None
        if failures == 5:
            assert "the newest state is on its disk" in error.next
            break
        assert "newest checkpoint instead" in error.next
        node.pass_ms(1000 * 2**failures)
        wait_until(lambda: is_owner(node))
        assert len(node.fetched) == 1 + failures


def test_a_stopped_copy_is_fetched_and_not_started(node: Node) -> None:
    node.want(
        DesiredReplica(
            spec=SPEC, role=Role.STOPPED, source=CheckpointSource(url="http://other", token="t", seq=Seq(3))
        )
    )
    wait_until(lambda: node.slot.status().phase == "fetched")
    assert (node.fetched, node.replicas) == ([3], [])


def test_what_nobody_wants_is_stopped_at_once_and_forgotten_after_the_grace(node: Node) -> None:
    node.want(owner())
    wait_until(lambda: is_owner(node))
    node.want(None)
    wait_until(lambda: node.slot.status().role is Role.STOPPED)
    assert (node.directory / "replicas" / SPEC.id / "g1").is_dir()
    node.pass_ms(FORGET_AFTER_MS)
    wait_until(lambda: node.slot.gone)
    wait_until(lambda: node.forgotten)
    assert not (node.directory / "replicas" / SPEC.id).exists()
    assert not node.slot.want(owner("o2")), "a slot that has ended takes no more wishes"


def test_what_it_keeps_is_looked_at_while_its_replica_runs_and_has_it_open(node: Node) -> None:
    question = KeptQuestion(id="0" * 32, group=SPEC.id, element="power", limit=1)
    assert node.slot.look(question).refused == "away"
    node.want(owner())
    wait_until(lambda: is_owner(node))
    assert node.slot.look(question).refused == "away", "it keeps none, or is not open yet"
    node.replicas[-1].looking = Told()
    assert node.slot.look(question).keys == 7
