"""Describes records of a user's topic that are no JSON objects, so that a person knows what they are."""

from __future__ import annotations

from codecs import getincrementaldecoder

SPACE = b" \t\r\n"  # what JSON counts as space

_REGISTRY_BYTES = 5  # a zero and four bytes that number the schema
_GLUE_BYTES = 18  # a version, how the rest is packed, and a UUID
_SHOWN_BYTES = 40

_ONLY_UTF_8 = ": only UTF-8 is read"
_BEGINS: dict[bytes, str] = {
    b"\xef\xbb\xbf": "begins with a byte order mark (UTF-8), which JSON does not have",
    b"\xff\xfe\0\0": f"begins with a byte order mark (UTF-32){_ONLY_UTF_8}",
    b"\0\0\xfe\xff": f"begins with a byte order mark (UTF-32){_ONLY_UTF_8}",
    b"\xff\xfe": f"begins with a byte order mark (UTF-16){_ONLY_UTF_8}",
    b"\xfe\xff": f"begins with a byte order mark (UTF-16){_ONLY_UTF_8}",
    **{
        as_written: f"is JSON in {encoding}{_ONLY_UTF_8}"
        for opens in (b"{", b"[")
        for as_written, encoding in (
            (opens + b"\0\0\0", "UTF-32"),
            (b"\0\0\0" + opens + b"\0\0\0", "UTF-32"),
            (opens + b"\0", "UTF-16"),
            (b"\0" + opens + b"\0", "UTF-16"),
        )
    },
    b"\x1f\x8b": "is packed by its writer (gzip), and only plain JSON is read",
    b"\x28\xb5\x2f\xfd": "is packed by its writer (zstd), and only plain JSON is read",
    b"\x04\x22\x4d\x18": "is packed by its writer (lz4), and only plain JSON is read",
    b"Obj\x01": "is an Avro file, and only plain JSON is read",
    b"PAR1": "is a Parquet file, and only plain JSON is read",
    b"<": "is XML or HTML, and only JSON is read",
}
"""What a record is that begins so. The first that fits counts."""


def foreign_reason(value: bytes | None) -> str | None:
    """Why this is plainly not a JSON text in UTF-8, or None if it may be one."""
    if value is None:
        return "the record is a tombstone: it has a key, and no value"
    if not value.strip(SPACE):
        return "the record is empty"
    said = next((says for begin, says in _BEGINS.items() if value.startswith(begin)), None)
    if said is not None:
        return f"the record {said}"
    if value[0] == 0 and len(value) >= _REGISTRY_BYTES:
        return _of_a_registry(f" (schema {int.from_bytes(value[1:_REGISTRY_BYTES])})")
    if value[:2] in (b"\x03\x00", b"\x03\x05") and len(value) >= _GLUE_BYTES:
        return _of_a_registry(" (AWS Glue)")
    return None


def _of_a_registry(which: str) -> str:
    return (
        f"the record begins with a schema registry's prefix{which}: it is Avro, Protobuf or JSON of a"
        " registry's serializer, and only plain JSON is read"
    )


def is_enclosed(value: bytes, *pairs: bytes) -> bool:
    """Returns whether the record begins and ends with one of these pairs, such as {}."""
    text = value.strip(SPACE)
    return text[:1] + text[-1:] in pairs


def not_an_object(value: bytes) -> str:
    """Why a record is not a JSON object that does not begin and end as one does."""
    text = value.strip(SPACE)
    if is_enclosed(text, b"[]"):
        why = "it is an array. If its entries are the rows, write $ as the array of rows"
    elif is_enclosed(text, b'""'):
        why = "it is one text, as of a program that writes its JSON twice"
    elif text[:1] == b"{":
        why = "it begins as one, and does not end as one: it may be cut off"
    elif (shown := _text_of(text[:_SHOWN_BYTES])) is None:
        why = "it is no text in UTF-8. It may be Avro, Protobuf or MessagePack"
    else:
        why = f"it begins with {shown}"
    return f"the record is not a JSON object: {why}"


def _text_of(begin: bytes) -> str | None:
    """Returns what this is as text, or None if it is none. Its last character may be cut off."""
    try:
        found = getincrementaldecoder("utf-8")().decode(begin)
    except UnicodeDecodeError:
        return None
    return found if found.replace("\t", " ").replace("\n", " ").replace("\r", " ").isprintable() else None
