"""Facts about the current run that a checkpoint needs: files that only grow, and the keyed state."""

from __future__ import annotations

from collections.abc import Mapping

from pipeline_runtime.checkpoint.keyed_state import KeyedState
from pipeline_runtime.checkpoint.manifest import FileEntry
from pipeline_runtime.model.ids import Seq

# A snapshot is of the newest batch or the one before. More may be committed while its files are linked.
_SEQS_KEPT = 100


class GrowingFiles:
    """The lengths that files of append-only sinks had at each of the newest seqs, and the parts of them that
    the last checkpoint stored. With these a checkpoint need not read the files as a whole.

    Valid for one run of the query, since its start cuts off what was not committed. From there on, committed
    bytes stay as they are. One thread notes the lengths; others read them meanwhile.
    """

    def __init__(self, keyed: KeyedState | None = None) -> None:
        """`keyed` is the state of a group with a keyed processor."""
        self.keyed = keyed
        self._lengths: dict[Seq, Mapping[str, int]] = {}
        self.stored: dict[str, FileEntry] = {}  # by path; each is as long as its seq had committed

    def note(self, seq: Seq, lengths: Mapping[str, int]) -> None:
        """`lengths` maps a path, relative to the replica directory, to the bytes of it that belong to
        `seq`."""
        self._lengths[seq] = lengths
        while len(self._lengths) > _SEQS_KEPT:
            del self._lengths[next(iter(self._lengths))]

    def lengths(self, seq: Seq) -> Mapping[str, int]:
        """Returns the noted lengths. A file without one may not only grow, and is read as a whole."""
        return self._lengths.get(seq, {})
