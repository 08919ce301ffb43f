"""Fixtures for tests of the running Fogline. They end with the test that uses them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import httpx
import pytest

from tests.integration.pipelines.driving import Event, SteadyProducer
from tests.running import RunningFogline

Steady = Callable[[str, str, Callable[[int], Event], float], SteadyProducer]
"""Starts a SteadyProducer of these arguments."""


@pytest.fixture
def client(fogline: RunningFogline) -> Iterator[httpx.Client]:
    with fogline.client() as signed_in:
        yield signed_in


@pytest.fixture
def steady() -> Iterator[Steady]:
    """What it sends ends with the test, also with one that fails."""
    with ExitStack() as ends:

        def start(bootstrap: str, topic: str, make: Callable[[int], Event], rate: float) -> SteadyProducer:
            producer = SteadyProducer(bootstrap, topic, make, rate)
            producer.start()
            ends.callback(producer.finish, 0)
            return producer

        yield start
