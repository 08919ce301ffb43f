"""Packs the state of a key: the processor's state, the operator's version, and the timers.

The bytes are MessagePack, which keeps numbers exactly, NaN and infinity too. Code that stores the bytes need
not read them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

_LARGE = 1
"""The code of an integer of more than 64 bits, as text: MessagePack has none."""


class Kept(msgspec.Struct, array_like=True):
    state: Any
    version: int = 1
    timers: Sequence[int] = ()  # in ms, rising


def encoded(kept: Kept) -> bytes:
    """Raises TypeError for what no state can hold."""
    try:
        return _encode(kept)
    except OverflowError:
        return _encode(Kept(_with_large(kept.state), kept.version, kept.timers))


def decoded(data: bytes) -> Kept:
    """Raises ValueError if these bytes hold no state."""
    try:
        return _decode(data)
    except msgspec.DecodeError as error:
        raise ValueError(f"a state cannot be read: {error}") from error


def _with_large(state: Any) -> Any:
    if isinstance(state, dict):
        return {name: _with_large(value) for name, value in state.items()}
    if isinstance(state, list | tuple):
        return [_with_large(value) for value in state]
    if isinstance(state, int) and not -(2**63) <= state < 2**64:
        return msgspec.msgpack.Ext(_LARGE, str(state).encode())
    return state


def _large(code: int, data: memoryview) -> int:
    if code != _LARGE:
        raise ValueError(f"no state has a value of the kind {code}")
    return int(bytes(data))


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Kept, ext_hook=_large).decode
