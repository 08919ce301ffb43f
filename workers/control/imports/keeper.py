"""Starts the inspection of each uploaded file, and the import when a user orders it.

The database has what there is to do, so what a crash interrupted begins again from the start. One file is
looked at and one is imported at a time: a look is short, and does not wait for a long import.
"""

from __future__ import annotations

import logging
import shutil
import threading
from pathlib import Path

from django.db import DatabaseError, close_old_connections
from pydantic import ValidationError

from pipeline_runtime.checkpoint.errors import CheckpointError
from pipeline_runtime.checkpoint.files import FileStore
from webapp.audit.announcements import announce
from webapp.imports.reading import Detection, Report
from webapp.pipelines import file_steps
from webapp.pipelines.models import DataFile
from webapp.pipelines.schemas import FileTrouble
from workers.control.context import ControlContext
from workers.control.imports.import_process import Failed, Limits, Progress, Unwanted, run_import
from workers.control.imports.unused import named_files

log = logging.getLogger(__name__)

State = DataFile.State
LOOK_S = 60.0
IMPORT_S = 6 * 3600.0
SILENT_S = 120.0
UNUSED_S = 3600.0
"""How long bytes that nothing names are kept: an upload stores them before the database names them."""
CLEAN_EACH_S = 600.0
_MEMORY = ("--memory-mb", "1024")


class ImportKeeper:
    """Three threads: one looks at files, one imports, one deletes what no file names. `directory` is that of
    the central store."""

    def __init__(self, context: ControlContext, directory: Path) -> None:
        self._context = context
        self._store = FileStore(directory / "files")
        self._work = directory / "imports"
        self._reserve_bytes = context.settings.disk_reserve_mb * 1_000_000
        self._threads = [
            threading.Thread(target=self._run, args=(State.LOOKING,), name="look at files", daemon=True),
            threading.Thread(target=self._run, args=(State.IMPORTING,), name="import files", daemon=True),
            threading.Thread(target=self._clean, name="unused files", daemon=True),
        ]

    def start(self) -> None:
        shutil.rmtree(self._work, ignore_errors=True)  # what a crash has left
        self._work.mkdir(parents=True)
        for thread in self._threads:
            thread.start()

    def join(self, timeout_s: float) -> None:
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(timeout_s)

    def step(self, state: str) -> bool:
        """Looks at the file that has waited longest in `state`, or imports it. Returns whether there was
        one."""
        file = (
            DataFile.objects.filter(state=state).defer("description", "sample").order_by("created_at").first()
        )
        if file is None:
            return False
        try:
            original = self._store.path(file.sha256)
            self._look(file, original) if state == State.LOOKING else self._import(file, original)
        except Unwanted:
            log.info("%s: nobody waits for it any more", file.reference)
        except FileNotFoundError:
            file_steps.failed(file, _GONE)
        except CheckpointError as error:
            file_steps.failed(file, {"what": error.message, "where": None, "next": error.next})
        except (KeyError, TypeError, ValidationError):
            log.exception("%s: the import process said what is no result", file.reference)
            file_steps.failed(file, _NOT_UNDERSTOOD)
        announce()
        return True

    def clean(self) -> list[str]:
        """Deletes the bytes that nothing names any more. Returns their sha256s."""
        return self._store.drop(named_files(), UNUSED_S)

    def _look(self, file: DataFile, original: Path) -> None:
        found = run_import(
            ["look", "--path", str(original), f"--name={file.name}", *_MEMORY],
            {},
            self._work,
            Limits(LOOK_S, LOOK_S),
            lambda _: self._wanted(file),
        )
        if isinstance(found, Failed):
            file_steps.failed(file, found.trouble)
            return
        file_steps.looked(file, Detection.model_validate(found["detection"]), found["head"])
        self._context.files.notify()

    def _import(self, file: DataFile, original: Path) -> None:
        directory = self._work / f"{file.pk}-{file.order}"
        directory.mkdir(exist_ok=True)
        table = directory / "table.parquet"
        try:
            found = run_import(
                ["convert", "--path", str(original), "--out", str(table), *_MEMORY],
                file.reading,
                directory,
                Limits(IMPORT_S, SILENT_S, disk_reserve_bytes=self._reserve_bytes),
                lambda progress: self._wanted(file, progress),
            )
            if isinstance(found, Failed):
                file_steps.failed(file, found.trouble)
                return
            sha256, size = self._store.adopt(table)
            file_steps.imported(file, Report.model_validate(found["report"]), found["facts"], sha256, size)
        finally:
            shutil.rmtree(directory, ignore_errors=True)

    def _wanted(self, file: DataFile, progress: Progress | None = None) -> bool:
        if self._context.closing.is_set():
            return False
        try:
            if progress is None:
                return file_steps.wanted(file)
            return file_steps.progressed(file, progress.bytes_done, progress.bytes_total, progress.rows)
        except DatabaseError as error:
            log.warning("%s: its progress was not noted: %s", file.reference, error)
            close_old_connections()
            return True

    def _run(self, state: str) -> None:
        seen = -1
        while not self._context.closing.is_set():
            try:
                close_old_connections()
                while not self._context.closing.is_set() and self.step(state):
                    pass
            except Exception:
                log.exception("files could not be imported; it is tried again")
            seen = self._context.files.wait(seen, self._context.tuning.sweep_s)

    def _clean(self) -> None:
        while not self._context.closing.wait(CLEAN_EACH_S):
            try:
                close_old_connections()
                for sha256 in self.clean():
                    log.info("%s is deleted: no file names it", sha256)
            except Exception as error:
                # Nothing depends on it: the bytes stay a little longer until the next time.
                log.warning("no unused bytes were deleted this time: %s", error, exc_info=True)


_NOT_UNDERSTOOD: FileTrouble = {
    "what": "The process that reads it gave no result that can be used.",
    "where": None,
    "next": "Look into the log of the control process, and report it.",
}
_GONE: FileTrouble = {
    "what": "Its bytes are not in the central store.",
    "where": None,
    "next": "Upload it again.",
}
