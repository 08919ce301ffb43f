"""The control of a group under load, for tests that do not depend on one another."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.handover.control import Control
from tests.handover.stage import Stage

_FAILED = pytest.StashKey[bool]()


@pytest.fixture
def control(stage: Stage, request: pytest.FixtureRequest) -> Iterator[Control]:
    """One node owns, another one follows closely. Afterwards the law is checked; where a test has failed, the
    next one gets nodes and a group of its own. `stage`: the module's."""
    broken = True
    try:
        yield stage.control()
        if not request.node.stash[_FAILED]:
            stage.verify()
            broken = False
    finally:
        if broken:
            stage.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    report = yield
    if call.when == "call":
        item.stash[_FAILED] = report.failed
    return report
