"""Reads the records that both owners wrote to the journal around a change of owner. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from pipeline_runtime.journal.records import Announce, Arm, Claim, Commit, Record, Release
from pipeline_runtime.model.ids import Epoch
from webapp.handovers.schemas import Batch, Mark, Written

BEFORE_MAX = 20
AFTER_MAX = 12


def written_around(records: Iterable[tuple[int, Record]], granted_ms: int) -> Written | None:
    """Returns the last batches before and the first after the grant that the broker took at `granted_ms`, and
    what prepared it. Returns None if there is no such grant. `records` have the broker's times."""
    marks: list[Mark] = []
    before: list[Batch] = []
    after: list[Batch] = []
    epoch: Epoch | None = None  # that was granted
    for at_ms, record in records:
        match record:
            case Commit():
                kept = before if epoch is None or record.epoch < epoch else after
                kept.append(
                    {"at_ms": at_ms, "node": record.node, "rows": record.rows_in, "wait_ms": record.wait_ms}
                )
                if len(after) == AFTER_MAX:
                    break
            case Claim() | Release() if epoch is not None:
                break  # by the next change of owner
            case Claim() if at_ms == granted_ms:
                epoch = record.epoch
                marks.append({"what": "claimed", "at_ms": at_ms})
            case Release() if at_ms == granted_ms:
                epoch = Epoch(record.epoch + 1)
                marks.append({"what": "released", "at_ms": at_ms})
            case Claim() | Release():
                marks, before = [], []  # of an earlier owner
            case Arm():
                marks = [{"what": "armed", "at_ms": at_ms}]  # an earlier one does not count any more
            case Announce() if len(marks) == 1 and epoch is None:
                marks.append({"what": "announced", "at_ms": at_ms})
    return {"marks": marks, "batches": before[-BEFORE_MAX:] + after} if epoch is not None else None
