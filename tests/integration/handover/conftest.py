"""Three nodes in processes of their own, with a proxied line each, and one group under load."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pipeline_runtime.model.spec import Pace
from tests.handover.control import Control
from tests.handover.rig import Group, Rig, running_rig


@pytest.fixture(scope="session")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    with running_rig(("a", "b", "c"), tmp_path_factory.mktemp("rig")) as rig:
        yield rig


@pytest.fixture(scope="session")
def control(rig: Rig) -> Iterator[Control]:
    # Three nodes on two cores: with batches so rare there is time left for faults.
    group = Group(rig.kafka, pace=Pace(interval_ms_min=200, interval_ms_max=400))
    control = Control(rig, group)
    control.log = print
    try:
        control.begin(rig.nodes["a"])
        group.load()
        yield control
    finally:
        group.close()
