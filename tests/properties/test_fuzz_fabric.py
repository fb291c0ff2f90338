"""Whatever happens to an output about RDMA ports, links, counters or bandwidth, reading it ends in a transcript."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import Outcome, Transcript
from clusterwright.readers.reading import read_output

KINDS = ("perftest-bw-lat", "ib-state", "ib-counters")
SEEDS = [
    path.read_bytes()
    for kind in KINDS
    for path in sorted((Path(__file__).parents[1] / "fixtures" / "readers" / kind).iterdir())
]
JUNK = st.sampled_from(
    [b"", b"\n", b"\x00", b"\xff\xfe", b"...", b"N/A", b"-1", b"9" * 40, b"0x", b"0xffffffffffffffff", b"CA '",
     b"Port 1:", b"==(", b")==>", b" #bytes #iterations", b"[1,0]<stdout>:", b"node-a: ", b"{", b"null", b"|", b" : ",
     "²٣".encode()]
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
        for observation in run.observations:
            assert (
                not isinstance(observation.value, Quantity)
                or observation.value.value >= 0
                or "temp" in observation.name
            )


@pytest.mark.parametrize("kind", ["", *KINDS])
@settings(max_examples=130, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=mutated())
def test_a_mutated_output_ends_in_a_transcript(kind, data):
    check(read_output([data], kind=kind))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=50, deadline=None)
@given(data=st.one_of(st.binary(max_size=300), st.text(max_size=300).map(str.encode)))
def test_any_bytes_end_in_a_transcript(kind, data):
    check(read_output([data[i : i + 7] for i in range(0, len(data), 7)], kind=kind))
