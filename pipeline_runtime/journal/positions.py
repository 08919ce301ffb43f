"""Where a group stands in each stream that it reads, and where it stopped in each that it has left."""

from __future__ import annotations

from collections.abc import Iterable

from pipeline_runtime.journal.reader import read_once
from pipeline_runtime.journal.records import Claim, Commit, Ends, Record
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.model.ids import Seq


def read_positions(kafka: KafkaSettings, journal: str) -> Ends:
    """Of each partition ("<topic>-<partition>"), the first offset that it has not read, of each source
    element its position. Raises Doubtful."""
    return last_positions(read_once(kafka, journal, hidden=True))


def last_positions(records: Iterable[Record]) -> Ends:
    """Of each input that it ever had, where it stood last. Pure.

    What was rewound does not count: the group goes on from the end of the batch that it was rewound to.
    """
    last: Ends = {}
    ends: dict[Seq, Ends] = {}
    for record in records:
        match record:
            case Claim():
                ends.setdefault(Seq(0), record.start)
                last = record.start | last
                if record.rewind is not None:
                    last |= ends.get(record.rewind, {})
                last |= record.moves or {}
            case Commit():
                ends[record.seq] = record.boundary.ends
                last |= record.boundary.ends
            case _:
                pass
    return last
