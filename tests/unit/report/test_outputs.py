"""The output of several ranks as one text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterwright.model.jobs import LogLine
from clusterwright.model.outputs import Lines, LogChunk
from clusterwright.report.outputs import Interleaver


def shown(*chunks: tuple[int, bytes]) -> list[bytes]:
    """What appears after each chunk, and at the end."""
    text = Interleaver()
    return [*(text.feed(LogChunk(1, rank, "stdout", data)) for rank, data in chunks), text.end()]


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        ([(0, b"a\nb\n")], [b"[0] a\n[0] b\n", b""]),
        ([(0, b"a\n"), (1, b"b")], [b"[0] a\n", b"[1] b", b"\n"]),
        ([(0, b"load"), (0, b"ing\nx\n")], [b"[0] load", b"ing\n[0] x\n", b""]),
        ([(0, b"half"), (1, b"b\n"), (0, b" way\n")], [b"[0] half", b"\n[1] b\n", b"[0]  way\n", b""]),
        ([(0, b"\r 1%"), (0, b"\r 2%")], [b"[0] \r[0]  1%", b"\r[0]  2%", b"\n"]),
        ([(0, b" 1%\r"), (0, b" 2%\n")], [b"[0]  1%", b"\r[0]  2%\n", b""]),
        ([(0, b"a\r\nb\r\n")], [b"[0] a\r\n[0] b\r\n", b""]),
        ([(0, b"a\r"), (0, b"\nb\r\n")], [b"[0] a", b"\r\n[0] b\r\n", b""]),
        ([(0, b"\n\n")], [b"[0] \n[0] \n", b""]),
        ([(0, b""), (0, b"\xff\n")], [b"", b"[0] \xff\n", b""]),
    ],
)
def test_every_line_names_its_rank_as_soon_as_it_begins(chunks: list[tuple[int, bytes]], expected: list[bytes]) -> None:
    assert shown(*chunks) == expected


def test_standard_error_is_named() -> None:
    text = Interleaver()
    assert text.feed(LogChunk(1, 3, "stderr", b"no\n")) == b"[3 err] no\n"


PIECES = st.lists(st.binary(max_size=6).map(lambda b: b.replace(b"\x00", b"\n").replace(b"\x01", b"\r")), max_size=6)


@given(PIECES)
def test_one_rank_alone_is_shown_the_same_however_its_output_is_cut(pieces: list[bytes]) -> None:
    whole = b"".join(shown((0, b"".join(pieces))))
    assert b"".join(shown(*((0, p) for p in pieces))) == whole


@given(PIECES)
def test_lines_are_the_same_however_the_output_is_cut(pieces: list[bytes]) -> None:
    lines, found = Lines(), list[LogLine]()
    for piece in pieces:
        found += lines.feed(LogChunk(1, 0, "stdout", piece))
    found += lines.feed(LogChunk(1, 0, "stdout", b"", last=True))
    text = b"".join(pieces)
    expected = text.split(b"\n")[: None if text and not text.endswith(b"\n") else -1]
    assert [line.text for line in found] == [line.decode(errors="replace") for line in expected]


def test_lines_of_two_ranks_do_not_mix() -> None:
    lines = Lines()
    assert lines.feed(LogChunk(1, 0, "stdout", b"a")) == []
    assert lines.feed(LogChunk(1, 1, "stdout", b"b\n")) == [LogLine(1, 1, "stdout", "b")]
    assert lines.feed(LogChunk(1, 0, "stdout", b"c\nd", last=True)) == [
        LogLine(1, 0, "stdout", "ac"),
        LogLine(1, 0, "stdout", "d"),
    ]
