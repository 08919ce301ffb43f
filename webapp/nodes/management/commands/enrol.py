"""Enrols nodes of this machine, for `make up`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser
from django.db import transaction

from webapp.monitoring.records import audit
from webapp.nodes.actions import Machine, admit, check_name, credential_document, credential_fits
from webapp.nodes.models import Node


class Command(BaseCommand):
    help = "Enrol nodes of this machine: writes FOGLINE_DATA/nodes/<name>/credential.json for each."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("names", nargs="*", help="default: those of FOGLINE_NODES")

    def handle(self, *args: Any, **options: Any) -> None:
        for name in options["names"] or settings.FOGLINE.nodes:
            check_name(name)
            self._enrol(name)

    def _enrol(self, name: str) -> None:
        path = settings.FOGLINE.node_directory(name) / "credential.json"
        with transaction.atomic():
            node = Node.objects.select_for_update().filter(name=name).first()
            credential = _kept_credential(path)
            if node is None or credential is None or not credential_fits(node, credential):
                url = f"http://127.0.0.1:{settings.FOGLINE.local_node_port(name)}"
                machine = Machine(name, settings.FOGLINE_VERSION, os.cpu_count() or 1, url)
                node, credential = admit(machine)
                audit(None, "node.enrol", name, local=True)
            # Written each time: addresses and ports may have changed since.
            _write(path, credential_document(credential, name, settings.FOGLINE.chunk_url))
        self.stdout.write(f"{name} is enrolled: {path}")


def _kept_credential(path: Path) -> str | None:
    try:
        return str(json.loads(path.read_text())["credential"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _write(path: Path, document: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".tmp")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump(document, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
