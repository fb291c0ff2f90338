"""Files of several hosts: one where the tool failed does not vanish among those where it did not."""

from __future__ import annotations

from pathlib import Path

import pytest

from clusterwright.readers.reading import read_output

FIXTURES = Path(__file__).parents[2] / "fixtures" / "readers"
FAILED = "Error: unable to establish a connection to the specified host: localhost"


def together(path: str, *between: str) -> bytes:
    text = (FIXTURES / path).read_text().splitlines()
    first, last = ([f"{host}: {line}" for line in text] for host in ("gpu-001", "gpu-003"))
    return "\n".join([*first, *between, *last]).encode()


@pytest.mark.parametrize(
    "path",
    ["dcgm-diag/v3.txt", "dcgm-health/check.txt", "dcgm-discovery/two-gpus.txt", "dcgm-nvlink/status.txt",
     "ib-state/ibstat.txt", "ib-counters/perfquery.txt"],
)  # fmt: skip
def test_a_host_where_the_tool_failed_is_a_run_that_says_so(path):
    transcript = read_output([together(path, f"gpu-002: {FAILED}")])
    run = transcript.runs[-1]
    assert run.condition("node") == "gpu-002"
    assert run.missing == ("the output of gpu-002",)
    assert [(n.code, n.line) for n in run.notices] == [("host-not-read", len(together(path).splitlines()) // 2 + 1)]
    assert len(transcript.runs) == len(read_output([together(path)]).runs) + 1


def test_words_that_only_look_like_hosts_are_none():
    text = (FIXTURES / "ib-state" / "ibstat.txt").read_bytes()
    assert all("host-not-read" not in {n.code for n in run.notices} for run in read_output([text]).runs)
