"""The three files of SpanEdge's scheduler."""

from __future__ import annotations

import pytest

from pipeline_runtime.placement.geo_files import FileFault, read_copies, read_latencies, read_sources


def test_latencies_need_not_be_symmetric() -> None:
    latencies = read_latencies("\ufeffA, B\r\n\r\n0,1.5\r\n2,0\r\n")
    assert latencies.sites == ("A", "B")
    assert (latencies.between("A", "B"), latencies.between("B", "A")) == (1.5, 2)


def test_sources_and_copies() -> None:
    assert read_sources("s1; A,B\n\ns2;B\ns1;B,C\n") == {"s1": ("A", "B", "C"), "s2": ("B",)}
    assert read_copies("A;1,2\nB;3\nA;4") == {"A": (1, 2, 4), "B": (3,)}


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
        (",".join(map(str, range(501))), "line 1: 501 sites, at most 500 are read"),
    ],
)
def test_a_matrix_that_is_none_is_refused_with_its_line(text: str, words: str) -> None:
    with pytest.raises(FileFault) as found:
        read_latencies(text)
    assert str(found.value).startswith(words)


@pytest.mark.parametrize("line", ["s1", "s1;", ";A", "s1;A,,B", "just text"])
def test_a_line_that_is_no_source_is_refused(line: str) -> None:
    with pytest.raises(FileFault, match=r"line 2: .* is not of the form source;SiteA,SiteB"):
        read_sources(f"s0;A\n{line}\n")


def test_a_file_without_a_source_and_a_copy_without_a_number_are_refused() -> None:
    with pytest.raises(FileFault, match="line 1: no source stands here"):
        read_sources("\n\n")
    with pytest.raises(FileFault, match='line 1: "x" is no number of a copy'):
        read_copies("A;1,x")
