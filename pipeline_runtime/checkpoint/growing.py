"""Facts about the current run of a query that a checkpoint needs: growing files, and the keyed state."""

from __future__ import annotations

from collections.abc import Mapping

from pipeline_runtime.checkpoint.keyed_state import KeyedState
from pipeline_runtime.checkpoint.manifest import FileEntry
from pipeline_runtime.model.ids import Seq

# A snapshot has the state of the newest batch, or of the batch before it. More batches may be committed while
# the snapshot links its files.
_SEQS_KEPT = 100


class GrowingFiles:
    """The lengths of the files of append-only sinks at each of the newest seqs, and the parts of these files
    that the last checkpoint stored. With them, a checkpoint reads only the new parts of the files.

    An object is valid for one run of the query. The start of a run cuts off the bytes that were not
    committed. During a run, committed bytes never change. One thread may note lengths while other threads
    read them.
    """

    def __init__(self, keyed: KeyedState | None = None) -> None:
        """`keyed` is the state of a group with a keyed processor."""
        self.keyed = keyed
        self._lengths: dict[Seq, Mapping[str, int]] = {}
        self.stored: dict[str, FileEntry] = {}  # by path; each entry ends where its seq ended

    def note(self, seq: Seq, lengths: Mapping[str, int]) -> None:
        """Notes the lengths at `seq`. `lengths` maps a path, relative to the replica directory, to the number
        of its bytes that belong to `seq`."""
        self._lengths[seq] = lengths
        while len(self._lengths) > _SEQS_KEPT:
            del self._lengths[next(iter(self._lengths))]

    def lengths(self, seq: Seq) -> Mapping[str, int]:
        """Returns the noted lengths. A checkpoint reads a file without a noted length as a whole, because
        such a file may change in the middle."""
        return self._lengths.get(seq, {})
