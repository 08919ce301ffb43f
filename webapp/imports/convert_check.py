"""Checks that a reading can be carried out, because a person may have written it by hand."""

from __future__ import annotations

import codecs
import re
from collections import Counter
from zoneinfo import ZoneInfo

from webapp.imports.faults import ImportFault
from webapp.imports.reading import Reading

_NAME = re.compile(r"[^_`\x00-\x1f.][^`\x00-\x1f]*")
_NO_ENCODINGS = ("idna", "punycode", "unicode_escape", "raw_unicode_escape", "utf-7", "undefined")
_DELIMITER_BYTES_MAX = 4


def check(reading: Reading) -> None:
    """Raises ImportFault if the reading cannot be carried out."""
    if not reading.columns:
        raise ImportFault("The reading has no columns.", None, "Choose the columns to import.")
    for name, count in Counter(column.name for column in reading.columns).items():
        if count > 1:
            raise ImportFault(f"Two columns are called {name!r}.", None, "Give each a name of its own.")
        if not _NAME.fullmatch(name):
            raise ImportFault(
                f"No column can be called {name!r}.",
                None,
                "A name does not begin with an underscore or a dot, and has no backquotes.",
            )
    _check_text(reading)
    if reading.time is not None:
        try:
            ZoneInfo(reading.time.zone)
        except (KeyError, ValueError, OSError) as error:
            raise ImportFault(
                f"There is no time zone {reading.time.zone!r}.", None, "Choose one, such as Europe/Berlin."
            ) from error


def _check_text(reading: Reading) -> None:
    try:
        encoding = codecs.lookup(reading.encoding)
        known = (
            encoding._is_text_encoding and encoding.name not in _NO_ENCODINGS
        )  # only encodings of text: zip, for example, turns bytes into bytes
    except (LookupError, ValueError):
        known = False
    if not known:
        raise ImportFault(f"There is no encoding {reading.encoding!r}.", None, "Choose one, such as utf-8.")
    if list(reading.cuts) != sorted(set(reading.cuts)):
        raise ImportFault(
            "The places where cells begin are not in their order.",
            None,
            "Name each once, the smallest first.",
        )
    if reading.delimiter in ("whitespace", "places"):
        return
    size = len(reading.delimiter.encode())
    if not 1 <= size <= _DELIMITER_BYTES_MAX or re.search(r"[\r\n\0]", reading.delimiter):
        raise ImportFault(
            f"{reading.delimiter!r} cannot divide cells.", None, "A delimiter has one to four characters."
        )
    if reading.quote and reading.quote in reading.delimiter:
        raise ImportFault("The delimiter and the quote are the same.", None, "Choose another one.")
