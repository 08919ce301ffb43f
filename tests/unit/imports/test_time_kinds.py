"""Many ways to write times: each is read as the beginning of what it names, is asked, or stays what it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.unit.imports.kinds import imported
from webapp.imports.detect import look, preview
from webapp.imports.reading import Preview, Question

Write = Callable[[datetime], str]
MONTHS = [datetime(2021 + n // 12, n % 12 + 1, 1, tzinfo=UTC) for n in range(30)]
QUARTERS = [datetime(2015 + n // 4, n % 4 * 3 + 1, 1, tzinfo=UTC) for n in range(24)]
WEEKS = [datetime(2022, 1, 3, tzinfo=UTC) + timedelta(weeks=n) for n in range(40)]
DAYS = [datetime(2022, 2, 20, tzinfo=UTC) + timedelta(days=n) for n in range(40)]
HOURS = [datetime(2024, 2, 20, tzinfo=UTC) + timedelta(hours=n) for n in range(40)]
MINUTES = [datetime(2022, 2, 20, 8, tzinfo=UTC) + timedelta(minutes=17 * n) for n in range(40)]
YEARS = [datetime(1990 + n, 1, 1, tzinfo=UTC) for n in range(30)]
EXCEL_ZERO, MODIFIED_ZERO = datetime(1899, 12, 30, tzinfo=UTC), datetime(1858, 11, 17, tzinfo=UTC)


def by(pattern: str) -> Write:
    return lambda at: at.strftime(pattern)


def quarter(form: str) -> Write:
    return lambda at: form.format(q=(at.month + 2) // 3, y=at.year, yy=at.year % 100)


def week(form: str) -> Write:
    return lambda at: form.format(w=int(f"{at:%V}"), y=f"{at:%G}")


def days_since(zero: datetime, more: float = 0.0) -> Write:
    return lambda at: f"{(at - zero).total_seconds() / 86_400 + more:.8f}"


def tenths(before_1970: int) -> Write:
    return lambda at: str((int(at.timestamp()) + before_1970) * 10_000_000)


READ: list[tuple[str, Sequence[datetime], Write]] = [
    *(("Monat", MONTHS, by(each)) for each in ("%m/%Y", "%Y-%m", "%m.%Y", "%Y.%m", "%Y%m", "%m/%y", "%Y_%m")),
    *(("Monat", MONTHS, by(each)) for each in ("%b/%y", "%b'%y", "%b%Y", "%YM%m", "M%m/%Y", "%m %Y")),
    *(("time", MONTHS, by(each)) for each in ("%m/%Y", "%Y-%m", "%Y%m", "%m.%Y", "%Y.%m", "%b %Y", "%b/%y")),
    *(
        ("time", QUARTERS, quarter(each))
        for each in (
            "Q{q}/{y}",
            "{y}Q{q}",
            "q{q}/{y}",
            "T{q} {y}",
            "{q}Q{yy}",
            "Q{q}'{yy}",
            "Quartal {q}/{y}",
        )
    ),
    *(
        ("time", WEEKS, week(each))
        for each in (
            "{y}-W{w:02d}",
            "KW {w} {y}",
            "CW{w:02d}/{y}",
            "{w}. KW {y}",
            "Week {w}, {y}",
            "{y}-KW{w:02d}",
        )
    ),
    *(("Woche", WEEKS, week(each)) for each in ("{w}/{y}", "{y}-{w:02d}")),
    *(("time", DAYS, by(each)) for each in ("%Y-%j", "%Y/%j", "%j/%Y", "%y-%j", "%d %b %y")),
    *(("time", MINUTES, by(each)) for each in ("%Y/%j/%H:%M:%S", "%Y:%j:%H:%M:%S", "%Y.%j.%H.%M.%S")),
    *(("MESS_DATUM", HOURS, by(each)) for each in ("%Y%m%d%H", "%Y%m%d%H:00")),
    *(("Tag", DAYS, by(each)) for each in ("%Y%j", "%Y.%j", "%y%j")),
    ("Woche", WEEKS, by("%G%V")),
    ("Jahr", YEARS, by("%Y")),
    *(
        ("time", MINUTES, by(each))
        for each in (
            "%H:%M %d.%m.%Y",
            "%I:%M:%S %p %m/%d/%Y",
            "%d.%m.%Y %H:%M Uhr",
            "%Y-%m-%d_%H-%M-%S",
            "%d-%b-%y %I.%M.%S.000000000 %p",
            "%d%b%y:%H:%M:%S.000",
            "%Y. %m. %d. %H:%M",
            "%Y年%m月%d日 %H:%M",
            "%d de %b de %Y %H:%M",
            "%a %b %d %H:%M:%S UTC %Y",
            "%a %b %d %Y %H:%M:%S GMT+0000 (UTC)",
            "%Y-%m-%d %H:%M:%S +0000 UTC",
            "[%Y-%m-%d %H:%M:%S]",
            '="%Y-%m-%d %H:%M"',
            "'%Y-%m-%d %H:%M",
            "%Y-%m-%d\u00a0%H:%M:%S",
            "%m/%d/%Y, %I:%M:%S\u202f%p",
            "\u200e%d.%m.%Y \u200e%H:%M",
            "%Y\u2011%m\u2011%d %H:%M",
        )
    ),
    ("time", MINUTES, lambda at: f"{at:%m/%d/%Y %I:%M} {'a' if at.hour < 12 else 'p'}"),
    ("time", MINUTES, lambda at: f"{at + timedelta(hours=1):%d.%m.%Y %H:%M} GMT+1"),
    ("time", MINUTES, lambda at: f"{at - timedelta(hours=5):%Y-%m-%d %H:%M:%S} (UTC-5)"),
    ("time", MINUTES, tenths(11_644_473_600)),
    ("time", MINUTES, tenths(62_135_596_800)),
    ("time", MINUTES, days_since(EXCEL_ZERO)),
    ("time", MINUTES, days_since(EXCEL_ZERO, 2_415_018.5)),
    ("time", MINUTES, days_since(MODIFIED_ZERO)),
]


def shown(tmp_path: Path, name: str, texts: Sequence[str]) -> tuple[Preview, tuple[Question, ...]]:
    path = tmp_path / "file"
    path.write_text(f"{name};v\n" + "".join(f"{text};{n}.5\n" for n, text in enumerate(texts)))
    found = look(path, "file.csv")
    return preview(found.head, found.detection.reading), found.detection.questions


@pytest.mark.parametrize(("name", "times", "write"), READ, ids=[f"{n} {w(t[0])}" for n, t, w in READ])
def test_a_time_is_read_however_it_is_written(
    tmp_path: Path, name: str, times: Sequence[datetime], write: Write
) -> None:
    lines, questions = shown(tmp_path, name, [write(at) for at in times])
    found = [datetime.fromisoformat(row.time) if row.time else None for row in lines.rows]
    meant = list(times)[: len(found)]
    assert questions == ()
    assert len(found) > 8
    near = [
        at is not None and abs(at - right) < timedelta(seconds=1)
        for at, right in zip(found, meant, strict=True)
    ]
    assert all(near), (found[:3], meant[:3])


@pytest.mark.parametrize(
    "texts",
    [
        [f"2021{n:02d}" for n in range(1, 13)],
        [f"2021{n:02d}" for n in range(1, 53)],
        [f"24{n:03d}" for n in range(100, 130)],
        [str(2000 + n) for n in range(9)],
    ],
)
def test_numbers_that_may_be_dates_or_seconds_are_asked(tmp_path: Path, texts: list[str]) -> None:
    _, [question] = shown(tmp_path, "time", texts)
    assert question.id == "time.order"
    assert any("seconds" in choice.title for choice in question.choices)


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("Auftrag", [f"{n:03d}/2022" for n in range(50, 80)]),
        ("Teil", [f"12-{n}" for n in range(100, 130)]),
        ("v2", [f"2021{n:02d}" for n in range(1, 13)]),
        ("time", ["2021_000001", "2021_000002", "2021_000003"]),
    ],
)
def test_numbers_of_orders_and_parts_are_no_times(tmp_path: Path, name: str, texts: list[str]) -> None:
    lines, _ = shown(tmp_path, name, texts)
    assert all(row.time is None and row.reject is None for row in lines.rows)


@pytest.mark.parametrize(
    ("name", "begin", "scale"),
    [
        ("ticks", 621_355_968_000_000_000, 10_000_000),
        ("Timestamp", 621_355_968_000_000_000, 10_000_000),
        ("ntp", 2_208_988_800, 1),
        ("sec_1904", 2_082_844_800, 1),
        ("t", 2_082_844_800, 1),
    ],
)
def test_a_count_from_another_year_than_1970_is_a_time(
    tmp_path: Path, name: str, begin: int, scale: int
) -> None:
    cells = [begin + (1_714_521_600 + n) * scale for n in range(30)]
    data = f"{name},v\n" + "".join(f"{cell},{n}.5\n" for n, cell in enumerate(cells))
    assert imported(tmp_path / "file", data).times[1] == "2024-05-01T00:00:01+00:00"


def test_seconds_that_labview_would_write_in_the_future_are_those_of_ntp(tmp_path: Path) -> None:
    now_s = int(datetime.now(UTC).timestamp()) - 100_000
    data = "time,v\n" + "".join(f"{2_208_988_800 + now_s + n},{n}.5\n" for n in range(30))
    assert imported(tmp_path / "file", data).times[0] == datetime.fromtimestamp(now_s, UTC).isoformat()
