"""Whatever happens to an output of a serving benchmark or server, reading it ends in a transcript."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clusterwright.model.observations import Outcome, Transcript
from clusterwright.readers.reading import read_output
from clusterwright.readers.serving import READERS

FIXTURES = Path(__file__).parents[1] / "fixtures" / "readers"
KINDS = tuple(reader.kind for reader in READERS)
SEEDS = [(kind, path.read_bytes()) for kind in KINDS for path in sorted((FIXTURES / kind).iterdir())]
JUNK = st.sampled_from(
    [b"", b"\n", b"\x00", b"\xff\xfe", b"...", b"N/A", b"-1", b"9" * 400, b"1e999", b"{", b"]", b'"', b"null", b"|",
     b":", b"=", b"-", b"true", b"nan", b"inf", b"\r", b"\x1b[31m", "²٣".encode(),
     b"(ms)", b"xxx.xx", "┃".encode()]
)  # fmt: skip


@st.composite
def mutated(draw: st.DrawFn) -> tuple[str, bytes]:
    kind, data = draw(st.sampled_from(SEEDS))
    for _ in range(draw(st.integers(1, 5))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 200)))
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
            data = data[end:] + data[:start]
        else:
            lines = data.split(b"\n")
            data = b"\n".join(lines[i] for i in draw(st.permutations(range(min(len(lines), 12)))))
    return draw(st.sampled_from(["", kind])), data


def check(transcript: Transcript) -> None:
    assert (transcript.outcome is Outcome.REFUSED) == (transcript.refusal is not None)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(output=mutated())
def test_a_mutated_output_ends_in_a_transcript(output):
    check(read_output([output[1]], kind=output[0]))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.one_of(st.binary(max_size=200), st.text(max_size=200).map(str.encode)))
def test_any_bytes_end_in_a_transcript(kind, data):
    check(read_output([data], kind=kind))
