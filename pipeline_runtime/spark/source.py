"""The streaming data source of every group: it reads what the replica's gate has granted.

The gate (pipeline_runtime.batch.gate) tells Spark of a next batch at once. It tells the batch's tasks what to
read when that is decided; they wait until then. A task that stays (batch.group) takes all batches to come,
and gives Spark no rows. One instance of the source reads all inputs of a group, so that one gate decides
about them all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit
from pyspark.sql.types import StructType

from pipeline_runtime.batch.gate_client import gate, is_connected
from pipeline_runtime.batch.gate_messages import FirstToken, NextToken, SlicesOf, TasksOf
from pipeline_runtime.checkpoint.spark_state import TOKEN
from pipeline_runtime.garbage import freeze
from pipeline_runtime.spark.freed_memory import give_back
from pipeline_runtime.spark.schema import enveloped, flush_rows, source_schema

if TYPE_CHECKING:
    from pipeline_runtime.batch.asked_registries import AskedRegistries
    from pipeline_runtime.batch.reader import GroupReader

FORMAT = "fogline"


@dataclass(frozen=True)
class Part(InputPartition):
    """What one task reads of a batch."""

    token: int
    task: int


class GatedReader(DataSourceStreamReader):
    def __init__(self, address: str) -> None:
        self._address = address

    def initialOffset(self) -> dict[str, Any]:
        return {TOKEN: gate(self._address).ask(FirstToken())}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        return {TOKEN: gate(self._address).ask(NextToken(start[TOKEN]))}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        return [Part(**vars(part)) for part in gate(self._address).ask(TasksOf(end[TOKEN]))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Part)
        reader, client = _reader(self._address), gate(self._address)
        if not reader.is_planned:  # the task stays for the batches to come
            from pipeline_runtime.batch.group import GroupWork, run_batches  # as in `_reader`

            work = GroupWork(client, reader)
            freeze(dropped=False)
            try:
                run_batches(client, work, partition.token, partition.task)
            finally:
                # This process may wait for its next task for long.
                del work, reader
                _drop(self._address)
            return
        schema = source_schema([item.schema for item in reader.inputs])
        for part in client.ask(SlicesOf(partition.token, partition.task)) or ():
            if part.input < 0:
                yield from flush_rows(len(reader.inputs), part.batch_time_ms, schema)
                continue
            for rows in reader.read(part):
                yield from enveloped(rows, reader.inputs[part.input], schema)

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing to do: the journal says what has been processed."""


class GatedSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return FORMAT

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return GatedReader(self.options["gate"])


_readers: dict[str, tuple[GroupReader, AskedRegistries]] = {}


def _drop(address: str) -> None:
    """Leave that gate's reader, with what it has read ahead."""
    _close(address)
    give_back()


def _close(address: str) -> None:
    reader, registries = _readers.pop(address)
    reader.close()
    registries.close()


def _reader(address: str) -> GroupReader:
    """This worker process's reader for that gate, with its connections."""
    if address not in _readers:
        # Imported here, because the start of each query waits for a process that does not read and needs none
        # of it.
        from pipeline_runtime.batch.asked_registries import AskedRegistries
        from pipeline_runtime.batch.reader import GroupReader

        client = gate(address)
        # Spark uses its worker processes for all groups. Readers of groups that have left the node are
        # dropped here.
        departed = [each for each in _readers if not is_connected(each)]
        for each in departed:
            _close(each)
        registries = AskedRegistries(address)
        _readers[address] = GroupReader(client, registries), registries
        freeze(dropped=bool(departed))
    return _readers[address][0]
