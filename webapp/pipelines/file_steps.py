"""Stores the steps of a file's import, as control reports them. A step counts only for the order for which it
was begun. So a report that comes too late changes nothing."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

from webapp.imports.answer import open_questions
from webapp.imports.reading import Detection, Report
from webapp.pipelines.models import DataFile
from webapp.pipelines.schemas import FileTrouble

State = DataFile.State

NOTHING_READ: FileTrouble = {
    "what": "No value of this file could be read.",
    "where": None,
    "next": "Open it, change how it is read, and import it again.",
}


def _current(file: DataFile) -> QuerySet[DataFile]:
    return DataFile.objects.filter(pk=file.pk, order=file.order, state=file.state)


def progressed(file: DataFile, bytes_done: int, bytes_total: int, rows: int) -> bool:
    """Stores the progress of the import. Returns whether the import is still wanted."""
    return bool(_current(file).update(bytes_done=bytes_done, bytes_total=bytes_total, rows_done=rows))


def wanted(file: DataFile) -> bool:
    return _current(file).exists()


def looked(file: DataFile, detection: Detection, sample: Any) -> bool:
    """Stores how a file can be read. If there are no questions, the import begins. Returns whether this was
    still wanted."""
    asks = bool(detection.questions) or file.confirm
    reading = None if asks else detection.reading.model_dump(mode="json")
    return bool(
        _current(file).update(
            state=State.ASKS if asks else State.IMPORTING,
            detection=detection.model_dump(mode="json"),
            sample=sample,
            reading=reading,
            bytes_done=0,
            bytes_total=file.size,
            rows_done=0,
            error=None,
        )
    )


def imported(file: DataFile, report: Report, facts: Any, table_sha256: str, table_size: int) -> bool:
    """Stores the table of a file, and asks the questions that only the whole file has shown.

    Returns whether the import was still wanted.
    """
    questions = open_questions(report.questions, file.settled)
    values: dict[str, Any] = {
        "report": report.model_dump(mode="json"),
        "facts": facts,
        "table_sha256": table_sha256,
        "table_size": table_size,
        "rows_done": report.rows,
        "error": None,
    }
    if nothing_read(report):
        values |= {"state": State.FAILED, "error": NOTHING_READ}
    elif questions:
        detected = (file.detection or {}) | {"reading": file.reading}
        asked = Detection.model_validate(detected).model_copy(update={"questions": questions})
        values |= {"state": State.ASKS, "detection": asked.model_dump(mode="json")}
    else:
        values["state"] = State.IMPORTED
    return bool(_current(file).update(**values))


def failed(file: DataFile, trouble: FileTrouble) -> bool:
    """Stores why a file cannot be looked at or imported. Returns whether this was still wanted."""
    return bool(_current(file).update(state=State.FAILED, error=trouble))


def nothing_read(report: Report) -> bool:
    """Returns whether a table would have no row, or no row with a value."""
    return report.rows <= report.dead or not any(column.read for column in report.columns)
