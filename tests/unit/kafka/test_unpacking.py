"""A batch of records is unpacked within bounds, whatever it becomes."""

from __future__ import annotations

import gzip
import io
import subprocess
import sys
from typing import Any

import pytest
import snappy
import zstandard
from kafka.codec import snappy_encode
from kafka.record.default_records import DefaultRecordBatch
from lz4 import frame as lz4

from pipeline_runtime.kafka import unpacking
from pipeline_runtime.kafka.incoming import Records, decoded
from pipeline_runtime.kafka.unpacking import BATCH_BYTES_MAX, _varint
from tests.unit.kafka.test_incoming import NOW_MS, Sent, bytes_of

GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
CODECS = {"gzip": GZIP, "snappy": SNAPPY, "lz4": LZ4, "zstd": ZSTD}
MIB = 1024 * 1024


def compressed(records: list[Sent], codec: int, packed: bytes | None = None) -> DefaultRecordBatch:
    """The records in a batch, as a producer compresses it. `packed` takes the place of its bytes."""
    plain = DefaultRecordBatch(bytes_of(records, 40))
    body = bytes(plain._buffer[plain._pos :])
    packs: dict[int, Any] = {
        GZIP: gzip.compress,
        SNAPPY: snappy_encode,
        LZ4: lz4.compress,
        ZSTD: zstandard.ZstdCompressor().compress,
    }
    made = bytearray(plain._buffer[: plain._pos]) + (packs[codec](body) if packed is None else packed)
    made[22] = codec  # the lower byte of the attributes
    made[8:12] = (len(made) - 12).to_bytes(4, "big")
    return DefaultRecordBatch(made)


def row(value: bytes) -> Sent:
    return Sent(NOW_MS, b"k", value, [])


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "BATCH_BYTES_MAX", 1000)


def values_of(records: Records) -> list[bytes | None]:
    return records.values.to_pylist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
def test_what_fits_is_as_it_was_sent(codec: int) -> None:
    sent = [row(b"%d" % number * 100) for number in range(50)]
    records = decoded([compressed(sent, codec)])
    assert values_of(records) == [each.value for each in sent]
    assert records.offsets.tolist() == list(range(40, 90))
    assert not records.unread


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
def test_a_record_that_is_too_large_is_left_out_and_those_around_it_are_read(codec: int) -> None:
    sent = [row(b"before"), Sent(NOW_MS + 7, b"k", bytes(50_000), []), row(b"behind")]
    records = decoded([compressed(sent, codec)])
    assert values_of(records) == [b"before", None, b"behind"]
    assert records.offsets.tolist() == [40, 41, 42]
    assert records.timestamps_ms.tolist() == [NOW_MS, NOW_MS + 7, NOW_MS]
    assert list(records.unread) == [1]
    assert "50,0" in records.unread[1]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
def test_records_that_are_too_many_together_are_read_as_far_as_they_fit(codec: int) -> None:
    records = decoded([compressed([row(bytes(90))] * 20, codec)])
    assert len(records) == 20
    assert 8 <= 20 - len(records.unread) <= 10
    assert list(records.unread) == list(range(20 - len(records.unread), 20))


@pytest.mark.usefixtures("small")
def test_what_lies_behind_very_much_is_left_out_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "SKIPPED_BYTES_MAX", 10_000)
    records = decoded([compressed([row(b"before"), row(bytes(50_000)), row(b"behind")], ZSTD)])
    assert values_of(records) == [b"before", None, None]
    assert records.offsets.tolist() == [40, 41, 42]
    assert list(records.unread) == [1, 2]


@pytest.mark.parametrize("codec", [*CODECS.values(), 5], ids=[*CODECS, "unknown"])
def test_bytes_that_cannot_be_unpacked_are_records_that_were_not_read(codec: int) -> None:
    records = decoded([compressed([row(b"a"), row(b"b")], codec, b"\x05 these are none of its bytes")])
    assert records.offsets.tolist() == [40, 41]
    assert list(records.unread) == [0, 1]


def test_records_of_a_batch_that_was_cut_are_unread() -> None:
    whole = zstandard.ZstdCompressor().compress(bytes(range(256)) * 1000)
    records = decoded([compressed([row(b"a")] * 3, ZSTD, whole[:-3])])
    assert list(records.unread) == [0, 1, 2]


def saying(batch: DefaultRecordBatch, count: int) -> DefaultRecordBatch:
    """The same batch, which says that it has so many records."""
    made = bytearray(batch._buffer)
    made[57:61] = count.to_bytes(4, "big", signed=True)
    return DefaultRecordBatch(made)


@pytest.mark.parametrize("count", [2**31 - 1, -1])
@pytest.mark.parametrize("codec", [0, ZSTD])
def test_a_number_of_records_that_cannot_be_is_one_dead_letter(codec: int, count: int) -> None:
    three = [row(b"a"), row(b"b"), row(b"c")]
    plain = DefaultRecordBatch(bytes_of(three, 40))
    batch = saying(compressed(three, codec) if codec else plain, count)
    records = decoded([batch, DefaultRecordBatch(bytes_of([row(b"next")], 43))])
    assert records.offsets.tolist() == [42, 43]
    assert f"{count:,}" in records.unread[0]
    assert values_of(records)[1] == b"next"


def test_records_of_no_length_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    many = 2 * unpacking.STUBS_MAX
    records = decoded([saying(compressed([row(b"a")], ZSTD, zstandard.compress(bytes(many))), many)])
    assert len(records.unread) == len(records) == 1
    monkeypatch.setattr(unpacking, "BATCH_BYTES_MAX", 1000)
    records = decoded([saying(compressed([row(b"a")], ZSTD, zstandard.compress(bytes(many))), many)])
    assert "shorter than its fields" in records.unread[0]


@pytest.mark.usefixtures("small")
def test_of_very_many_records_that_are_left_out_one_stands_for_the_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(unpacking, "STUBS_MAX", 5)
    records = decoded([compressed([row(bytes(90))] * 40, ZSTD)])
    read = len(records) - len(records.unread)
    assert 8 <= read <= 10
    assert len(records.unread) == 6
    assert f"all of its 40 records from number {read + 6}" in records.unread[len(records) - 1]
    assert records.offsets[-1] == 79


def test_what_snappy_says_about_its_size_is_not_believed_blindly() -> None:
    claims = b"\xff\xff\xff\xff\x0f" + snappy.compress(b"abc")[1:]
    records = decoded([compressed([row(b"a")], SNAPPY, claims)])
    assert "snappy" in records.unread[0]


def test_a_frame_that_asks_for_much_memory_is_not_unpacked() -> None:
    made = zstandard.ZstdCompressor(
        compression_params=zstandard.ZstdCompressionParameters(window_log=27, compression_level=1)
    )
    out = io.BytesIO()
    with made.stream_writer(out, closefd=False) as writer:  # without its size, so the window counts
        writer.write(bytes(1000))
    assert list(decoded([compressed([row(b"a")], ZSTD, out.getvalue())]).unread) == [0]


def bomb(codec: int, size: int = 800 * MIB) -> bytes:
    """A batch of three records, the second of which unpacks to `size` bytes. It is made piece by piece."""
    out, zeros = io.BytesIO(), bytes(MIB)
    writers: dict[int, Any] = {
        GZIP: lambda: gzip.GzipFile(fileobj=out, mode="wb", compresslevel=1),
        LZ4: lambda: lz4.LZ4FrameFile(out, mode="wb"),
        ZSTD: lambda: zstandard.ZstdCompressor().stream_writer(out, closefd=False),
    }

    def record(place: int, size: int) -> bytes:
        head = b"\0\0" + _varint(place) + b"\1" + _varint(size)
        return _varint(len(head) + size + 1) + head

    with writers[codec]() as writer:
        writer.write(record(0, 2) + b"{}" + b"\0" + record(1, size))
        for _ in range(size // MIB):
            writer.write(zeros)
        writer.write(b"\0" + record(2, 2) + b"{}" + b"\0")
    return out.getvalue()


_READS = """
import resource, sys
from pipeline_runtime.kafka.incoming import decoded
from kafka.record.default_records import DefaultRecordBatch
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
records = decoded([DefaultRecordBatch(sys.stdin.buffer.read())])
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(grown // 1024, records.values.to_pylist(), list(records.unread))
"""


@pytest.mark.parametrize("codec", [GZIP, LZ4, ZSTD], ids=["gzip", "lz4", "zstd"])
def test_a_record_of_800_mb_takes_little_memory(codec: int) -> None:
    batch = compressed([row(b"")] * 3, codec, bomb(codec))
    done = subprocess.run(
        [sys.executable, "-c", _READS], input=bytes(batch._buffer), capture_output=True, check=True
    )
    grown_mib, found = done.stdout.decode().split(" ", 1)
    assert found.strip() == "[b'{}', None, b'{}'] [1]"
    assert int(grown_mib) < 4 * BATCH_BYTES_MAX // MIB
