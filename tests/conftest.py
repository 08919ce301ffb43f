"""Real services for the tests: started once per session, stopped by their own process ids.

A service that cannot start FAILS the tests that ask for it; nothing is skipped.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.chosen import examples
from tests.ports import free_ports
from tests.running import RunningFogline
from tests.waiting import wait_until
from workers.supervisor.services import Kafka, Redis

# Before anything reads the settings: no test may depend on, or touch, the developer's own Fogline.
for _name in list(os.environ):
    if (_name.startswith("FOGLINE_") and _name != "FOGLINE_IVY_SETTINGS") or _name in (
        "REDIS_URL",
        "DATABASE_URL",
    ):
        del os.environ[_name]
os.environ["FOGLINE_DATA"] = tempfile.mkdtemp(prefix="fogline-tests-")
os.environ["DJANGO_SETTINGS_MODULE"] = "webapp.config.settings"
atexit.register(shutil.rmtree, os.environ["FOGLINE_DATA"], ignore_errors=True)

# The same examples each time and on every machine, however slow: what fails here fails there. Others are
# found by `--hypothesis-profile=search`.
_UNHURRIED = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    max_examples=examples(100),
)
settings.register_profile("search", _UNHURRIED, max_examples=100)
settings.register_profile("repeatable", _UNHURRIED, derandomize=True, database=None)
settings.load_profile("repeatable")


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None) -> None:
    """The test database, with the tables that the migrations make.

    After each test that commits, Django empties them. Then it would write its permissions of each model
    again, but nothing asks for those: users have roles.
    """
    from django.contrib.contenttypes.management import create_contenttypes
    from django.db.models.signals import post_migrate

    assert post_migrate.disconnect(dispatch_uid="django.contrib.auth.management.create_permissions")
    assert post_migrate.disconnect(create_contenttypes)


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Bootstrap servers of a real Kafka that lives as long as the test session.

    Topics are not created by themselves, and all tests share it: use names of your own.
    """
    port, controller_port = free_ports(2)
    with Kafka(tmp_path_factory.mktemp("kafka"), port, controller_port) as service:
        yield service.bootstrap


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of a real Redis that lives as long as the test session."""
    (port,) = free_ports(1)
    with Redis(tmp_path_factory.mktemp("redis"), port) as service:
        yield service.url


@pytest.fixture
def fogline(shared_fogline: RunningFogline) -> Iterator[RunningFogline]:
    """The one of this test session. What a test has made there is gone after it, also where it failed: what
    runs on takes the machine from all that come."""
    before = shared_fogline.pipelines()
    yield shared_fogline
    shared_fogline.remove(shared_fogline.pipelines() - before)


@pytest.fixture(scope="session")
def shared_fogline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningFogline]:
    """A whole Fogline with two nodes that are ready and no demo, for all tests that drive one from outside.

    Some of them silence nodes, and restore by hand what ran there. Use topics of your own.
    """
    nodes = ("edge-a", "edge-b")
    # Trimming takes away a journal's first commits, at any moment of a long run. Oracles count them.
    environ = {"FOGLINE_SILENCE_S": "12", "FOGLINE_RESTORE": "manual", "FOGLINE_TRIM_S": "0"}
    with RunningFogline(tmp_path_factory.mktemp("fogline"), nodes, **environ) as running:
        with running.client() as client:
            wait_until(
                lambda: sum(node["ready"] for node in client.get("/api/v1/nodes").json()) == len(nodes),
                "both nodes to be ready",
            )
        yield running
