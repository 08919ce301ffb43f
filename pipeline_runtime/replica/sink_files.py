"""The files of a group's sink elements, and their marks: where each sink stands at the end of a batch."""

from __future__ import annotations

from typing import Any

from pipeline_runtime.batch.facts import GroupFacts
from pipeline_runtime.batch.output import BatchOutput
from pipeline_runtime.checkpoint.growing import GrowingFiles
from pipeline_runtime.model.ids import Seq
from pipeline_runtime.operators.sdk import SinkWriter


class SinkFiles:
    """Open from `restore` until `close`."""

    def __init__(self, group: GroupFacts, growing: GrowingFiles) -> None:
        """`growing`: noted how long the files are that only grow, for whoever takes a checkpoint."""
        self._group = group
        self._growing = growing
        self._writers: dict[str, SinkWriter] = {}
        self._marks: dict[str, Any] = {}

    def restore(self, local: Seq, marks: dict[str, Any]) -> None:
        """Bring the files back to where the local state stands, at `local`."""
        self.close()
        self._marks = {}
        for element in self._group.sinks:
            writer = self._group.open_sink(element)
            writer.restore(marks.get(element))
            self._writers[element] = writer
            if element in marks:
                self._marks[element] = marks[element]
        self.note(local)

    def write(self, batch_output: BatchOutput, seq: Seq) -> dict[str, Any]:
        """Write what the batch has made, durably. Returns the marks of all sinks."""
        for element, source in self._group.sinks.items():
            self._marks[element] = self._writers[element].write(batch_output.sinks[source], seq)
        return dict(self._marks)

    def note(self, seq: Seq) -> None:
        """Note the lengths of the files that only grow, by their path in the replica directory."""
        self._growing.note(
            seq,
            {
                f"elements/{element}/{name}": length
                for element, writer in self._writers.items()
                for name, length in writer.lengths(self._marks.get(element)).items()
            },
        )

    def close(self) -> None:
        for writer in self._writers.values():
            writer.close()
        self._writers = {}
