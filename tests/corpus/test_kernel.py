"""Public operator files of kernel and fabric logs: the conclusions that a reader must reach."""

from __future__ import annotations

import pytest

from builders.corpus import FOLDER, check_corpus, found, values
from clusterwright.health.xids import Bucket, Severity, advise_xid, look_up_sxid, look_up_xid
from clusterwright.model.observations import NoValue, Outcome, Run, Transcript, Weight


def only(transcript: Transcript) -> Run:
    assert transcript.refusal is None, transcript.refusal
    (run,) = transcript.runs
    return run


def codes(run: Run) -> set[str]:
    return {notice.code for notice in run.notices}


def messages(run: Run, code: str) -> str:
    return " ".join(notice.message for notice in run.notices if notice.code == code)


def xids(run: Run) -> list[object]:
    return values(run, "xid")


def application_fault(t: Transcript) -> None:
    run = only(t)
    assert t.outcome is Outcome.READ
    assert values(run, "xid_count", xid="13") == [16.0]
    assert xids(run) == [13.0, 43.0]
    assert messages(run, "root-cause").startswith("root cause: Xid 13")
    assert look_up_xid(13).bucket is Bucket.RESTART_APP
    assert "out-of-memory" in codes(run)
    assert values(run, "oom_kills") == [3.0]


def timeout_after_fault(t: Transcript) -> None:
    run = only(t)
    assert xids(run) == [13.0, 109.0]
    assert look_up_xid(109).bucket is Bucket.RESET_GPU
    assert "consequences: Xid 109" in messages(run, "root-cause")
    assert "peermem" in codes(run)


def lost_without_xid(t: Transcript) -> None:
    run = only(t)
    assert values(run, "lost_device", pci="0000:b3:00.0") == ["fallen off the bus"]
    assert xids(run) == []
    assert run.condition("driver") == "570.158.01"


def caused_by(t: Transcript) -> None:
    run = only(t)
    assert set(xids(run)) == {45.0}
    assert set(values(run, "xid_cause")) == {149.0, 145.0}
    assert "Xid 149" in messages(run, "root-cause")
    assert "Xid 145" in messages(run, "root-cause")
    assert advise_xid(45, others=[145]).bucket is Bucket.IGNORE


def contained_report(t: Transcript) -> None:
    run = only(t)
    assert values(run, "xid_mentioned") == [137.0, 94.0]
    assert "one fault of NVLink" in messages(run, "contained-errors-with-link-errors")
    assert "6 of 8 GPUs" in messages(run, "xid-on-several-gpus")


def mig(t: Transcript) -> None:
    run = only(t)
    (instance,) = [o for o in found(run, "xid") if dict(o.subject).get("instance")]
    assert instance.value == 94.0
    assert "GPU-I:05" in messages(run, "mig-instance")
    assert look_up_xid(94).bucket is Bucket.RESTART_APP


def page_fault(t: Transcript) -> None:
    run = only(t)
    assert xids(run) == [31.0]
    assert dict(found(run, "xid")[0].subject)["uuid"].startswith("GPU-e11dfcca")
    assert look_up_xid(31).bucket is Bucket.RESTART_APP
    assert "different applications" in look_up_xid(31).note


def german(t: Transcript) -> None:
    run = only(t)
    assert xids(run) == [79.0]
    assert values(run, "xid_first") == ["Okt 06 17:59:27"]
    assert run.condition("node") == "node07"
    assert "time-unknown" in codes(run)
    assert len(found(run, "lost_device")) == 1


def mixed(t: Transcript) -> None:
    run = only(t)
    assert xids(run) == [32.0, 69.0, 74.0, 149.0, 154.0]
    assert values(run, "xid_link", xid="74") == ["14"]
    assert values(run, "xid_link", xid="149") == ["9"]
    assert values(run, "recovery_action") == ["GPU Reset Required"]
    assert advise_xid(154, recovery_action="GPU Reset Required").bucket is Bucket.RESET_GPU
    assert "0x10000" in str(values(run, "xid_detail", xid="74")[0])


def degrading_memory(t: Transcript) -> None:
    run = only(t)
    assert {48.0, 63.0, 94.0, 154.0} <= set(values(run, "xid_mentioned", pci="0000:9c:00.0"))
    assert "memory-errors-repeat" in codes(run)
    assert values(run, "remapped_rows_mentioned") == [12.0]


def cascade(t: Transcript) -> None:
    run = only(t)
    assert t.outcome is Outcome.PARTLY
    assert values(run, "xid_count") == [1.0]
    assert xids(run) == [79.0]
    assert "serial-is-0" in codes(run)
    assert len(found(run, "lost_device")) == 1


def three_codes(t: Transcript) -> None:
    assert xids(only(t)) == [13.0, 119.0, 94.0]


def fabric_wide(t: Transcript) -> None:
    run = only(t)
    assert len(values(run, "gpu_mentioned")) == 2
    assert "a cause in the fabric" in messages(run, "xid-on-several-gpus")
    assert not run.complete


def switch_errors(t: Transcript) -> None:
    run = only(t)
    severities = {dict(o.subject)["sxid"]: o.value for o in found(run, "sxid_severity")}
    assert severities == {
        "20034": "fatal", "12028": "non-fatal", "24007": "fatal", "28006": "non-fatal", "20009": "non-fatal",
    }  # fmt: skip
    assert values(run, "sxid_count") == [1.0] * 5
    assert look_up_sxid(20034).severity is Severity.FATAL
    assert look_up_sxid(12028).severity is Severity.NON_FATAL


def halted_switch(t: Transcript) -> None:
    run = only(t)
    assert values(run, "sxid") == [26006.0, 26007.0, 26008.0]
    assert all(isinstance(v, NoValue) for v in values(run, "sxid_severity"))
    assert look_up_sxid(26006).severity is Severity.ALWAYS_FATAL


def fatal_aer(t: Transcript) -> None:
    run = only(t)
    assert values(run, "aer", pci="0000:00:03.0") == ["uncorrected fatal"]
    assert "nvidia 0000:03:00.0" in messages(run, "recovery-failed")
    assert run.condition("started") is None
    assert "time-unknown" in codes(run)


def storm(t: Transcript) -> None:
    run = only(t)
    assert values(run, "aer", pci="0000:00:03.1") == ["corrected"]
    assert values(run, "aer_count") == [3.0]
    assert "pcie-corrected-storm" in codes(run)
    assert run.rejected == 1


def quiet(t: Transcript) -> None:
    run = only(t)
    assert run.observations == ()
    assert codes(run) == {"no-fault"}
    assert str(run.condition("ended")).startswith("57631.")


def library_crash(t: Transcript) -> None:
    run = only(t)
    assert values(run, "segfault") == ["libnccl.so.2"]
    assert "not of the hardware" in messages(run, "segfault")


def by_hand(t: Transcript) -> None:
    assert "triggered by hand" in messages(only(t), "panic")


def fabric_manager(t: Transcript) -> None:
    run = only(t)
    assert t.kind == "fabric-manager-log"
    assert values(run, "sxid", pci="0000:86:00.0", port="61") == [12028.0]
    assert values(run, "sxid_severity") == ["non-fatal"]
    assert codes(run) == {"nvswitch-error"}


def off_the_bus(t: Transcript) -> None:
    run = only(t)
    assert t.kind == "lspci"
    assert [dict(o.subject)["pci"] for o in found(run, "lost_device")] == ["0000:1c:00.0"]
    assert run.condition("attached_gpus") == 3.0
    assert run.rejected == 1


def switch_ports(t: Transcript) -> None:
    run = only(t)
    assert values(run, "nvswitch_port_device") == ["mlx5_10", "mlx5_11", "mlx5_8", "mlx5_9"]
    assert "count as NICs" in messages(run, "nvswitch-devices")


def mismatch(t: Transcript) -> None:
    run = only(t)
    assert (run.condition("fabric_manager"), run.condition("driver")) == ("530.30.02", "530.41.03")
    assert "equal in full" in messages(run, "fabric-manager-mismatch")
    assert values(run, "fabric_state") == ["failed"]


def error_802(t: Transcript) -> None:
    run = only(t)
    assert {"cuda-not-ready", "fabric-manager-mismatch"} <= codes(run)
    assert all(n.weight is Weight.ERROR for n in run.notices)
    assert run.condition("fabric_manager") == "535.183.01"


EXPECTED = {
    "kernel-xid/002-xid13-xid43-oom-iso-comma.log": application_fault,
    "kernel-xid/003-xid13-109-peermem.log": timeout_after_fault,
    "kernel-xid/005-gpu-fell-off-without-xid-multiline.log": lost_without_xid,
    "kernel-xid/006-xid45-caused-by-149-145-many-gpus.log": caused_by,
    "kernel-xid/007-xid94-contained-sm-h200-no-ecc-increment.txt": contained_report,
    "kernel-xid/008-xid94-mig-gpu-instance-format.log": mig,
    "kernel-xid/009-xid31-mmu-fault-container-log.log": page_fault,
    "kernel-xid/010-xid79-german-month-non-english.log": german,
    "kernel-xid/011-xid32-69-74-149-154-mixed-blackwell-hopper.log": mixed,
    "kernel-xid/015-xid48-63-94-154-hbm-degrading-report.md": degrading_memory,
    "kernel-xid/017-xid79-5090-cascade-serial-0.log": cascade,
    "kernel-xid/019-xid13-chid-class-mmio-pci0002.log": three_codes,
    "kernel-xid/020-b300-fabric-wide-xid145-report.md": fabric_wide,
    "kernel-sxid/001-sxid-20034-12028-24007-28006-mixed.log": switch_errors,
    "kernel-sxid/002-sxid-26006-soe-halt-padding.log": halted_switch,
    "kernel-pcie-edac/003-aer-relative-delta-timestamps.log": fatal_aer,
    "kernel-pcie-edac/004-aer-correctable-storm-syslog.log": storm,
    "kernel-pcie-edac/006-kmsg-raw-nvswitch-open.log": quiet,
    "kernel-pcie-edac/007-nccl-segfault-libnccl.log": library_crash,
    "kernel-pcie-edac/008-pstore-oops-erst.txt": by_hand,
    "kernel-pcie-edac/009-fabricmanager-log-multiline.log": fabric_manager,
    "kernel-pcie-edac/010-lspci-rev-ff-gpu-lost.txt": off_the_bus,
    "nvidia-fabric-manager/003-nvlsm-talos-b200.log": switch_ports,
    "nvidia-fabric-manager/004-driver-interface-mismatch.log": mismatch,
    "nvidia-fabric-manager/005-cuda-802-and-fm-journal.log": error_802,
}


@pytest.mark.skipif(not FOLDER.is_dir(), reason="the public operator files are not beside the clone")
@pytest.mark.parametrize("kind", ["kernel-xid", "kernel-sxid", "kernel-pcie-edac", "nvidia-fabric-manager"])
def test_every_public_file_ends_in_its_conclusion(kind):
    assert check_corpus(EXPECTED, kind)
