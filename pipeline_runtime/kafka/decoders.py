"""Lets only one thread at a time generate the decoders of kafka-python's messages.

kafka-python 3.0.12 generates the decoder of a kind of message when the first one arrives. Meanwhile it keeps
the message's class in a field that all threads share. When first messages arrive at two clients at once, one
thread may find a weak proxy there, and it keeps the decoder that it made with it. This process could then
never again read a message of that kind, by any client: "X is not a type object (weakref.CallableProxyType)".
"""

from __future__ import annotations

import threading
from functools import wraps
from typing import Any

from kafka.protocol.schemas.fields.struct import StructField

_generating = threading.RLock()
_compiled_decode_from = StructField.compiled_decode_from


@wraps(_compiled_decode_from)
def _one_at_a_time(self: StructField, *args: Any, **kwargs: Any) -> Any:
    with _generating:
        return _compiled_decode_from(self, *args, **kwargs)


def generate_one_at_a_time() -> None:
    """Works for all clients of this process, including those that are open."""
    StructField.compiled_decode_from = _one_at_a_time
