"""Keeps the desired state on the node's disk, so that the node can start without control."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path

from pipeline_runtime.model.desired import NodeDesired, read_desired

log = logging.getLogger(__name__)


class DesiredStore:
    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self) -> NodeDesired | None:
        """Returns the stored state.

        Returns None if there is none that can be read: control then sends it again.
        """
        try:
            return read_desired(json.loads(self._path.read_bytes()))
        except FileNotFoundError:
            return None
        except ValueError as error:
            log.error(
                "%s cannot be read (%s). The replicas' state is kept; they start when the control "
                "side sends the desired state again.",
                self._path,
                error,
            )
            return None

    def save(self, desired: NodeDesired) -> None:
        """Writes the state durably: a crash leaves the old one or the new one, never half of it."""
        draft = self._path.with_suffix(".new")
        with open(draft, "wb") as file:
            file.write(desired.model_dump_json().encode())
            file.flush()
            os.fsync(file.fileno())
        os.chmod(draft, 0o600)  # it holds tokens
        os.replace(draft, self._path)
        directory = os.open(self._path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
