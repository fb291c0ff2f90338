"""lspci and reports in prose."""

from __future__ import annotations

from pathlib import Path

from builders.corpus import found, values
from clusterwright.model.observations import Outcome, Run
from clusterwright.readers.reading import rank_kinds, read_output

FIXTURES = Path(__file__).parents[2] / "fixtures" / "readers"


def fixture(kind: str, name: str) -> Run:
    transcript = read_output([(FIXTURES / kind / name).read_bytes()])
    assert transcript.kind == kind
    (run,) = transcript.runs
    return run


def test_a_device_of_revision_ff_is_lost_and_counted_once_per_slot():
    run = fixture("lspci", "lost.txt")
    assert [dict(o.subject)["pci"] for o in found(run, "lost_device")] == ["0000:3d:00.0"]
    assert run.condition("attached_gpus") == 2.0
    assert values(run, "nvswitch") == ["NVIDIA Corporation GH100 [H100 NVSwitch]"]
    assert len(values(run, "adapter")) == 1


def test_a_torn_line_of_lspci_is_no_device():
    text = (FIXTURES / "lspci" / "lost.txt").read_text() + "9a:00.0 3D controller: NVIDIA Corporation GH100 [H100"
    (run,) = read_output([text.encode()]).runs
    assert run.rejected == 1
    assert run.condition("attached_gpus") == 2.0


def test_verbose_lspci_gives_the_link():
    text = "17:00.0 3D controller: NVIDIA Corporation GH100 (rev a1)\n"
    text += "\t\tLnkSta:\tSpeed 16GT/s (downgraded), Width x8 (downgraded)\n"
    (run,) = read_output([text.encode()], kind="lspci").runs
    assert values(run, "pcie_link_width", pci="0000:17:00.0") == [8.0]
    assert str(values(run, "pcie_link_speed")[0]) == "16 GT/s"


def test_a_report_mentions_and_never_measures():
    run = fixture("fault-report", "note.md")
    assert values(run, "xid_mentioned", pci="0000:3b:00.0") == [48.0, 63.0]
    assert values(run, "xid") == []
    assert not run.complete
    assert values(run, "remapped_rows_mentioned", before="3") == [5.0]
    assert {notice.code for notice in run.notices} == {"memory-errors-repeat"}


def test_a_report_is_weaker_than_any_tool_and_no_log():
    assert max(score for score, _ in rank_kinds("We saw Xid 79 twice.")) < 50
    assert all(kind != "fault-report" for _, kind in rank_kinds("NVRM: Xid (PCI:0000:01:00): 79, x"))
    assert read_output([b"all is well\n"], kind="fault-report").outcome is Outcome.REFUSED
