"""The schema of the gated source, as Spark takes it."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType


def spark_schema(schema: pa.Schema) -> StructType:
    """The same columns in Spark's types; a timestamp is an instant."""
    return from_arrow_schema(schema, prefer_timestamp_ntz=False)
