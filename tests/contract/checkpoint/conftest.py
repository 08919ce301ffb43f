from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline_runtime.checkpoint.client import ChunkClient
from pipeline_runtime.checkpoint.database import StateDatabase
from pipeline_runtime.checkpoint.files import FileStore
from pipeline_runtime.checkpoint.service import Server, chunk_service
from tests.contract.checkpoint.services import KEY, serving, token
from tests.unit.checkpoint.replicas import central, checkpoint, database, replica, work
from tests.waiting import PATIENCE_S

__all__ = ["central", "checkpoint", "database", "replica", "work"]


@pytest.fixture
def files(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path / "files")


@pytest.fixture
def server(central: StateDatabase, files: FileStore) -> Iterator[Server]:
    with serving(chunk_service(central, KEY, files)) as running:
        yield running


@pytest.fixture
def client(server: Server) -> Iterator[ChunkClient]:
    opened = ChunkClient(server.url, token(), retry_s=PATIENCE_S)
    yield opened
    opened.close()
