"""Whatever happens to an output of the readers in `others`, reading it ends in a transcript."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clusterwright.model.observations import Outcome, Transcript
from clusterwright.readers.others import READERS
from clusterwright.readers.reading import read_output

KINDS = tuple(reader.kind for reader in READERS)
SEEDS = [
    (kind, path.read_bytes())
    for kind in KINDS
    for path in sorted((Path(__file__).parents[1] / "fixtures" / "readers" / kind).iterdir())
]
JUNK = st.sampled_from(
    [b"", b"\n", b"\x00", b"\xff\xfe", b"...", b"N/A", b"-1", b"9" * 400, b"1e999", b"NaN", b"[", b"]", b"{", b"}",
     b"null", b"true", b'"a"', b"<", b">", b"&x;", b"<testcase>", b"</testsuite>", b"<skipped/>", b",", b'"',
     b'"tests": {}', b'"results": []', b'{"totalCost": 1}', "²٣½".encode(), b"node_gpu_hourly_cost{", b"GPU nodes."]
)  # fmt: skip


@st.composite
def mutated(draw: st.DrawFn) -> tuple[str, bytes]:
    kind, data = draw(st.sampled_from(SEEDS))
    for _ in range(draw(st.integers(1, 5))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 300)))
        action = draw(st.sampled_from(["cut", "behead", "drop", "repeat", "insert", "replace", "lines"]))
        if action == "cut":
            data = data[:start]
        elif action == "behead":
            data = data[end:]
        elif action == "drop":
            data = data[:start] + data[end:]
        elif action == "repeat":
            data = data[:end] + data[start:end] + data[end:]
        elif action == "insert":
            data = data[:start] + draw(JUNK) + data[start:]
        elif action == "replace":
            old = draw(st.sampled_from([piece for piece in data.split() if piece] or [b"x"]))
            data = data.replace(old, draw(JUNK), 1)
        else:
            data = b"\n".join(draw(st.permutations(data.split(b"\n")[:10])))
    return kind, data


def check(transcript: Transcript) -> None:
    assert (transcript.outcome is Outcome.REFUSED) == (transcript.refusal is not None)
    for run in transcript.runs if transcript.kind in KINDS else ():
        assert run.observations or run.notices or run.missing or run.rejected


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(case=mutated(), found_out=st.booleans())
def test_a_mutated_output_ends_in_a_transcript(case, found_out):
    kind, data = case
    check(read_output([data], kind="" if found_out else kind))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=30, deadline=None)
@given(data=st.one_of(st.binary(max_size=300), st.text(max_size=300).map(str.encode)))
def test_any_bytes_end_in_a_transcript(kind, data):
    check(read_output([data[i : i + 7] for i in range(0, len(data), 7)], kind=kind))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(case=mutated(), kind=st.sampled_from(KINDS))
def test_an_output_read_as_another_kind_ends_in_a_transcript(case, kind):
    check(read_output([case[1]], kind=kind))


WRONG = st.sampled_from(
    [None, True, 0, -1, 10**60, 1.5, 1e308, "", "x", "9" * 50, [], {}, [[]], ["x"], {"x": {}}, [{}]]
)


@st.composite
def mistyped(draw: st.DrawFn) -> tuple[str, bytes]:
    """A JSON fixture with some values of another type than the format has."""
    kind, data = draw(st.sampled_from([(kind, data) for kind, data in SEEDS if data.startswith(b"{")]))
    root = json.loads(data)
    for _ in range(draw(st.integers(1, 4))):
        _spoil(draw, root)
    return kind, json.dumps(root).encode()


def _spoil(draw: st.DrawFn, value: Any) -> None:
    while isinstance(value, dict | list) and value:
        key = draw(st.sampled_from(sorted(value) if isinstance(value, dict) else range(len(value))))
        inner = value[key]
        if not isinstance(inner, dict | list) or not inner or draw(st.integers(0, 5)) == 0:
            value[key] = copy.deepcopy(draw(WRONG))
            return
        value = inner


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(case=mistyped())
def test_values_of_the_wrong_type_end_in_a_transcript(case):
    kind, data = case
    check(read_output([data], kind=kind))
