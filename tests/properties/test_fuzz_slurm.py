"""Whatever happens to an output of Slurm, reading it ends in a transcript."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clusterwright.model.observations import NoValue, Outcome, Transcript
from clusterwright.readers.reading import read_output
from clusterwright.readers.slurm import READERS

KINDS = tuple(reader.kind for reader in READERS)
FIXTURES = Path(__file__).parents[1] / "fixtures" / "readers"
SEEDS = [(kind, path.read_bytes()) for kind in KINDS for path in sorted((FIXTURES / kind).iterdir())]
JUNK = st.sampled_from(
    [
        b"", b"\n", b"\x00", b"\xff\xfe", b"...", b"N/A", b"(null)", b"-1", b"9" * 40, b"1e999", b"|", b"|#", b"\x1f",
        b"\x1e", b"+", b"*", b"=", b"[", b"]", b"[1-", b"n[1-999999999]", b"gpu:", b"(IDX:", b"{", b'"set":', b"null",
        b"\r", b"\\\n", b"#", b"JobId=", b"NodeName=", b"include ", b"$ squeue\n", b"99999999-99:99:99",
        b"2025-02-30T00:00:00", "²٣".encode(), b"\x1b[31m",
    ]
)  # fmt: skip


@st.composite
def mutated(draw: st.DrawFn) -> tuple[str, bytes]:
    kind, data = draw(st.sampled_from(SEEDS))
    data = data[:6000]
    for _ in range(draw(st.integers(1, 5))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 300)))
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
    return kind, data


def check(transcript: Transcript) -> None:
    assert (transcript.outcome is Outcome.REFUSED) == (transcript.refusal is not None)
    for run in transcript.runs:
        assert run.rejected >= len(run.unread)
        assert run.observations or run.conditions or run.rejected or run.missing or run.notices, "a run says something"
        for observation in run.observations:
            assert not isinstance(observation.value, NoValue) or observation.value.lack
            assert observation.value == observation.value, "no NaN"


@given(mutated())
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_damaged_output_ends_in_a_transcript(case):
    kind, data = case
    check(read_output([data], kind=kind))
    check(read_output([data], name="unknown.txt"))


@given(st.sampled_from(KINDS), st.binary(max_size=400) | st.text(max_size=400).map(str.encode))
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_bytes_end_in_a_transcript(kind, data):
    check(read_output([data], kind=kind))


@given(st.sampled_from(KINDS), st.sampled_from(SEEDS))
@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
def test_an_output_of_another_kind_ends_in_a_transcript(kind, seed):
    check(read_output([seed[1]], kind=kind))


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_refused(kind):
    assert read_output([b""], kind=kind).outcome is Outcome.REFUSED
    assert read_output([b"\n \n"], kind=kind).outcome is Outcome.REFUSED
