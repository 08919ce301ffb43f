"""How people call the encodings that a text may have. The import dialog calls them the same
(static/shared/files/words.ts)."""

from __future__ import annotations

ENCODINGS = {
    "utf-8": "UTF-8",
    "utf-16-le": "UTF-16, low byte first",
    "utf-16-be": "UTF-16, high byte first",
    "cp1250": "Windows, Central Europe (cp1250)",
    "cp1251": "Windows, Cyrillic (cp1251)",
    "cp1252": "Windows, Western Europe (cp1252)",
    "cp1253": "Windows, Greek (cp1253)",
    "cp1254": "Windows, Turkish (cp1254)",
    "cp1255": "Windows, Hebrew (cp1255)",
    "cp1256": "Windows, Arabic (cp1256)",
    "cp1257": "Windows, Baltic (cp1257)",
    "cp1258": "Windows, Vietnamese (cp1258)",
    "cp437": "DOS (cp437)",
    "cp775": "DOS, Baltic (cp775)",
    "cp850": "DOS, Western Europe (cp850)",
    "cp852": "DOS, Central Europe (cp852)",
    "mac_roman": "Mac OS, Western Europe",
    "mac_latin2": "Mac OS, Central Europe",
    "gb18030": "Chinese (GB 18030)",
    "cp932": "Japanese (Shift JIS)",
    "cp949": "Korean (cp949)",
}
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
    """Returns what a person reads for one of Python's codecs, such as `Windows, Baltic (cp1257)`."""
    if codec in ENCODINGS:
        return ENCODINGS[codec]
    family = next((words for begin, words in _FAMILIES if codec.startswith(begin)), "Another encoding")
    return f"{family} ({codec})"
