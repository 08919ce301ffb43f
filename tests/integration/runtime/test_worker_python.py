"""Spark's Python processes: how they start is most of what a query's start takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyspark
import pytest

from pipeline_runtime.replica.host import ReplicaHost

pytestmark = pytest.mark.integration


def test_they_import_from_where_python_keeps_what_it_compiled(host: ReplicaHost) -> None:
    def imported(_: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import sys

        paths: list[Any] = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
        yield pa.record_batch({"path": pa.array([path for path in paths if path], pa.string())})

    found = [row.path for row in host.session.range(1).mapInArrow(imported, "path string").collect()]
    assert pyspark.__file__ in found
    assert [path for path in found if ".zip" in path] == []
