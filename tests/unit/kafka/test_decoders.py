"""Clients whose first messages of a kind arrive at once."""

from __future__ import annotations

import threading
import time
import weakref

import pytest
from kafka.protocol.metadata import MetadataResponse
from kafka.protocol.schemas.fields import struct
from kafka.protocol.schemas.fields.codegen import CodegenContext

import pipeline_runtime.kafka.clients  # noqa: F401 - what is tested comes with it

CLIENTS = 4
OTHERS_TURNS = 100


def unread() -> struct.StructField:
    """As the response has it before the first message."""
    found = struct.StructField(MetadataResponse._json)
    for name, field in MetadataResponse._struct.fields.items():
        if field.is_struct_array():
            found.fields[name].set_data_class(field.data_class)
    found.set_data_class(weakref.proxy(MetadataResponse))
    return found


def test_one_at_a_time_is_generated_and_knows_the_messages_class_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at_work: list[int] = []
    most = 0

    class Watched(CodegenContext):
        def __init__(self) -> None:
            super().__init__()
            nonlocal most
            at_work.append(1)
            for _ in range(OTHERS_TURNS):  # between the class that is put there and its use
                most = max(most, len(at_work))
                time.sleep(0)

        def source(self) -> str:
            at_work.pop()
            return super().source()

    monkeypatch.setattr(struct, "CodegenContext", Watched)
    response, begin = unread(), threading.Barrier(CLIENTS)
    decoders = []

    def ask(version: int) -> None:
        begin.wait()
        decoders.append(response.compiled_decode_from(version, data_class=MetadataResponse))

    newest = MetadataResponse.max_version
    threads = [threading.Thread(target=ask, args=(newest - number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1
    known = [[type(value) for value in decoder.__globals__.values()] for decoder in decoders]
    assert len(known) == CLIENTS
    assert not any(proxy in types for types in known for proxy in weakref.ProxyTypes)
