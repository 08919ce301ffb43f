"""Drives the protocol: carries out on a real broker what `protocol.decide` says. No other module makes the
permit to commit."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol
from uuid import uuid4

from pipeline_runtime.handover.crash_points import reached
from pipeline_runtime.handover.protocol import (
    Action,
    Armed,
    ArmOrdered,
    CommitArmed,
    CommitClaim,
    CommitRelease,
    Committed,
    Disarmed,
    Event,
    Following,
    Initialise,
    Initialised,
    JournalEnd,
    JournalShows,
    Lost,
    Ordered,
    Own,
    ReadJournal,
    Refused,
    ReleaseOrdered,
    Releasing,
    Rereading,
    State,
    Unsure,
    decide,
)
from pipeline_runtime.journal import records as journal
from pipeline_runtime.journal.records import Ends, Record, encode
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.kafka.transactions import Doubtful, Fenced, Outgoing, OutgoingRecord, Transactions
from pipeline_runtime.model.desired import ArmOrder, ClaimOrder
from pipeline_runtime.model.ids import Epoch, Seq
from pipeline_runtime.model.spec import GroupSpec

log = logging.getLogger(__name__)

RETRY_PAUSE_S = 0.2


_MINT = object()


class CommitPermit:
    """The right to commit at `epoch`. Only Ownership makes it, after the journal has granted that epoch."""

    def __init__(self, mint: object, epoch: Epoch, journal: str, transactions: Transactions) -> None:
        if mint is not _MINT:
            raise TypeError("only the protocol's driver makes a permit to commit")
        self.epoch = epoch
        self._journal = journal
        self._transactions = transactions

    @property
    def is_far(self) -> bool:
        return self._transactions.is_far

    def commit(
        self,
        records: Iterable[Record],
        outputs: Iterable[Outgoing] = (),
        *,
        last: bool = False,
        written: Callable[[], None] = lambda: None,
    ) -> int:
        """Commits outputs and the journal's records in one transaction. Raises Fenced or Doubtful.

        Returns for how many requests it had to wait, one after the other. `last`: this permit commits nothing
        more. `written` is called when all records are written, before the transaction ends.
        """
        own = [OutgoingRecord(self._journal, encode(record)) for record in records]
        return self._transactions.commit([*outputs, *own], again=not last, written=written)

    def expect_commit(self) -> None:
        """Says that a batch begins, which will be committed soon. Sends now the requests that the commit
        would otherwise wait for."""
        self._transactions.expect_another()


class JournalReader(Protocol):
    """Reads the replica's journal."""

    def read_for(self, order_id: str, whole: bool) -> JournalEnd:
        """Reads the journal to its present end, for that order. Raises Doubtful.

        With `whole`, also reads what an open transaction hides.
        """
        ...

    def listen(self, round_trip_ms: float) -> bool:
        """Listens for a release on a separate topic, if the broker is far enough away. Returns whether it
        does."""
        ...

    def stop_listening(self) -> None: ...


class Ownership:
    """Takes one replica to ownership, and out of it.

    `claim`, `arm`, `stay_warm` and `prepare_release` send requests to the broker, and block their caller, a
    thread of the replica. The other methods answer from what is known here.
    """

    def __init__(
        self,
        spec: GroupSpec,
        kafka: KafkaSettings,
        node: str,
        journal: JournalReader,
        start_ends: Callable[[Mapping[str, Any]], Ends],
        begins_fresh: Callable[[], bool],
        moves: Callable[[Mapping[str, Any]], Ends | None],
    ) -> None:
        """`begins_fresh` returns whether an order to begin fresh still leaves a state behind, as far as the
        journal was read.

        `start_ends` and `moves` turn ClaimOrder.positions into the fields of a CLAIM with these names. Both
        may raise Doubtful. Any other error ends the claim.
        """
        self._spec = spec
        self._kafka = kafka
        self._node = node
        self._journal = journal
        self._start_ends = start_ends
        self._begins_fresh = begins_fresh
        self._moves = moves
        self._transactions: Transactions | None = None
        self._permit: CommitPermit | None = None
        self._tells: bool | None = (
            None  # whether it releases by a topic of its own too, None before it has tried
        )
        self.state: State = Following()
        self.cancelled = threading.Event()

    # --- by claim

    def claim(self, order: ClaimOrder) -> CommitPermit | None:
        """Claims until the replica owns or is refused. Returns None if it is refused or cancelled; `state`
        says why.

        Each claim starts from the beginning: the replica has given up its former permit, and only the journal
        says whether it may own.
        """
        self._drop()
        self.state, actions = decide(Following(), Ordered(order))
        return self._run(actions)

    # --- by release: the successor

    def arm(self, handover: str) -> bool:
        """Arms the replica, so that the owner may release the group to it in that handover. Returns whether
        the replica is armed."""
        self._drop()
        order = ArmOrder(id=handover, nonce=uuid4().hex)
        self.state, actions = decide(Following(), ArmOrdered(order))
        self._run(actions)
        return self.armed_for == handover

    @property
    def armed_for(self) -> str | None:
        return self.state.order.id if isinstance(self.state, Armed) else None

    def see(self, granted: Epoch, released_token: str | None) -> CommitPermit | None:
        """Takes in what an armed successor has read in the journal. Returns the permit if the successor owns
        now."""
        self.state, actions = decide(self.state, JournalShows(granted, released_token))
        permit = self._run(actions)
        if isinstance(self.state, Following):
            self._drop()
        return permit

    def disarm(self) -> None:
        if isinstance(self.state, Armed):
            self.state, _ = decide(self.state, Disarmed())
            self._drop()

    def stay_warm(self) -> bool:
        """Keeps an armed successor's first transaction open. Returns False if the successor is no longer
        armed.

        So the broker's coordinator knows the transaction's partitions before the handover.
        """
        if not isinstance(self.state, Armed):
            return False
        assert self._transactions is not None
        try:
            self._transactions.keep_open(self._topics())
        except (Fenced, Doubtful) as error:
            log.info("%s: no longer armed: %s", self._spec.id, error)
            self.state, _ = decide(self.state, Lost(str(error)))
            self._drop()
            return False
        return True

    # --- by release: the owner

    def release(
        self,
        handover: str,
        armed: journal.Arm,
        seq: Seq,
        last: Sequence[Record] = (),
        outputs: Iterable[Outgoing] = (),
    ) -> int | None:
        """Releases the group after `seq`, in one transaction with the COMMIT and the outputs of the `last`
        batch.

        Returns and raises as CommitPermit.commit does. Returns None, and commits nothing, if `armed` is not
        the owner's successor. From then on the replica counts as releasing until `released` is called, even
        while nobody knows whether the broker has the release.
        """
        permit = self._permit
        event = ReleaseOrdered(handover, armed.order, armed.epoch, armed.token)
        self.state, actions = decide(self.state, event)
        if permit is None or not actions:
            return None
        [action] = actions
        assert isinstance(action, CommitRelease)
        reached("releasing")
        release = journal.Release(action.epoch, seq, action.token, handover, armed.node)
        records, told = [*last, release], list[OutgoingRecord]()
        if armed.listens and self._tells and last:
            told = [OutgoingRecord(self._spec.released, encode(record)) for record in records]
        requests = permit.commit(records, [*outputs, *told], last=True)
        reached("released")
        return requests

    def released(self) -> None:
        """Ends the ownership after a release. From then on, nobody commits by its permit."""
        self.state, _ = decide(self.state, Committed())
        self._drop()

    def prepare_release(self, armed: journal.Arm) -> None:
        """Fetches, once, the metadata that the owner's release to `armed` would otherwise wait for."""
        transactions = self._transactions
        if not armed.listens or self._tells is not None or transactions is None:
            return
        try:
            transactions.warm([self._spec.released])
            self._tells = True
        except Exception as error:
            # For example, the topic was deleted, or the owner has just released. The journal is enough.
            log.warning("%s: it will release only by its journal (%s)", self._spec.id, error)
            self._tells = False

    def close_unused(self, older_than_s: float) -> None:
        """Closes an owner's transaction that was opened ahead and not used for `older_than_s`."""
        if self._permit is not None and self._transactions is not None:
            self._transactions.close_unused(older_than_s)

    def lose(self, reason: str) -> None:
        """Ends the ownership, because the broker has refused the owner's commit."""
        self.state, _ = decide(self.state, Lost(reason))
        self._drop()

    @property
    def releasing(self) -> bool:
        return isinstance(self.state, Releasing)

    def close(self) -> None:
        self._drop()

    # --- what the protocol asks for

    def _run(self, actions: tuple[Action, ...]) -> CommitPermit | None:
        while actions and not self.cancelled.is_set():
            [action] = actions
            if isinstance(action, Own):
                assert self._transactions is not None
                self._permit = CommitPermit(_MINT, action.epoch, self._spec.journal, self._transactions)
                self._journal.stop_listening()
                return self._permit
            event = self._perform(action)
            self.state, actions = decide(self.state, event)
            if isinstance(event, Unsure):
                log.warning("%s: %s; the journal decides", self._spec.id, event.reason)
                self._drop()
                self.cancelled.wait(RETRY_PAUSE_S)
        if isinstance(self.state, Refused | Following):
            self._drop()
        return None

    def _perform(self, action: Action) -> Event:
        assert not isinstance(self.state, Following)
        order = self.state.order
        try:
            match action:
                case ReadJournal():
                    # A replica that was fenced long ago may have left a transaction open with another id,
                    # which hides what was committed since. The first read must not wait for such a
                    # transaction: it may be the owner's own, which the fence ends.
                    return self._journal.read_for(order.id, isinstance(self.state, Rereading))
                case Initialise(epoch):
                    self._drop()
                    self._transactions = Transactions(self._kafka, self._spec.transactional_id(epoch))
                    self._transactions.initialise()
                    reached("initialised")
                    return Initialised()
                case CommitClaim(epoch):
                    self._commit(self._claim_record(epoch, order))
                    reached("claimed")
                    return Committed()
                case CommitArmed(epoch, token):
                    assert self._transactions is not None
                    round_trip_ms = round(self._transactions.round_trip_ms, 1)
                    listens = self._journal.listen(round_trip_ms)
                    if self.cancelled.is_set():
                        return Unsure("it should end")
                    self._commit(journal.Arm(epoch, token, order.id, self._node, round_trip_ms, listens))
                    reached("armed")
                    return Committed()
        except Fenced as error:
            return Lost(str(error))
        except Doubtful as error:
            return Unsure(str(error))
        raise AssertionError(f"{action} is not carried out here")

    def _claim_record(self, epoch: Epoch, order: ClaimOrder | ArmOrder) -> journal.Claim:
        rewind, fresh, starts = None, False, dict[str, Any]()
        if isinstance(order, ClaimOrder):
            rewind, fresh, starts = order.rewind, order.fresh, order.positions
        ended = tuple(starts.pop(journal.ENDED, ()))
        # Somebody else may have begun fresh since the order was taken up. That state must not be left as
        # well.
        fresh = fresh and self._begins_fresh()
        spec: dict[str, Any] | None = self._spec.model_dump(mode="json")
        if (size := len(json.dumps(spec))) > journal.SPEC_BYTES_MAX:
            log.warning("%s: its definition of %d bytes is too large for a CLAIM", self._spec.id, size)
            spec = None
        return journal.Claim(
            epoch,
            order.id,
            self._node,
            self._start_ends(starts),
            rewind,
            self._spec.version,
            spec,
            fresh,
            # A rewind goes on from where the same definition stood: see JournalFollower.check_not_rewound.
            None if rewind is not None else self._moves(starts),
            ended,
        )

    def _commit(self, record: Record) -> None:
        assert self._transactions is not None
        self._transactions.warm(self._topics())
        self._transactions.commit([OutgoingRecord(self._spec.journal, encode(record))])

    def _topics(self) -> list[str]:
        spec = self._spec
        dead = [spec.dead_letters(element.id) for element in spec.elements]
        return [*(output.topic for output in spec.outputs), *dead, spec.journal]

    def _drop(self) -> None:
        self._permit, self._tells = None, None
        self._journal.stop_listening()
        if self._transactions is not None:
            self._transactions.close()
            self._transactions = None
