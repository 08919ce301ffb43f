"""Carries out what `protocol.decide` says, on a real broker, and mints the permit to commit."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pipeline_runtime.handover.protocol import (
    Action,
    Claimed,
    CommitClaim,
    Event,
    Following,
    Initialise,
    Initialised,
    JournalEnd,
    Lost,
    Ordered,
    Own,
    Owning,
    ReadJournal,
    Refused,
    State,
    Unsure,
    decide,
)
from pipeline_runtime.journal.records import Claim, Ends, Record, encode
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.kafka.transactions import Doubtful, Fenced, OutgoingRecord, Transactions
from pipeline_runtime.model.desired import ClaimOrder
from pipeline_runtime.model.ids import Epoch
from pipeline_runtime.model.spec import GroupSpec

log = logging.getLogger(__name__)

RETRY_PAUSE_S = 0.2


@dataclass(frozen=True)
class CommitPermit:
    """The right to commit at `epoch`. Only a Claimant mints it, after its CLAIM is in the journal."""

    epoch: Epoch
    journal: str
    _transactions: Transactions

    def commit(self, record: Record, outputs: Iterable[OutgoingRecord] = ()) -> None:
        """Outputs and the journal's record in one transaction. Raises Fenced or Doubtful."""
        self._transactions.commit([*outputs, OutgoingRecord(self.journal, encode(record))])

    def close(self) -> None:
        self._transactions.close()


class Claimant:
    """One replica's way to ownership. `claim` runs in a thread of the caller."""

    def __init__(
        self,
        spec: GroupSpec,
        kafka: KafkaSettings,
        node: str,
        read_journal: Callable[[ClaimOrder], JournalEnd],
        start_ends: Callable[[], Ends],
    ) -> None:
        self._spec = spec
        self._kafka = kafka
        self._node = node
        self._read_journal = read_journal
        self._start_ends = start_ends
        self._transactions: Transactions | None = None
        self.state: State = Following()
        self.cancelled = threading.Event()

    def claim(self, order: ClaimOrder) -> CommitPermit | None:
        """Claim until owned or refused; None: refused or cancelled (`state` says why).

        It begins anew: what an earlier claim had reached was given up with its permit, and whether
        this one may own is for the journal to say.
        """
        self._drop()
        self.state, actions = decide(Following(), Ordered(order))
        return self._run(actions)

    def lose(self, reason: str) -> None:
        """The owner's commit was fenced."""
        self.state, _ = decide(self.state, Lost(reason))
        self._drop()

    def _run(self, actions: tuple[Action, ...]) -> CommitPermit | None:
        permit: CommitPermit | None = None
        while actions and not self.cancelled.is_set():
            [action] = actions
            if isinstance(action, Own):
                assert self._transactions is not None
                permit = CommitPermit(action.epoch, self._spec.journal, self._transactions)
                break
            event = self._perform(action)
            self.state, actions = decide(self.state, event)
            if isinstance(event, Unsure):
                log.warning("%s: claim is retried: %s", self._spec.id, event.reason)
                self._drop()
                self.cancelled.wait(RETRY_PAUSE_S)
        if isinstance(self.state, Refused):
            self._drop()
        return permit

    def _perform(self, action: Action) -> Event:
        order = getattr(self.state, "order", None)
        assert isinstance(order, ClaimOrder)
        try:
            match action:
                case ReadJournal():
                    return self._read_journal(order)
                case Initialise(epoch):
                    self._drop()
                    self._transactions = Transactions(self._kafka, self._spec.transactional_id(epoch))
                    self._transactions.initialise()
                    return Initialised()
                case CommitClaim(epoch):
                    assert self._transactions is not None
                    topics = [self._spec.journal, *(output.topic for output in self._spec.outputs)]
                    self._transactions.warm(topics)
                    claim = Claim(epoch, order.id, self._node, self._start_ends())
                    self._transactions.commit([OutgoingRecord(self._spec.journal, encode(claim))])
                    return Claimed()
                case Own():
                    raise AssertionError("Own is not performed, it ends the claim")
        except Fenced as error:
            return Lost(str(error))
        except Doubtful as error:
            return Unsure(str(error))

    def _drop(self) -> None:
        if self._transactions is not None:
            self._transactions.close()
            self._transactions = None

    @property
    def owning(self) -> bool:
        return isinstance(self.state, Owning)
