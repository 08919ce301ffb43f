"""Takes a user's orders about an uploaded file: import it, stop, or read it in another way. Control carries
the orders out."""

from __future__ import annotations

from collections.abc import Mapping

from django.db import transaction
from pydantic import JsonValue

from pipeline_runtime.wire import tasks
from webapp.accounts.models import Role, User
from webapp.accounts.permissions import require
from webapp.audit.announcements import announce
from webapp.audit.records import audit
from webapp.backends import commands
from webapp.imports.answer import answered, check_places, leading
from webapp.imports.detect import Head, preview, redetect
from webapp.imports.encoding_words import offered
from webapp.imports.faults import ImportFault
from webapp.imports.reading import Detection, Reading, Report
from webapp.pipelines.models import DataFile
from webapp.pipelines.schemas import FilePreview
from webapp.problems import Conflict, Invalid, Missing

State = DataFile.State
UNDER_WAY = (State.LOOKING, State.IMPORTING)

USED_AS_IT_IS = "It can be used as it is."


def data_file(id: str, *, for_update: bool = False) -> DataFile:
    rows = DataFile.objects.select_related("created_by").defer("description", "sample")
    if for_update:
        rows = rows.select_for_update(of=("self",))
    file = rows.filter(pk=id).first()
    if file is None:
        raise Missing("This file no longer exists.", next="Upload it, or choose another one.")
    return file


def report_of(id: str) -> Report:
    file = data_file(id)
    if file.report is None:
        raise Missing(f"{file.name} has no report: it is not imported.", next="Import it.")
    return Report.model_validate(file.report)


def preview_of(id: str, reading: Reading | None, fixed: Mapping[str, JsonValue]) -> FilePreview:
    """Returns the beginning of a file as `reading` reads it. Without `reading`, the file is detected again
    around the `fixed` places. Without both, the preview shows the file as it was imported or is to be
    imported."""
    file = DataFile.objects.filter(pk=data_file(id).pk).get()
    if file.sample is None or file.detection is None:
        raise Conflict(
            f"{file.name} has not been looked at.",
            safe="Nothing was changed.",
            next="Wait until it has been, or import it: it is looked at again then.",
        )
    head = Head.model_validate(file.sample)
    detection = None
    try:
        if fixed:
            check_places(fixed)
            detection = redetect(head, fixed)
            reading = detection.reading
        elif reading is None:
            reading = Reading.model_validate(file.reading or file.detection["reading"])
        shown = preview(head, reading)
        return {"preview": shown, "detection": detection, "encodings": offered(reading.encoding)}
    except (ImportFault, ValueError) as error:
        raise Invalid(
            str(error), safe="The file stays as it was uploaded.", next="Change how it is read."
        ) from error


@transaction.atomic
def import_file(actor: User, id: str, reading: Reading | None, answers: Mapping[str, int]) -> DataFile:
    """Orders the import of a file as `reading` says. Without `reading`, the file is read as it was detected,
    with these answers.

    With `reading`, the answers are only stored, so that the same questions do not come again. If the answers
    choose a table with further questions, nothing is imported, and the file shows these questions. A file
    whose look has failed is looked at again.
    """
    require(actor, Role.EDITOR, "import files")
    file = data_file(id, for_update=True)
    _refuse_unless_it_waits(file)
    if file.detection is None and reading is None:
        file.state = State.LOOKING
    else:
        detection = None if file.detection is None else Detection.model_validate(file.detection)
        file.settled = sorted({*file.settled, *answers})
        if reading is None and detection is not None:
            found = _led_on(file, detection, answers)
            if found is not detection and any(each.id not in answers for each in found.questions):
                return _asks_further(file, found)
            detection = found
        chosen = _decided(detection, reading, answers).model_dump(mode="json")
        # A question that only the whole file shows comes after the import. If the answer changes nothing,
        # the file stays imported.
        same = bool(file.table_sha256) and file.reading == chosen and file.state == State.ASKS
        file.state = State.IMPORTED if same else State.IMPORTING
        file.reading = chosen
    if file.state != State.IMPORTED:
        _begin(file)
    file.save()
    audit(actor, "file.import", file.name, id=file.pk)
    _tell()
    return file


def _led_on(file: DataFile, detection: Detection, answers: Mapping[str, int]) -> Detection:
    """Returns the detection of the table that the answers choose. This table has questions of its own."""
    fixed: dict[str, JsonValue] = {}
    head = None
    try:
        while (more := fixed | leading(detection.questions, answers)) != fixed and file.sample is not None:
            head = head or Head.model_validate(file.sample)
            fixed = more
            detection = redetect(head, fixed)
    except ImportFault as error:
        raise Invalid(str(error), safe="Nothing was changed.", next="Choose another answer.") from error
    return detection


def _asks_further(file: DataFile, detection: Detection) -> DataFile:
    """Stores the chosen table, and asks its questions."""
    file.state = State.ASKS
    file.detection = detection.model_dump(mode="json")
    file.reading = None
    file.save()
    _tell()
    return file


def _refuse_unless_it_waits(file: DataFile) -> None:
    if file.state == State.MODEL:
        raise Conflict("A model is not imported.", safe=USED_AS_IT_IS, next="Choose it in a Model element.")
    if file.state == State.IMPORTED:
        raise Conflict(
            f"{file.name} is imported already, and elements may read it.",
            safe="Nothing was changed.",
            next="Import it again with another reading: that makes another file, and this one stays.",
        )
    if file.state in UNDER_WAY:
        raise Conflict(
            f"{file.name} is being {'looked at' if file.state == State.LOOKING else 'imported'} now.",
            safe="The file is kept, and the present work continues.",
            next="Wait, or cancel it first.",
        )


def _decided(detection: Detection | None, reading: Reading | None, answers: Mapping[str, int]) -> Reading:
    """Returns the reading that a person has chosen. A given reading is complete, so it is returned as it
    is."""
    if reading is not None:
        return reading
    assert detection is not None
    try:
        return answered(detection.reading, detection.questions, answers)
    except ValueError as error:
        raise Invalid(
            f"The file cannot be imported yet: {error}",
            safe="Nothing was changed.",
            next="Answer each of its questions.",
            faults=[
                {"element": None, "path": f"answers.{each.id}", "message": each.text, "code": "missing"}
                for each in detection.questions
                if each.id not in answers
            ],
        ) from error


def _begin(file: DataFile) -> None:
    file.order += 1
    file.bytes_done, file.bytes_total, file.rows_done = 0, file.size, 0
    file.error = file.report = file.facts = None
    file.table_sha256, file.table_size = "", 0


@transaction.atomic
def cancel(actor: User, id: str) -> DataFile:
    """Stops the present look or import of a file. A user can order it again."""
    require(actor, Role.EDITOR, "cancel imports")
    file = data_file(id, for_update=True)
    if file.state not in UNDER_WAY:
        raise Conflict(
            f"{file.name} is not being imported.",
            safe="Nothing was changed.",
            next="Reload the list of files.",
        )
    file.state = State.CANCELLED
    file.order += 1
    file.save(update_fields=["state", "order"])
    audit(actor, "file.cancel", file.name, id=file.pk)
    _tell()
    return file


@transaction.atomic
def import_again(actor: User, id: str, reading: Reading) -> DataFile:
    """Makes another data file of the same bytes, which is read in another way. Elements that use the first
    file keep it."""
    require(actor, Role.EDITOR, "import files")
    first = DataFile.objects.filter(pk=data_file(id).pk).get()
    if first.state == State.MODEL:
        raise Conflict("A model is not imported.", safe=USED_AS_IT_IS, next="Choose it in a Model element.")
    file = DataFile.objects.create(
        name=first.name,
        sha256=first.sha256,
        size=first.size,
        state=State.IMPORTING,
        sample=first.sample,
        detection=first.detection,
        reading=reading.model_dump(mode="json"),
        bytes_total=first.size,
        created_by=actor,
    )
    audit(actor, "file.import_again", file.name, id=file.pk, of=first.pk)
    _tell()
    return file


def _tell() -> None:
    commands.send(tasks.FILES)
    announce()
