"""Whatever happens to an output of nccl-tests or rccl-tests, reading it ends in a transcript."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clusterwright.model.observations import NoValue, Outcome, Transcript
from clusterwright.readers.reading import read_output

KINDS = ("nccl-tests", "rccl-tests")
SEEDS = [
    path.read_bytes()
    for kind in KINDS
    for path in sorted((Path(__file__).parents[1] / "fixtures" / "readers" / kind).iterdir())
]
JUNK = st.sampled_from(
    [b"", b"\n", b"\x00", b"\xff\xfe", b"...", b"N/A", b"-1", b"9" * 40, b"1e999", b"NCCL INFO ", b"# Rank  0 Pid 1 on",
     b"[1,0]<stdout>:", b"{", b"]", b'"size":', b"null", b"\r", b"\x1b[31m", b"_", b"#wrong", "²٣".encode()]
)  # fmt: skip


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    data = draw(st.sampled_from(SEEDS))
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
            data = data[end:] + data[:start]
        else:
            data = b"\n".join(draw(st.permutations(data.split(b"\n")[:12])))
    return data


def check(transcript: Transcript) -> None:
    assert (transcript.outcome is Outcome.REFUSED) == (transcript.refusal is not None)
    for run in transcript.runs:
        sizes = {dict(o.subject).get("size") for o in run.observations if o.name == "busbw"}
        assert "0" not in sizes
        if run.condition("correctness") == "right":
            assert run.condition("validation") is True
            assert not [
                o for o in run.observations if o.name == "wrong" and not isinstance(o.value, NoValue) and o.value
            ]


@pytest.mark.parametrize("kind", ["", *KINDS])
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=mutated())
def test_a_mutated_output_ends_in_a_transcript(kind, data):
    check(read_output([data], kind=kind))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60, deadline=None)
@given(data=st.one_of(st.binary(max_size=300), st.text(max_size=300).map(str.encode)))
def test_any_bytes_end_in_a_transcript(kind, data):
    check(read_output([data[i : i + 7] for i in range(0, len(data), 7)], kind=kind))
