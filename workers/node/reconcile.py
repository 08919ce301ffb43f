"""Decides what a node does next for one group, again after each action. Pure.

    want: OWNER    (nothing) --Fetch--> local state --Start--> running --Tell--> owner
    want: STANDBY  (nothing) --Fetch--> local state --Start--> running --Tell--> armed, or just following
                   an owner that has released runs on as a standby; one that still owns: Stop, Start
    want: STOPPED  running --Stop--> local state --FinalCheckpoint--> kept
                   (nothing) --Fetch--> kept
    want: nothing  running --Stop--> local state --grace--> Forget --> (nothing)

No step remembers the one before. Whatever crashed, was lost or came twice, the next decision is made from
what is wanted and what is there.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipeline_runtime.model.desired import CheckpointSource, DesiredReplica, Directive, Role
from pipeline_runtime.model.spec import GroupSpec

FORGET_AFTER_MS = 60_000
"""How long the state of a group that is no longer wanted here is kept: it may be wanted again."""


@dataclass(frozen=True)
class Have:
    """What this node has of one group."""

    group: str  # GroupSpec.id
    generation: int | None = None  # of the local state, None if there is none
    running: bool = False
    version: str | None = None  # GroupSpec.version of what runs
    told: Directive | None = None  # what the running replica was told last
    may_own: bool = False  # the running replica owns, or may own at any moment
    owns_by: str | None = None  # the order, or the handover that released to it, by which it owns
    ended_for: str | None = None  # the order under which it stopped for good: fenced, refused, retired
    damaged: bool = False  # the local state cannot be used and may be replaced
    final_checkpoint: bool = False  # one was taken since it stopped, or the state was fetched
    retry_at_ms: int | None = None  # after a failure, None if nothing failed
    gave_up: bool = False
    held: bool = False  # it has ended Java processes, so only a user may start it again
    in_turn: bool = True  # it is no suspect of ending Java, or no other suspect is tried now
    unwanted_since_ms: int | None = None


@dataclass(frozen=True)
class Fetch:
    source: CheckpointSource
    generation: int


@dataclass(frozen=True)
class Start:
    spec: GroupSpec
    generation: int
    directive: Directive  # told before it begins, so that it does nothing that it should not


@dataclass(frozen=True)
class Tell:
    directive: Directive


@dataclass(frozen=True)
class Stop:
    reason: str


@dataclass(frozen=True)
class FinalCheckpoint:
    pass


@dataclass(frozen=True)
class Discard:
    """Drops the local state: it has another generation, or is damaged."""

    generation: int


@dataclass(frozen=True)
class MarkUnwanted:
    pass


@dataclass(frozen=True)
class Forget:
    """Drops everything that this node has of the group. Nothing more is to do."""


@dataclass(frozen=True)
class Idle:
    until_ms: int | None = None  # None to wait until something changes


Action = Fetch | Start | Tell | Stop | FinalCheckpoint | Discard | MarkUnwanted | Forget | Idle


def next_action(want: DesiredReplica | None, have: Have, now_ms: int) -> Action:
    if want is None:
        return _let_go(have, now_ms)
    if have.generation is not None and have.generation != want.generation:
        if have.running:
            return Stop(f"generation {want.generation} replaces {have.generation}")
        return Discard(have.generation)
    if want.role is Role.STOPPED:
        return _keep_stopped(want, have, now_ms)
    if have.running:
        return _steer(want, have)
    return _bring_up(want, have, now_ms)


def _let_go(have: Have, now_ms: int) -> Action:
    if have.running:
        return Stop("no longer wanted on this node")
    if have.generation is None:
        return Forget()
    if have.unwanted_since_ms is None:
        return MarkUnwanted()
    forget_at_ms = have.unwanted_since_ms + FORGET_AFTER_MS
    return Forget() if now_ms >= forget_at_ms else Idle(forget_at_ms)


def _keep_stopped(want: DesiredReplica, have: Have, now_ms: int) -> Action:
    if have.running:
        return Stop("told to stop")
    if have.generation is None and want.source is not None:
        return _held_back(want, have, now_ms) or Fetch(want.source, want.generation)
    if have.generation is not None and not have.final_checkpoint:
        return FinalCheckpoint()
    return Idle()


def _steer(want: DesiredReplica, have: Have) -> Action:
    """Brings a running replica to what is wanted of it."""
    if have.version != want.spec.version:
        return Stop("its definition changed")
    if want.role is Role.STANDBY and have.may_own and not _has_succeeded(want, have):
        # An owner gives up ownership only by a release or by its end.
        return Stop("demoted to standby")
    return Idle() if want.directive == have.told else Tell(want.directive)


def _has_succeeded(want: DesiredReplica, have: Have) -> bool:
    """Returns whether it owns by the release that it was to wait for. Control has not heard of that yet."""
    return want.succeed is not None and have.owns_by == want.succeed


def _bring_up(want: DesiredReplica, have: Have, now_ms: int) -> Action:
    wait = _held_back(want, have, now_ms)
    if wait is not None:
        return wait
    if have.damaged and have.generation is not None:
        return Discard(have.generation)
    if have.generation is None and want.source is not None:
        return Fetch(want.source, want.generation)
    return Start(want.spec, want.generation, want.directive) if have.in_turn else Idle()


def _held_back(want: DesiredReplica, have: Have, now_ms: int) -> Idle | None:
    order_id = want.order.id if want.order else None
    if have.ended_for is not None and have.ended_for == order_id:
        return Idle()  # it lost that order for good, so only a new one may start it again
    if have.gave_up or have.held:
        return Idle()
    if have.retry_at_ms is not None and now_ms < have.retry_at_ms:
        return Idle(have.retry_at_ms)
    return None


@dataclass(frozen=True)
class Failures:
    """When a replica failed lately, and what follows from that."""

    at_ms: tuple[int, ...] = ()
    others_ms: tuple[int, ...] = ()  # when somebody was away who is needed
    for_good: bool = False  # to try again would cost much and change nothing

    COUNT_MAX = 5
    WINDOW_MS = 600_000
    BACKOFF_MS_MAX = 60_000

    def and_one_at(self, now_ms: int, *, of_others: bool = False) -> Failures:
        """Returns the failures with one more.

        `of_others` says that somebody was away who is needed. Such failures do not count when it gives up.
        """
        own, others = (
            tuple(at for at in known if now_ms - at < self.WINDOW_MS)
            for known in (self.at_ms, self.others_ms)
        )
        if of_others:
            return Failures(own, (*others, now_ms)[-(self.COUNT_MAX - 1) :])
        return Failures((*own, now_ms), others)

    @property
    def gave_up(self) -> bool:
        return self.for_good or len(self.at_ms) >= self.COUNT_MAX

    @property
    def retry_at_ms(self) -> int | None:
        """When it is tried again: 1, 2, 4 .. 60 s after the newest failure."""
        all_ms = sorted((*self.at_ms, *self.others_ms))
        if not all_ms:
            return None
        return all_ms[-1] + min(1000 * 2 ** (len(all_ms) - 1), self.BACKOFF_MS_MAX)
