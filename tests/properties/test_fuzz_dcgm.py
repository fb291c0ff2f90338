"""Whatever happens to an output of DCGM, reading it ends in a transcript."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clusterwright.model.observations import Outcome, Transcript
from clusterwright.readers.dcgm import READERS
from clusterwright.readers.reading import read_output

KINDS = tuple(reader.kind for reader in READERS)
SEEDS = [
    (kind, path.read_bytes())
    for kind in KINDS
    for path in sorted((Path(__file__).parents[1] / "fixtures" / "readers" / kind).iterdir())
]
JUNK = st.sampled_from(
    [
        b"",
        b"\n",
        b"\x00",
        b"\xff\xfe",
        b"...",
        b"N/A",
        b"-1",
        b"9" * 40,
        b"1e999",
        b"{",
        b"]",
        b"null",
        b"\r",
        b"\x1b[4m",
        b"\t",
        b",",
        b"|",
        "²٣".encode(),
        b"9223372036854775794",
        b"140737488355328.0",
        b"DCGM_FI_DEV_X{",
        b'gpu="0",...',
        b"| x | Pass - GPUs: 0, 1... |",
        b"GPU0: Fail",
        b"+---+",
        b'"status": null',
        b'"iterations": [',
        b"# HELP",
        b"# EOF",
        b"}",
        b'{"DCGM Diagnostic": {',
        b"-> 3",
        b"U D X _",
        b"#Entity   A  B",
    ]
)


@st.composite
def mutated(draw: st.DrawFn) -> tuple[str, bytes]:
    kind, data = draw(st.sampled_from(SEEDS))
    for _ in range(draw(st.integers(1, 6))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 400)))
        action = draw(st.sampled_from(["cut", "drop", "repeat", "insert", "swap", "lines"]))
        if action == "cut":
            data = data[:start]
        elif action == "drop":
            data = data[:start] + data[end:]
        elif action == "repeat":
            data = data[:end] + data[start:end] + data[end:]
        elif action == "insert":
            data = data[:start] + draw(JUNK) + data[start:]
        elif action == "swap":
            data = data[:start] + bytes(reversed(data[start:end])) + data[end:]
        else:
            lines = data.split(b"\n")
            first = draw(st.integers(0, len(lines)))
            data = b"\n".join(lines[:first] + lines[first + draw(st.integers(0, 5)) :])
    return kind, data


def check(transcript: Transcript) -> None:
    assert isinstance(transcript, Transcript)
    assert (transcript.outcome is Outcome.REFUSED) == (transcript.refusal is not None)
    for run in transcript.runs:
        assert run.rejected >= len(run.unread)


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(mutated())
def test_a_mutated_output_ends_in_a_transcript(case):
    kind, data = case
    check(read_output([data], kind=kind))
    check(read_output([data]))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25, deadline=None)
@given(st.one_of(st.binary(max_size=300), st.text(max_size=300).map(lambda text: text.encode("utf-8", "replace"))))
def test_arbitrary_bytes_end_in_a_transcript(kind, data):
    check(read_output([data], kind=kind))
