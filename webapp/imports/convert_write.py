"""Writes the Parquet file of an import, in a thread of its own. DuckDB reads the next piece meanwhile."""

from __future__ import annotations

import threading
from pathlib import Path
from queue import Queue
from types import TracebackType

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline_runtime.model.schema import FieldType
from pipeline_runtime.operators.recording import METADATA, Facts, arrow_type

GROUP_BYTES = 8 << 20
GROUP_ROWS = (1_000, 100_000)
_WHOLE = (pa.int64(), arrow_type(FieldType.TIMESTAMP))


class Writer:
    """Takes tables and writes them as row groups of one size. `facts` are set before it ends."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.facts: Facts | None = None
        self._schema = schema
        texts = [field.name for field in schema if pa.types.is_string(field.type)]
        wholes = [field.name for field in schema if field.type in _WHOLE]
        self._file = pq.ParquetWriter(
            path,
            schema,
            compression="lz4",  # the quickest to write, and to read
            use_dictionary=texts,
            column_encoding=dict.fromkeys(wholes, "DELTA_BINARY_PACKED") or None,
            write_statistics=["_due_us"] if "_due_us" in schema.names else False,
        )
        self._rows = 0  # the number of rows of a row group; known after the first table
        self._left: pa.Table | None = None
        self._queue: Queue[pa.Table | None] = Queue(1)
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="parquet", daemon=True)

    def __enter__(self) -> Writer:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._queue.put(None)
        self._thread.join()
        if error is None and self._error is None and self.facts is not None:
            self._file.add_key_value_metadata({METADATA: self.facts.model_dump_json()})
        self._file.close()
        if error is None and self._error is not None:
            raise self._error

    def add(self, table: pa.Table) -> None:
        if self._error is not None:
            raise self._error
        self._queue.put(table)

    def _run(self) -> None:
        while (table := self._queue.get()) is not None:
            if self._error is None:
                try:
                    self._write(table)
                except BaseException as error:
                    self._error = error
        if self._error is None and self._left is not None and self._left.num_rows:
            try:
                self._file.write_table(self._left)
            except BaseException as error:
                self._error = error

    def _write(self, table: pa.Table) -> None:
        table = table.cast(self._schema)
        if not self._rows and table.num_rows:
            per_row = max(1, table.nbytes // table.num_rows)
            self._rows = min(max(GROUP_BYTES // per_row, GROUP_ROWS[0]), GROUP_ROWS[1])
        if self._left is not None:
            table = pa.concat_tables([self._left, table])
        whole = table.num_rows - table.num_rows % self._rows if self._rows else 0
        for begin in range(0, whole, self._rows or 1):
            self._file.write_table(table.slice(begin, self._rows), row_group_size=self._rows)
        # It is a copy, so that the memory of the written rows becomes free.
        self._left = table.slice(whole).combine_chunks() if whole < table.num_rows else None
