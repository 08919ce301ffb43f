"""Gives encodings names that people understand. The import dialog gets these names from the server."""

from __future__ import annotations

_OFFERED = {
    "utf-8": "UTF-8",
    "cp1252": "Windows, Western Europe (cp1252)",
    "iso8859_1": "Latin-1 (ISO 8859-1)",
    "iso8859_15": "Latin-9 with € (ISO 8859-15)",
    "utf-16-le": "UTF-16, low byte first",
    "utf-16-be": "UTF-16, high byte first",
    "cp437": "DOS (cp437)",
    "cp775": "DOS, Baltic (cp775)",
    "cp850": "DOS, Western Europe (cp850)",
    "cp852": "DOS, Central Europe (cp852)",
    "cp866": "DOS, Cyrillic (cp866)",
    "cp1250": "Windows, Central Europe (cp1250)",
    "iso8859_2": "Central Europe (ISO 8859-2)",
    "cp1251": "Windows, Cyrillic (cp1251)",
    "koi8_r": "Cyrillic (KOI8-R)",
    "iso8859_5": "Cyrillic (ISO 8859-5)",
    "cp1253": "Windows, Greek (cp1253)",
    "cp1254": "Windows, Turkish (cp1254)",
    "cp1255": "Windows, Hebrew (cp1255)",
    "cp1256": "Windows, Arabic (cp1256)",
    "cp1257": "Windows, Baltic (cp1257)",
    "mac_roman": "Mac OS, Western Europe",
    "mac_latin2": "Mac OS, Central Europe",
    "cp932": "Japanese (Shift JIS)",
    "euc_jp": "Japanese (EUC-JP)",
    "gb18030": "Chinese (GB 18030)",
    "big5": "Chinese, Taiwan (Big5)",
    "cp949": "Korean (cp949)",
}
_FURTHER = {
    "cp1258": "Windows, Vietnamese (cp1258)",
    "cp857": "DOS, Turkish (cp857)",
    "mac_turkish": "Mac OS, Turkish",
    "koi8_u": "Cyrillic, Ukraine (KOI8-U)",
    "iso8859_6": "Arabic (ISO 8859-6)",
    "iso8859_7": "Greek (ISO 8859-7)",
    "iso8859_8": "Hebrew (ISO 8859-8)",
    "iso8859_13": "Baltic (ISO 8859-13)",
}
ENCODINGS = {**_OFFERED, **_FURTHER}
_FAMILIES = (
    ("cp8", "DOS"),
    ("cp7", "DOS"),
    ("mac_", "Mac OS"),
    ("iso8859_", "ISO 8859"),
    ("koi8_", "Cyrillic"),
    ("big5", "Chinese, Taiwan"),
    ("gb", "Chinese"),
    ("hz", "Chinese"),
    ("euc_j", "Japanese"),
    ("shift_j", "Japanese"),
    ("iso2022_jp", "Japanese"),
    ("euc_kr", "Korean"),
    ("johab", "Korean"),
    ("iso2022_kr", "Korean"),
)


def encoding_words(codec: str) -> str:
    """Returns the name of one of Python's codecs for people, such as `Windows, Baltic (cp1257)`."""
    if codec in ENCODINGS:
        return ENCODINGS[codec]
    family = next((words for begin, words in _FAMILIES if codec.startswith(begin)), "Another encoding")
    return f"{family} ({codec})"


def offered(codec: str) -> dict[str, str]:
    """Returns the encodings that a person can choose, with their names. The file's own encoding `codec` is
    among them."""
    return _OFFERED if codec in _OFFERED else {**_OFFERED, codec: encoding_words(codec)}
