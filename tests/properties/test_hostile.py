"""Whatever is repeated without end, every reader ends in a transcript."""

from __future__ import annotations

import pytest

from clusterwright.model.observations import Outcome, Transcript
from clusterwright.readers.reading import KINDS, read_output

SIZE = 16 * 1024
#: Pieces that catch expressions which look back or ahead too far, and structures that never end.
PIECES = (
    b"\n", b" ", b"\t", b" \n", b"\r", b"=", b"= ", b"#", b"7", b"a", b'"', b"[", b"[ ", b"{", b"(", b"a: ", b"- ",
    b"- - -", b"| ", b"|\n", b"1,", b"1 2 3 4 5 6 7 8\n", b"a=b c=d\n", b"a=", b"\x1b[", b"\x1b]", b"<a>", b"<a ",
    b'<a b="c"/>', b"*", b"... ", b"NCCL INFO ", b"0x", b"&a *a ", b'"\\', b'{"a":', b'{"a":1}\n', b"---\n", b": ",
    b"GPU 0: ", b"1e9", b"\x00", b"\xff", b"\xf0\x9f", "²".encode(), b"[1,0]<stdout>: ", b"node: a\n",
    b"step 1 loss: ", b"# HELP a b\n", b'a{b="c"} 1\n',
)  # fmt: skip


def whole(kind: str) -> bytes:
    """Structures of about SIZE bytes that are well formed, or nearly."""
    rows = SIZE // 10
    return {
        "a long number": b'{"a": ' + b"9" * SIZE + b"}",
        "a huge exponent": b'{"a": 1e' + b"9" * SIZE + b"}",
        "one key again and again": b"{" + b",".join([b'"a": 1'] * rows) + b"}",
        "many keys": b"{" + b",".join(b'"k%d": {}' % n for n in range(rows)) + b"}",
        "deep objects": b'{"a":' * rows + b"1" + b"}" * rows,
        "deep YAML": b"".join(b" " * n + b"a:\n" for n in range(180)),
        "YAML that repeats a key": b"a: 1\n" * rows,
        "YAML anchors": b"".join(b"k%d: &a%d x\n" % (n, n) for n in range(rows)),
        "a wide header": b",".join(b"c%d" % n for n in range(rows)) + b"\n1,2\n",
        "an open quote": b'a,b\n"' + b"x\n" * rows,
        "many attributes": b"<a " + b" ".join(b'k%d="v"' % n for n in range(rows)) + b"/>",
        "deep elements": b"<a>" * rows,
        "many elements": b"<a>" + b"<b/>" * rows + b"</a>",
    }[kind]


WHOLE = (
    "a long number", "a huge exponent", "one key again and again", "many keys", "deep objects", "deep YAML",
    "YAML that repeats a key", "YAML anchors", "a wide header", "an open quote", "many attributes", "deep elements",
    "many elements",
)  # fmt: skip


def check(transcript: Transcript) -> None:
    assert (transcript.outcome is Outcome.REFUSED) == (transcript.refusal is not None)
    assert all(run.rejected >= len(run.unread) for run in transcript.runs)


@pytest.mark.parametrize("kind", ["", *sorted(KINDS)])
def test_repeated_pieces_end_in_a_transcript(kind):
    for piece in PIECES:
        check(read_output([piece * (SIZE // len(piece))], kind=kind))


@pytest.mark.parametrize("kind", ["", *sorted(KINDS)])
def test_endless_structures_end_in_a_transcript(kind):
    for name in WHOLE:
        check(read_output([whole(name)], kind=kind))


def test_what_means_nothing_is_refused_without_a_kind():
    for piece in (b"\n", b" ", b"=", b"7", b"a", b"[", b"| ", b"a=b c=d\n"):
        assert read_output([piece * (SIZE // len(piece))]).outcome is Outcome.REFUSED
