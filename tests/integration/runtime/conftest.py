"""One node with one Spark session for all tests of this folder."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.operators.registry import default_registry
from pipeline_runtime.replica.host import ReplicaHost
from tests.integration.runtime.engine import Node, end_clients

PACKAGE = Path(__file__).parent / "operators_package"
METADATA = "Metadata-Version: 2.1\nName: fogline-test-operators\nVersion: 1\n"
ENTRY_POINTS = """[fogline.operators]
fragile = fogline_test_operators:Fragile
picky = fogline_test_operators:Picky
frozen = fogline_test_operators:Frozen
endless = fogline_test_operators:Endless
spark-pairs = fogline_test_operators:SparkPairs
"""


@pytest.fixture(scope="session")
def package_paths(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A user's package of operators, where Spark's Python processes find it."""
    site = tmp_path_factory.mktemp("site")
    info = site / "fogline_test_operators-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(METADATA)
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    paths = [str(PACKAGE), str(site)]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [*paths, os.environ.get("PYTHONPATH", "")]))
    return paths


@pytest.fixture(autouse=True)
def installed_package(package_paths: list[str]) -> Iterator[None]:
    """Where this process finds it, too, as long as a test of this folder runs: others count the operators."""
    before = list(sys.path)
    sys.path[:0] = package_paths
    importlib.invalidate_caches()
    default_registry.cache_clear()
    yield
    sys.path[:] = before
    default_registry.cache_clear()


@pytest.fixture(scope="session")
def files() -> dict[str, Path]:
    """Uploaded files: reference -> path. Tests add theirs."""
    return {}


@pytest.fixture(scope="session")
def host(
    kafka: str,
    package_paths: list[str],
    files: dict[str, Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[ReplicaHost]:
    _end_spark_of_other_tests()
    host = ReplicaHost(
        "a", tmp_path_factory.mktemp("host"), KafkaSettings(kafka), lambda: None, files.__getitem__
    )
    host.start()
    yield host
    host.close()
    _end_spark_of_other_tests()


@pytest.fixture(autouse=True)
def clients() -> Iterator[None]:
    yield
    end_clients()


@pytest.fixture
def node(host: ReplicaHost, files: dict[str, Path], tmp_path: Path) -> Iterator[Node]:
    node = Node(host, tmp_path / "a", files)
    yield node
    node.stop_all()


@pytest.fixture
def other_node(host: ReplicaHost, files: dict[str, Path], kafka: str, tmp_path: Path) -> Iterator[Node]:
    """A second node, with a gate of its own; it shares the process's Spark session."""
    other = ReplicaHost("b", tmp_path / "host-b", KafkaSettings(kafka), lambda: None, files.__getitem__)
    other.start()
    node = Node(other, tmp_path / "b", files)
    yield node
    node.stop_all()
    other.broker.close()
    other.gate.close()


def _end_spark_of_other_tests() -> None:
    """A JVM is started with a class path and options that it keeps: this folder's must be its own."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    if session is not None:
        session.stop()
    gateway = SparkContext._gateway
    if gateway is not None:
        gateway.shutdown()
        process = getattr(gateway, "proc", None)
        if process is not None:
            process.stdin.close()
            process.wait(60)
        SparkContext._gateway = None
        SparkContext._jvm = None
