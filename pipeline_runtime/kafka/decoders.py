"""One thread at a time generates the decoders of kafka-python's messages.

kafka-python 3.0.12 generates the decoder of a kind of message when the first one arrives, and keeps the
message's class in a field that all threads share while it does so. Where first ones arrive at two clients at
once, one may find a weak proxy in its place. It keeps what it has made, so this process could never again
read a message of that kind, by whatever client: "X is not a type object (weakref.CallableProxyType)".
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
    """For all clients of this process, also those that are open."""
    StructField.compiled_decode_from = _one_at_a_time
