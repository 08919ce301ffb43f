"""A client of the running Fogline."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests.running import RunningFogline


@pytest.fixture
def client(fogline: RunningFogline) -> Iterator[httpx.Client]:
    with fogline.client() as signed_in:
        yield signed_in
