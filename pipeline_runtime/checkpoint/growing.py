"""What a checkpoint must know of the run that is on: files that only grow, and the keyed state."""

from __future__ import annotations

from collections.abc import Mapping

from pipeline_runtime.checkpoint.keyed_state import KeyedState
from pipeline_runtime.checkpoint.manifest import FileEntry
from pipeline_runtime.model.ids import Seq

# A snapshot is of the newest batch or the one before; while its files are linked, some more may be committed.
_SEQS_KEPT = 100


class GrowingFiles:
    """How long the files to whose end alone a replica's sinks write were at each of the newest seqs, and what
    a checkpoint has stored of them last: it need not read them whole.

    For one run of the query alone, since its start cuts off what was not committed: only from there on,
    bytes that were committed stay what they are. One thread notes; others ask meanwhile.
    """

    def __init__(self, keyed: KeyedState | None = None) -> None:
        """`keyed`: of a group with a keyed processor."""
        self.keyed = keyed
        self._lengths: dict[Seq, Mapping[str, int]] = {}
        self.stored: dict[str, FileEntry] = {}  # by path; each as long as its seq had committed

    def note(self, seq: Seq, lengths: Mapping[str, int]) -> None:
        """`lengths`: path relative to the replica directory -> bytes of it that belong to `seq`."""
        self._lengths[seq] = lengths
        while len(self._lengths) > _SEQS_KEPT:
            del self._lengths[next(iter(self._lengths))]

    def lengths(self, seq: Seq) -> Mapping[str, int]:
        """As they were noted. A file that is not there is not known to grow only, and is read whole."""
        return self._lengths.get(seq, {})
