"""Spark's Python processes: how they start, and what queries that start together share of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyspark
import pytest

from pipeline_runtime.replica.host import ReplicaHost
from pipeline_runtime.spark.source import FORMAT

pytestmark = pytest.mark.integration


def test_they_import_from_where_python_keeps_what_it_compiled(host: ReplicaHost) -> None:
    def imported(_: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import sys

        paths: list[Any] = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
        yield pa.record_batch({"path": pa.array([path for path in paths if path], pa.string())})

    found = [row.path for row in host.engine.session.range(1).mapInArrow(imported, "path string").collect()]
    assert pyspark.__file__ in found
    assert [path for path in found if ".zip" in path] == []


def test_queries_that_start_together_share_no_map_that_they_could_spoil(host: ReplicaHost) -> None:
    session: Any = host.engine.session
    source = session._jsparkSession.sessionState().dataSourceManager().lookupDataSource(FORMAT)
    shared = source.dataSourceCls().envVars()
    assert shared.getClass().getName() == "java.util.concurrent.ConcurrentHashMap"
    assert dict(shared)["PYTHONHASHSEED"] == "0"
