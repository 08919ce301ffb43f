"""Finds where a group stands in each stream that it reads, and where it stopped in streams that it read
before."""

from __future__ import annotations

from collections.abc import Iterable

from pipeline_runtime.journal.reader import read_once
from pipeline_runtime.journal.records import ENDED, Claim, Commit, Ends, Record
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.model.ids import Seq


def read_positions(kafka: KafkaSettings, journal: str) -> Ends:
    """Returns the first offset that is not read, by partition ("<topic>-<partition>"), the position of each
    source element, and under ENDED the inputs that were read to their end. Raises Doubtful."""
    return last_positions(read_once(kafka, journal, hidden=True))


def last_positions(records: Iterable[Record]) -> Ends:
    """Returns the last position in each input that the group ever had. Pure.

    Batches that were rewound do not count: the group goes on from the end of the batch that it was rewound
    to.
    """
    last: Ends = {}
    ends: dict[Seq, Ends] = {}
    ended: dict[str, Seq] = {}  # input -> the batch that read its end
    for record in records:
        match record:
            case Claim():
                ended |= {key: max(ends, default=Seq(0)) for key in record.ended if key not in ended}
                ends.setdefault(Seq(0), record.start)
                last = record.start | last
                if record.rewind is not None:
                    last |= ends.get(record.rewind, {})
                    ended = {key: seq for key, seq in ended.items() if seq <= record.rewind}
                last |= record.moves or {}
            case Commit():
                ends[record.seq] = record.boundary.ends
                last |= record.boundary.ends
                ended = dict.fromkeys(record.ended, record.seq) | ended
            case _:
                pass
    return {**last, ENDED: sorted(ended)} if ended else last
