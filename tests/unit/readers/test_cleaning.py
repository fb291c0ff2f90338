"""Cleaning: what is removed, what is kept beside the line, what is refused."""

import pytest

from clusterwright.readers.cleaning import LONGEST_LINE, Source
from clusterwright.readers.refusing import Refused


def lines(data: bytes, size: int = 7) -> list[tuple[int, str, str]]:
    chunks = (data[i : i + size] for i in range(0, len(data), size))
    return [(line.number, line.text, line.prefix) for line in Source(chunks).lines()]


def test_removes_escapes_and_carriage_returns_and_counts_them() -> None:
    source = Source([b"\x1b[4mhead\x1b[0m\r\n10%\r100%\nlast"])
    assert [line.text for line in source.lines()] == ["head", "100%", "last"]
    assert dict(source.cleaned) == {
        "carriage returns at line ends": 1,
        "overwritten by a carriage return": 1,
        "terminal escapes": 2,
    }


def test_keeps_launcher_tags_beside_the_line() -> None:
    assert lines(b"[1,0]<stdout>:# size\n[1,1]<stdout>:# size\n[rank6]: x\n") == [
        (1, "# size", "1,0"),
        (2, "# size", "1,1"),
        (3, "x", "rank6"),
    ]


def test_a_host_prefix_counts_only_where_nearly_every_line_has_one() -> None:
    assert lines(b"n1: a\nn2: a\nn1: b\nn2: b\nn1: c\nn2: c\n")[3] == (4, "b", "n2")
    assert lines(b"10.0.0.1: a\n10.0.0.2: a\n" * 3)[3] == (4, "a", "10.0.0.2")
    assert lines(b"name: a\nb\nc\nd\n")[0] == (1, "name: a", "")


def test_quote_marks_go_where_nearly_every_line_has_one() -> None:
    source = Source([b"> a: 1\n>\n>   b\n> c\n"])
    assert [(line.text, line.prefix) for line in source.lines()] == [("a: 1", ""), ("", ""), ("  b", ""), ("c", "")]
    assert dict(source.cleaned) == {"quote marks": 4}
    assert lines(b"> prompt\nb\nc\nd\n")[0] == (1, "> prompt", "")


def test_reads_utf_16_and_replaces_undecodable_bytes() -> None:
    assert lines("héad\nzwei".encode("utf-16"))[0][1] == "héad"
    source = Source([b"a\xffb\n"])
    assert [line.text for line in source.lines()] == ["a�b"]
    assert dict(source.cleaned) == {"undecodable bytes": 1}


def test_cuts_over_long_lines_and_goes_on() -> None:
    source = Source([b"x" * (LONGEST_LINE + 5), b"y\n", b"next\n"])
    found = list(source.lines())
    assert [len(found[0].text), found[1].text] == [LONGEST_LINE, "next"]
    assert dict(source.cleaned) == {"over-long lines cut": 1}


@pytest.mark.parametrize("data", [b"PK\x03\x04rest", b"\x1f\x8brest", b"\x00\x01" * 64, b"%PDF-1.7"])
def test_refuses_what_is_not_text(data: bytes) -> None:
    with pytest.raises(Refused):
        Source([data])


def test_drops_lines_of_ssh_and_kubectl() -> None:
    data = b"Warning: Permanently added '10.0.0.1' (ED25519) to the list of known hosts.\nreal\n"
    assert lines(data) == [(2, "real", "")]


def test_looks_further_than_the_head_and_reads_everything_all_the_same() -> None:
    data = b"+ trace\n" * 20_000 + b"last\n"
    source = Source(data[i : i + 10_000] for i in range(0, len(data), 10_000))
    assert "last" not in source.head
    assert "last" in source.look_further()
    assert sum(1 for _ in source.lines()) == 20_001
