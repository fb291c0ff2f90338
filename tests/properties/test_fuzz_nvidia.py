"""Whatever happens to an output of nvidia-smi, rocm-smi or amd-smi, reading it ends in a transcript."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clusterwright.model.observations import Outcome, Transcript
from clusterwright.readers.nvidia import READERS
from clusterwright.readers.reading import read_output

KINDS = tuple(reader.kind for reader in READERS)
SEEDS = [
    (kind, path.read_bytes())
    for kind in KINDS
    for path in sorted((Path(__file__).parents[1] / "fixtures" / "readers" / kind).iterdir())
]
JUNK = st.sampled_from(
    [b"", b"\n", b"\x00", b"\xff\xfe", b"...", b"N/A", b"-1", b"9" * 40, b"1e999", b"ERR!", b" : ", b"|", b"/",
     b"+----------+", b"|==========|", b"GPU 0:", b"<gpu>", b"</gpu>", b"&x;", b"{", b"]", b'"gpu": []', b"null", b"\r",
     b"\x1b[4m", b"MIG ", b"\t", b",", b"[MiB]", "²٣".encode(), b"Link 99999999999999999999: ", b"GPU: 0"]
)  # fmt: skip


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
            data = data[end:] + data[:start]
        else:
            data = b"\n".join(draw(st.permutations(data.split(b"\n")[:12])))
    return kind, data


def check(transcript: Transcript) -> None:
    assert (transcript.outcome is Outcome.REFUSED) == (transcript.refusal is not None)
    for run in transcript.runs:
        assert run.observations or run.notices or run.missing or run.rejected


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(case=mutated(), found_out=st.booleans())
def test_a_mutated_output_ends_in_a_transcript(case, found_out):
    kind, data = case
    check(read_output([data], kind="" if found_out else kind))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25, deadline=None)
@given(data=st.one_of(st.binary(max_size=300), st.text(max_size=300).map(str.encode)))
def test_any_bytes_end_in_a_transcript(kind, data):
    check(read_output([data[i : i + 7] for i in range(0, len(data), 7)], kind=kind))


@settings(max_examples=60, deadline=None)
@given(case=mutated(), kind=st.sampled_from(KINDS))
def test_an_output_read_as_another_kind_ends_in_a_transcript(case, kind):
    check(read_output([case[1]], kind=kind))
