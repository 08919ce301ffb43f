"""Makes the archive of Java classes from which the embedded Kafka starts, at install:

    python -m workers.supervisor.class_archive

Kafka starts and stops once, and Java keeps the classes that it has loaded. Each later start, and each
formatting of a new data directory, takes little more than half the CPU.
`pipeline_runtime.spark.class_archive` does the same for Spark.
"""

from __future__ import annotations

import socket
import tempfile
from contextlib import ExitStack
from pathlib import Path

from workers.supervisor.services import KAFKA_CLASS_ARCHIVE, Kafka

_PATIENCE_S = 600.0


class _Keeping(Kafka):
    """A Kafka that writes the classes that it has loaded when it ends."""

    stop_timeout_s = _PATIENCE_S

    def __init__(self, directory: Path, archive: Path) -> None:
        port, controller_port = _free_ports()
        super().__init__(directory, port, controller_port)
        self._archive = archive

    def command(self) -> list[str]:
        java, *arguments = super().command()
        return [
            java,
            f"-XX:ArchiveClassesAtExit={self._archive}",
            "-Xlog:disable",
            "-Xlog:all=error:stderr",
            *arguments,
        ]


def make(archive: Path) -> None:
    """Replaces `archive`. Raises OSError if it cannot be written, ServiceFailed if Kafka does not start."""
    archive.unlink(missing_ok=True)  # Java would start from it, and would keep only what it has loaded itself
    with tempfile.TemporaryDirectory(dir=archive.parent, prefix=".kafka-classes-") as directory:
        fresh = Path(directory, archive.name)
        with _Keeping(Path(directory, "kafka"), fresh):
            pass
        fresh.rename(archive)


def _free_ports() -> list[int]:
    with ExitStack() as held:
        sockets = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(2)]
        return [int(one.getsockname()[1]) for one in sockets]


if __name__ == "__main__":
    make(KAFKA_CLASS_ARCHIVE)
