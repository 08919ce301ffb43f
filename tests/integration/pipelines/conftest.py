"""A running Fogline with two nodes and no demo, shared by the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests.running import RunningFogline


@pytest.fixture(scope="session")
def fogline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningFogline]:
    data = tmp_path_factory.mktemp("fogline") / "data"
    # These tests restore by hand what they have silenced.
    environ = {"FOGLINE_SILENCE_S": "12", "FOGLINE_RESTORE": "manual"}
    with RunningFogline(data, nodes=("edge-a", "edge-b"), **environ) as running:
        yield running


@pytest.fixture
def client(fogline: RunningFogline) -> Iterator[httpx.Client]:
    with fogline.client() as signed_in:
        yield signed_in
