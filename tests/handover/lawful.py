"""The law of a journal: each seq once and in order, and each by the epoch that was granted last."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

from pipeline_runtime.journal.records import Announce, Arm, Boundary, Claim, Commit, Record, Release


@dataclass
class JournalLaw:
    """Takes one record after another, from the first on. Raises AssertionError at the first that breaks the
    law."""

    granted: int = 0
    seq: int = 0
    owners: list[str] = field(default_factory=list)  # the node of each epoch, from 1 on
    commits: dict[int, int] = field(default_factory=dict)  # epoch -> how many batches it committed
    retired: bool = False
    _tokens: dict[str, Arm] = field(default_factory=dict)
    _announced: dict[int, Boundary] = field(default_factory=dict)  # by the granted epoch

    @property
    def handovers(self) -> int:
        """Counts changes of owner. An owner in doubt that claims again has one epoch more, but did not
        change."""
        return sum(old != new for old, new in pairwise(self.owners))

    def take(self, records: Iterable[Record]) -> None:
        for record in records:
            assert not self.retired, f"{record} stands behind RETIRE"
            match record:
                case Claim():
                    assert record.epoch == self.granted + 1, f"{record}, but {self.granted} was granted"
                    self._grant(record.node)
                    if record.rewind is not None:
                        assert record.rewind <= self.seq, f"{record}, but the journal ends at {self.seq}"
                case Arm():
                    # It grants nothing, so one that comes late does no harm.
                    assert record.epoch <= self.granted + 1, f"{record}, but {self.granted} was granted"
                    assert record.token not in self._tokens, f"{record}: its token was used before"
                    self._tokens[record.token] = record
                case Announce():
                    self._take_announce(record)
                case Release():
                    self._take_release(record)
                case Commit():
                    self._take_commit(record)
                case _:
                    assert record.epoch == self.granted, f"{record}, but {self.granted} was granted"
                    self.retired = True

    def _take_commit(self, commit: Commit) -> None:
        where = (commit.epoch, commit.seq)
        assert where == (self.granted, self.seq + 1), f"{commit} behind seq {self.seq} of {self.granted}"
        promised = self._announced.pop(commit.seq, commit.boundary)
        assert promised == commit.boundary, f"{commit} is not what was announced: {promised}"
        assert commit.node in ("", self.owners[-1]), f"{commit} by another node than {self.owners[-1]}"
        self.seq = commit.seq
        self.commits[commit.epoch] = self.commits.get(commit.epoch, 0) + 1

    def _take_announce(self, announce: Announce) -> None:
        where = (announce.epoch, announce.boundary.seq)
        assert where == (self.granted, self.seq + 1), f"{announce} behind seq {self.seq} of {self.granted}"
        self._announced[announce.boundary.seq] = announce.boundary

    def _take_release(self, release: Release) -> None:
        where = (release.epoch, release.seq)
        assert where == (self.granted, self.seq), f"{release} behind seq {self.seq} of {self.granted}"
        armed = self._tokens.get(release.token)
        assert armed is not None, f"{release} to nobody who has armed"
        assert armed.epoch == self.granted + 1, f"{release} to {armed}"
        assert (armed.order, armed.node) == (release.order, release.node), f"{release} to {armed}"
        self._grant(release.node)

    def _grant(self, node: str) -> None:
        self.granted += 1
        self.owners.append(node)
        self._announced.clear()


def assert_lawful(records: Iterable[Record]) -> None:
    JournalLaw().take(records)
