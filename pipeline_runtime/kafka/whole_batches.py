"""Consumers that give whole batches, as they lie in the topic: all of them, or those of many rows.

Everything before that is kafka-python's: fetching, retries, checksums, and finding transactions that were
aborted. This uses internals of kafka-python.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kafka import KafkaConsumer
from kafka.consumer.fetcher import Fetcher
from kafka.errors import CorruptRecordError
from kafka.record.default_records import DefaultRecordBatch

from pipeline_runtime.kafka.arrow_batches import BODY_BYTES_MAX, ROWS_MIN, WrittenOut, is_own
from pipeline_runtime.kafka.unpacking import unpack


def read_whole_batches(consumer: KafkaConsumer) -> None:
    """Makes the consumer's polls return whole batches, for `Polled` alone."""
    consumer._fetcher.PartitionRecords = WholeBatches


class WholeBatches(Fetcher.PartitionRecords):
    """Returns each committed batch of a fetch as if it were one record."""

    def __init__(self, fetch_offset: int, partition: Any, records: Any, **options: Any) -> None:
        super().__init__(fetch_offset, partition, _Batches(records), **options)


class _Batches:
    """Takes the place of MemoryRecords."""

    def __init__(self, records: Any) -> None:
        self._records = records

    def next_batch(self) -> _Batch | None:
        batch = self._records.next_batch()
        if batch is None:
            return None
        if batch.magic < 2:
            raise CorruptRecordError(
                "it has records in the format of before Kafka 0.11: copy them into a new topic, and read that"
            )
        return _Batch(batch)


class _Batch:
    """Takes the place of a DefaultRecordBatch whose one record is the batch itself."""

    def __init__(self, batch: DefaultRecordBatch) -> None:
        self._batch = batch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batch, name)

    def __next__(self) -> Any:
        return next(self._batch)  # the control batch says whether a transaction ends here

    def __iter__(self) -> Iterator[WholeBatch]:
        yield WholeBatch(self._batch)


class ManyWhole(Fetcher.PartitionRecords):
    """Returns a committed batch of many rows in one of Fogline's own topics as if it were one record, whose
    value is a WholeBatch. All else is record by record."""

    def __init__(self, fetch_offset: int, partition: Any, records: Any, **options: Any) -> None:
        some_whole = _SomeWhole(records) if is_own(partition.topic) else records
        super().__init__(fetch_offset, partition, some_whole, **options)


class _SomeWhole:
    """Takes the place of MemoryRecords."""

    def __init__(self, records: Any) -> None:
        self._records = records

    def next_batch(self) -> Any:
        batch = self._records.next_batch()
        return batch if batch is None or batch.magic < 2 else _WholeIfMany(batch)


class _WholeIfMany(_Batch):
    def __iter__(self) -> Iterator[Any]:
        batch = self._batch
        if batch.records_count >= ROWS_MIN:
            unpack(batch)
            if len(batch._buffer) - batch._pos <= BODY_BYTES_MAX:
                return iter((WholeBatch(batch),))
        return iter(WrittenOut(batch))


class WholeBatch:
    """Takes the place of a DefaultRecord: the batch's last one, since kafka-python goes on after its
    offset."""

    key, headers, checksum, timestamp_type = None, (), None, 0

    def __init__(self, batch: DefaultRecordBatch) -> None:
        self.batch = batch
        self.offset, self.timestamp = batch.last_offset, batch.max_timestamp
        self.size_in_bytes = batch.size_in_bytes

    @property
    def value(self) -> WholeBatch:
        return self

    def __len__(self) -> int:
        return int(self.size_in_bytes)

    def validate_crc(self) -> bool:
        return True  # the batch's checksum was valid
