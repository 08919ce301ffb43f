"""A matrix of values between sites is read, or refused with the line that is wrong."""

from __future__ import annotations

import pytest

from pipeline_runtime.placement.site_matrix import FileFault, read_matrix


def test_a_matrix_need_not_be_symmetric() -> None:
    sites, rows = read_matrix("\ufeffA, B\r\n\r\n0,1.5\r\n2,0\r\n", "latency in ms")
    assert sites == ("A", "B")
    assert rows == ((0, 1.5), (2, 0))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "line 1: the first line has to name the sites"),
        ("A,,B\n", "line 1: a site without a name"),
        ("A,B,A\n", 'line 1: "A" stands there twice'),
        ("A,B\n0,1\n", "line 2: 2 sites need 2 rows, and there are 1"),
        ("A,B\n0,1\n\n1,0,0\n", "line 4: 3 values for 2 sites"),
        ("A,B\n0,1\n-1,0\n", 'line 3: "-1" is no latency in ms to A'),
        ("A,B\n0,nan\n1,0\n", 'line 2: "nan" is no latency in ms to B'),
        ("A,B\n0,fast\n1,0\n", 'line 2: "fast" is no latency in ms to B'),
        ("A,B\n0,700\n1,0\n", "line 2: to B a latency in ms of more than 600"),
        (",".join(map(str, range(501))), "line 1: 501 sites, at most 500 are read"),
    ],
)
def test_text_that_is_no_matrix_is_refused_with_its_line(text: str, words: str) -> None:
    with pytest.raises(FileFault) as refused:
        read_matrix(text, "latency in ms", most=600)
    assert str(refused.value).startswith(words)
