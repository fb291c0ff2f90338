"""Whatever happens to what an exported script wrote, reading it ends in a transcript, a record or a reason."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clusterwright.judging.acceptance_pods import parse_pod
from clusterwright.judging.acceptance_runs import RunRecord, parse_run
from clusterwright.judging.deriving import derive
from clusterwright.model.observations import Outcome, Transcript
from clusterwright.readers.probes import READERS
from clusterwright.readers.reading import read_output

FIXTURES = Path(__file__).parents[1] / "fixtures" / "readers"
KINDS = tuple(reader.kind for reader in READERS)
SEEDS = [(kind, path.read_bytes()) for kind in KINDS for path in sorted((FIXTURES / kind).iterdir())]
JUNK = st.sampled_from(
    [b"", b"\n", b"\x00", b"\xff\xfe", b"...", b"N/A", b"-1", b"9" * 400, b"1e999", b"{", b"]", b'"', b"null", b"|",
     b":", b"=", b"-", b"true", b"nan", b"inf", b"\r", b"\x1b[31m", "²٣".encode(),
     b'"rank": 0', b'"seconds": -1', b'"world_size": 1e9', b"clusterwright-checkpoint/1"]
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
    derive(transcript, nodes=("n1",))


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(output=mutated())
def test_a_mutated_output_ends_in_a_transcript(output):
    check(read_output([output[1]], kind=output[0]))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.one_of(st.binary(max_size=200), st.text(max_size=200).map(str.encode)))
def test_any_bytes_end_in_a_transcript(kind, data):
    check(read_output([data], kind=kind))


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KEYS = ("format", "test", "unit", "attempt", "nodes", "started", "ended", "exit_code", "lacking", "files")
RECORDS = st.fixed_dictionaries({}, optional=dict.fromkeys(KEYS, PLAIN)) | st.fixed_dictionaries(
    {
        "format": st.just("clusterwright-run/1"),
        "started": st.just("2026-11-02T12:00:00Z"),
        "ended": st.just("2026-11-02T12:00:00+00:00"),
    },
    optional=dict.fromkeys(KEYS[1:5] + KEYS[7:], PLAIN),
)


@settings(max_examples=150, deadline=None)
@given(values=RECORDS)
def test_any_record_of_a_run_is_read_or_named(values):
    found = parse_run(json.dumps(values))
    assert isinstance(found, RunRecord) or found
    assert isinstance(found, str) or not any("/" in name for name in found.files)


PODS = st.fixed_dictionaries(
    {"kind": st.just("Pod")},
    optional={
        "metadata": PLAIN | st.fixed_dictionaries({"labels": PLAIN}),
        "spec": PLAIN,
        "status": PLAIN
        | st.fixed_dictionaries(
            {"containerStatuses": PLAIN | st.lists(st.fixed_dictionaries({"state": PLAIN, "imageID": PLAIN}))}
        ),
    },
)


@settings(max_examples=150, deadline=None)
@given(values=PODS)
def test_any_pod_is_read_without_harm(values):
    pod = parse_pod(json.dumps(values))
    assert pod is not None
    assert pod.problem or values.get("status")
