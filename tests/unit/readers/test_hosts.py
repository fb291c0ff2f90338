"""Files of several hosts: one where the tool failed does not vanish among those where it did not."""

from __future__ import annotations

from pathlib import Path

import pytest

from clusterwright.readers.cleaning import Source
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


ROWS = "index, name, pci.bus_id\n0, NVIDIA H100 80GB HBM3, 00000000:1B:00.0\n"


@pytest.mark.parametrize(
    ("banner", "node"),
    [
        ("gpu-001 | CHANGED | rc=0 >>", "gpu-001"),
        ("gpu-001 | SUCCESS | rc=0 >>", "gpu-001"),
        ("----------------\ngpu-001.pod\n----------------", "gpu-001.pod"),
        ("---------------\ngpu-[1-2] (2)\n---------------", "gpu-[1-2]"),
    ],
)
def test_a_name_above_the_output_is_the_node(banner, node):
    transcript = read_output([f"{banner}\n{ROWS}".encode()])
    assert transcript.kind == "nvidia-smi-csv"
    (run,) = transcript.runs
    assert run.condition("node") == node
    assert run.complete


def test_ports_of_hosts_below_their_names_do_not_merge():
    text = (FIXTURES / "ib-state" / "ibstat.txt").read_text()
    data = f"gpu-001 | CHANGED | rc=0 >>\n{text}gpu-002 | CHANGED | rc=0 >>\n{text}"
    lost = 'gpu-003 | UNREACHABLE! => {\n    "msg": "no route",\n    "unreachable": true\n}\n'
    runs = read_output([(data + lost).encode()]).runs
    assert [run.condition("node") for run in runs] == ["gpu-001", "gpu-002", "gpu-003"]
    assert runs[0].condition("ports") == runs[1].condition("ports")
    assert runs[2].missing == ("the output of gpu-003",)


def test_a_host_that_printed_nothing_below_its_name_is_missed():
    runs = read_output([f"gpu-001 | CHANGED | rc=0 >>\n{ROWS}gpu-002 | FAILED | rc=9 >>\n".encode()]).runs
    assert [run.condition("node") for run in runs] == ["gpu-001", "gpu-002"]
    assert runs[1].missing == ("the output of gpu-002",)


def test_the_kernel_log_of_each_host_keeps_its_node():
    xid = "[   12.345678] NVRM: Xid (PCI:0000:1b:00): 94, pid=1, name=x, Contained"
    text = "\n".join(f"gpu-00{n} | CHANGED | rc=0 >>\n{xid}" for n in (1, 2))
    (run,) = read_output([text.encode()]).runs
    assert {dict(o.subject)["node"] for o in run.observations if o.name == "xid"} == {"gpu-001", "gpu-002"}


def test_rules_around_something_else_are_no_banner():
    text = "a\n----------------\nRDMA_Write BW Test\n----------------\n---------------\nx\n"
    assert [line.text for line in Source([text.encode()]).lines()] == text.split("\n")[:-1]
