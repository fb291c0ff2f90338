"""Kernel logs in every form: codes, devices, times, what belongs together, cause before consequence."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from builders.corpus import found, values
from clusterwright.model.observations import NoValue, Outcome, Run, Transcript
from clusterwright.readers.kernel import tallies
from clusterwright.readers.kernel.messages import events_of, severity_of
from clusterwright.readers.kernel.stamps import split_stamp
from clusterwright.readers.reading import read_output

FIXTURES = Path(__file__).parents[2] / "fixtures" / "readers" / "kernel-log"
XID_79 = "NVRM: Xid (PCI:0000:1b:00): 79, pid=1, name=x, GPU has fallen off the bus."


def read(text: str) -> Transcript:
    return read_output([text.encode()], kind="kernel-log")


def only(transcript: Transcript) -> Run:
    assert transcript.refusal is None, transcript.refusal
    (run,) = transcript.runs
    return run


def codes(run: Run) -> set[str]:
    return {notice.code for notice in run.notices}


def messages(run: Run, code: str) -> list[str]:
    return [notice.message for notice in run.notices if notice.code == code]


@pytest.mark.parametrize(
    ("line", "time", "node"),
    [
        (f"[ 1843.308145] {XID_79}", "1843.308145", ""),
        (f"[ 1843.308145][ T4711] {XID_79}", "1843.308145", ""),
        (f"[Fri Aug 30 11:43:09 2024] {XID_79}", "Fri Aug 30 11:43:09 2024", ""),
        (f"[  +0.000844] {XID_79}", "+0.000844", ""),
        (f"kern  :err   : 2025-01-21T04:41:44,283302+00:00 {XID_79}", "2025-01-21T04:41:44,283302+00:00", ""),
        (f"kern  :err   : [ 1843.308145] {XID_79}", "1843.308145", ""),
        (f"2025-01-21T04:41:44.283302+01:00 gpu-7 kernel: {XID_79}", "2025-01-21T04:41:44.283302+01:00", "gpu-7"),
        (f"2025-01-21T04:41:44+0000 gpu-7 kernel: {XID_79}", "2025-01-21T04:41:44+0000", "gpu-7"),
        (f"2025-01-21 04:41:44 gpu-7 kernel: {XID_79}", "2025-01-21 04:41:44", "gpu-7"),
        (f"Tue 2025-01-21 04:41:44 UTC gpu-7 kernel: {XID_79}", "2025-01-21 04:41:44 UTC", "gpu-7"),
        (f"Sep  9 16:18:02 gpu-7.example.org kernel: [68183.6157] {XID_79}", "Sep  9 16:18:02", "gpu-7.example.org"),
        (f"Sep 19 16:18:02.123456 gpu-7 kernel: {XID_79}", "Sep 19 16:18:02.123456", "gpu-7"),
        (f"Okt 06 17:59:27 gpu-7 kernel: {XID_79}", "Okt 06 17:59:27", "gpu-7"),
        (f"[68183.615790] gpu-7 kernel: {XID_79}", "68183.615790", "gpu-7"),
        (f"1737434504.283302 gpu-7 kernel: {XID_79}", "1737434504.283302", "gpu-7"),
        (f"<3>[ 1843.308145] {XID_79}", "1843.308145", ""),
        (f"<4>1 2025-01-21T04:41:44.283Z gpu-7 kernel - - - {XID_79}", "2025-01-21T04:41:44.283Z", "gpu-7"),
        (f"3,4711,1843308145,-;{XID_79}", "1843.308145", ""),
        (f"gpu-7: [ 1843.308145] {XID_79}", "1843.308145", "gpu-7"),
        (f"kernel: {XID_79}", "", ""),
        (XID_79, "", ""),
        (f"2025-01-21T04:41:44.283302011Z stderr F {XID_79}", "2025-01-21T04:41:44.283302011Z", ""),
    ],
)
def test_every_beginning_of_a_line_gives_time_and_node(line, time, node):
    stamp = split_stamp(line)
    assert (stamp.message, stamp.time, stamp.node) == (XID_79, time, node)
    run = only(read(line + "\n"))
    assert values(run, "xid") == [79.0]
    assert values(run, "lost_device", pci="0000:1b:00.0") == ["Xid 79"]


def test_a_month_in_another_language_leaves_the_time_as_text():
    stamp = split_stamp(f"10月 06 17:59:27 gpu-7 kernel: {XID_79}")
    assert (stamp.time, stamp.seconds, stamp.node) == ("10月 06 17:59:27", None, "gpu-7")
    assert "time-unknown" in codes(only(read(f"Okt 06 17:59:27 gpu-7 kernel: {XID_79}\n")))


def test_a_whole_log_is_read_with_facts_and_devices():
    transcript = read_output([(FIXTURES / "dmesg.log").read_bytes()])
    assert transcript.kind == "kernel-log"
    run = only(transcript)
    assert (run.condition("driver"), run.condition("kernel")) == ("550.54.15", "5.15.0-1053-nvidia")
    assert values(run, "xid", pci="0000:1b:00.0") == [79.0]
    assert dict(found(run, "xid")[0].subject)["uuid"] == "GPU-aaaaaaaa-0000-1111-2222-333333333333"
    assert values(run, "lost_device") == ["Xid 79, fallen off the bus"]
    assert values(run, "sxid") == [20034.0]
    assert values(run, "sxid_severity") == ["fatal"]
    assert values(run, "sxid_count") == [1.0]
    assert values(run, "aer", pci="0000:15:01.0") == ["uncorrected fatal"]
    assert values(run, "edac_count", severity="corrected") == [2.0]
    assert str(values(run, "link_down_longest", port="ens1np0")[0]) == "42.5 s"
    assert values(run, "oom_kills") == [1.0]
    assert run.condition("started") == "0.000000 s after boot"


def test_the_root_cause_stands_before_its_consequences_in_order():
    run = only(read_output([(FIXTURES / "dmesg.log").read_bytes()]))
    (message,) = messages(run, "root-cause")
    pcie, lost, switch = (message.index(word) for word in ("PCIe error", "Xid 79", "SXid 20034"))
    assert pcie < lost < switch
    assert message.startswith("root cause: PCIe error (uncorrected fatal) on 0000:15:01.0 (line 4)")


def test_an_sxid_long_after_a_lost_gpu_is_no_consequence():
    text = f"[ 10.000000] {XID_79}\n[ 9000.000000] nvidia-nvswitch0: SXid (PCI:0000:06:00.0): 20034, Fatal, Link 3 x\n"
    assert messages(only(read(text)), "root-cause") == []


def test_a_log_sorted_newest_first_keeps_cause_before_consequence():
    text = (
        "2026-03-01T10:00:05+0000 n1 kernel: nvidia-nvswitch0: SXid (PCI:0000:06:00.0): 20034, Fatal, Link 3 x\n"
        f"2026-03-01T10:00:01+0000 n1 kernel: {XID_79}\n"
        "2026-03-01T09:00:00+0000 n1 kernel: usb 1-1: new device\n"
    )
    run = only(read(text))
    assert messages(run, "root-cause")[0].startswith("root cause of n1: Xid 79")
    assert run.condition("started") == "2026-03-01T09:00:00+0000"


def test_events_of_another_node_or_boot_are_no_consequences():
    switch = "nvidia-nvswitch0: SXid (PCI:0000:06:00.0): 20034, Fatal, x"
    text = f"Mar  1 10:00:00 n1 kernel: {XID_79}\nMar  1 10:00:01 n2 kernel: {switch}\n"
    assert messages(only(read(text)), "root-cause") == []
    rebooted = f"[ 5000.000000] {XID_79}\n[    0.000000] Linux version 6.1.0 (x)\n[   30.000000] {XID_79}\n"
    assert [dict(o.subject).get("boot") for o in found(only(read(rebooted)), "xid")] == [None, "2"]


def test_what_the_driver_names_as_cause_is_kept_beside_the_code():
    line = "NVRM: Xid (PCI:0000:dc:00): 45, pid=7, name=python3, Ch 00000001 caused by previous Xid 149\n"
    run = only(read(line))
    assert values(run, "xid") == [45.0]
    assert values(run, "xid_cause") == [149.0]
    assert "Xid 149" in messages(run, "root-cause")[0]


def test_the_same_event_is_counted_with_its_first_and_last_time():
    text = "".join(
        f"[ {100 + n}.000000] NVRM: Xid (PCI:0000:38:00): 13, pid=5, name=a, Graphics x\n" for n in range(50)
    )
    run = only(read(text))
    assert len(found(run, "xid")) == 1
    assert values(run, "xid_count", xid="13") == [50.0]
    assert values(run, "xid_first") == ["100.000000"]
    assert values(run, "xid_last") == ["149.000000"]


def test_a_lost_gpu_without_xid_is_found_over_three_lines():
    text = (
        "[ 1843.3] NVRM: The NVIDIA GPU 0000:b3:00.0\n               NVRM: (PCI ID: 10de:26b5) installed\n"
        "               NVRM: fallen off the bus and is not responding to commands.\n"
    )
    run = only(read(text))
    assert values(run, "lost_device", pci="0000:b3:00.0") == ["fallen off the bus"]
    assert "gpu-lost" in codes(run)


def test_a_lost_gpu_with_and_without_xid_is_one():
    text = f"{XID_79}\nNVRM: GPU 0000:1b:00.0: GPU has fallen off the bus.\nNVRM: GPU lost from the bus [NV_ERR_X]\n"
    assert len(found(only(read(text)), "lost_device")) == 1


def test_a_mig_instance_is_part_of_the_subject():
    run = only(read("NVRM: Xid (PCI:0000:01:00 GPU-I:05): 94, pid=7, Contained: CE User Channel (0x9).\n"))
    assert dict(found(run, "xid")[0].subject)["instance"] == "GPU-I:05"
    assert dict(found(run, "xid")[0].subject)["pci"] == "0000:01:00.0"


def test_old_drivers_write_the_address_without_pci():
    assert values(only(read("NVRM: Xid (0000:03:00): 13, 0001 00000000 0000a0c0\n")), "xid", pci="0000:03:00.0") == [
        13.0
    ]


@pytest.mark.parametrize(
    "line", ["NVRM: Xid (PCI:0000:01:00): 9", "NVRM: Xid (PCI:0000:0", "nvidia-nvswitch0: SXid (PCI:0000:06:00.0): 200"]
)
def test_a_code_at_the_torn_end_of_a_line_is_rejected(line):
    run = only(read(f"[ 1.000000] {XID_79}\n[ 2.000000] {line}"))
    assert run.rejected == 1
    assert values(run, "xid") == [79.0]
    assert values(run, "sxid") == []


def test_the_recovery_action_is_read_from_its_words():
    run = only(
        read(
            "NVRM: Xid (PCI:0008:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)\n"
        )
    )
    assert values(run, "recovery_action", pci="0008:01:00.0") == ["GPU Reset Required"]


def test_link_errors_on_several_gpus_have_one_cause():
    text = "".join(
        f"[ 10.00000{n}] NVRM: Xid (PCI:0000:{bus}:00): {code}, pid=1, name=x, y\n"
        for n, (bus, code) in enumerate([("1b", 137), ("43", 137), ("1b", 94), ("43", 94)])
    )
    assert {"xid-on-several-gpus", "contained-errors-with-link-errors"} <= codes(only(read(text)))


def test_memory_errors_that_come_again_within_a_day_are_said():
    text = "".join(f"[ {s}.000000] NVRM: Xid (PCI:0000:9c:00): 63, pid=1, Row Remapper: x\n" for s in (100, 101, 40000))
    assert "memory-errors-repeat" in codes(only(read(text)))
    assert "memory-errors-repeat" not in codes(only(read(text[: text.index("[ 40000")])))


def test_details_of_an_sxid_count_only_where_the_event_itself_is_missing():
    text = (
        "[ 1.0] nvidia-nvswitch0: SXid (PCI:0000:06:00.0): 12028, Non-fatal, Link 32 egress error (First)\n"
        "[ 1.1] nvidia-nvswitch0: SXid (PCI:0000:06:00.0): 12028, Data {0x1, 0x2}\n"
        "[ 1.2] nvidia-nvswitch0: SXid (PCI:0000:06:00.0): 26006, SOE HALT data[0] = 0x               0\n"
    )
    run = only(read(text))
    assert values(run, "sxid_count", sxid="12028") == [1.0]
    assert values(run, "sxid_count", sxid="26006") == [1.0]
    assert "26006" in " ".join(messages(run, "sxid-detail-alone"))
    assert "12028" not in " ".join(messages(run, "sxid-detail-alone"))
    assert "no-fault" not in codes(run)


def test_an_sxid_without_a_severity_has_none():
    run = only(read("nvidia-nvswitch0: SXid (PCI:0004:00:00.0): 26006, SOE HALTED\n"))
    assert isinstance(values(run, "sxid_severity")[0], NoValue)
    assert "sxid-severity-not-printed" in codes(run)


@pytest.mark.parametrize(
    ("word", "severity"),
    [
        ("Corrected", "corrected"), ("Correctable", "corrected"), ("Uncorrected (Non-Fatal)", "uncorrected non-fatal"),
        ("Uncorrectable (Non-Fatal)", "uncorrected non-fatal"), ("Uncorrected (Fatal)", "uncorrected fatal"),
    ],
)  # fmt: skip
def test_old_and_new_wordings_of_pcie_errors_mean_the_same(word, severity):
    assert severity_of(word) == severity
    text = f"[ 5.0] pcieport 0000:00:03.1: PCIe Bus Error: severity={word}, type=Data Link Layer, (Receiver ID)\n"
    assert values(only(read(text)), "aer", pci="0000:00:03.1") == [severity]


def test_a_received_and_decoded_pcie_error_is_one():
    text = (
        "[ 5.0] pcieport 0000:00:03.1: AER: Correctable error message received from 0000:00:00.0\n"
        "[ 5.1] pcieport 0000:00:03.1: PCIe Bus Error: severity=Correctable, type=Data Link Layer, (Receiver ID)\n"
    )
    assert values(only(read(text)), "aer_count") == [1.0]


def test_an_error_that_only_the_firmware_reports_is_read():
    text = (
        "[ 9.0] {1}[Hardware Error]: event severity: recoverable\n"
        "[ 9.1] {1}[Hardware Error]:   section_type: PCIe error\n"
        "[ 9.2] {1}[Hardware Error]:   device_id: 0000:19:00.0\n"
    )
    assert values(only(read(text)), "aer", pci="0000:19:00.0") == ["uncorrected non-fatal"]


def test_a_device_that_cannot_recover_is_named_with_the_failed_port():
    text = (
        "[  +0.000844] nvidia 0000:03:00.0: AER: can't recover (no error_detected callback)\n"
        "[  +0.000008] pcieport 0000:00:03.0: AER: device recovery failed\n"
    )
    run = only(read(text))
    assert values(run, "device_recovery", pci="0000:03:00.0") == ["impossible"]
    assert "nvidia 0000:03:00.0" in messages(run, "recovery-failed")[0]


def test_a_journal_in_json_is_read_with_messages_of_bytes():
    transcript = read_output([(FIXTURES / "journal.json").read_bytes()])
    assert transcript.kind == "kernel-log"
    run = only(transcript)
    assert values(run, "xid", node="gpu-021") == [94.0, 45.0]
    assert values(run, "xid_first", xid="94") == ["2026-01-01T00:00:00+00:00"]
    assert run.condition("ended") == "2026-01-01T00:00:02+00:00"


def test_a_journal_in_pretty_json_or_export_form_is_read():
    pretty = (
        '{\n\t"_HOSTNAME" : "n1",\n\t"__REALTIME_TIMESTAMP" : "1767225600000000",\n\t"MESSAGE" : "' + XID_79 + '"\n}\n'
    )
    assert values(only(read(pretty)), "xid", node="n1") == [79.0]
    export = f"__REALTIME_TIMESTAMP=1767225600000000\n_HOSTNAME=n1\n_TRANSPORT=kernel\nMESSAGE={XID_79}\n\n"
    assert values(only(read(export)), "xid", node="n1") == [79.0]


def test_the_json_of_dmesg_is_read():
    text = (
        '{\n   "dmesg": [\n      {\n         "pri": 3,\n         "time": 1843.308145,\n         "msg": "'
        + XID_79
        + '"\n      }\n   ]\n}\n'
    )
    transcript = read_output([text.encode()])
    assert transcript.kind == "kernel-log"
    assert values(only(transcript), "xid_first") == ["1843.308145"]


def test_a_line_that_another_program_repeats_counts_once():
    repeated = f"Mar  1 10:00:01 n1 gpu-agent[77]: seen: {XID_79}\n"
    run = only(read(f"Mar  1 10:00:00 n1 kernel: {XID_79}\n{repeated}"))
    assert values(run, "xid_count") == [1.0]
    alone = only(read(repeated))
    assert values(alone, "xid_count") == [1.0]
    assert "reprinted" in codes(alone)


def test_a_quiet_log_says_what_it_covers_and_no_more():
    run = only(read("[    1.000000] usb 1-1: new device\n[  900.000000] eth0: link becomes ready\n"))
    assert run.observations == ()
    assert (run.condition("started"), run.condition("ended")) == ("1.000000 s after boot", "900.000000 s after boot")
    assert codes(run) == {"no-fault"}


def test_lines_that_were_left_out_make_it_incomplete():
    assert only(read(f"[ 1.0] {XID_79}\n...\n")).missing == ("lines that were left out (1 times '...')",)


@pytest.mark.parametrize("text", ["", "hello\nworld\n", "a,b\n1,2\n"])
def test_text_that_is_no_log_is_refused(text):
    assert read(text).outcome is Outcome.REFUSED


def test_a_crash_that_was_triggered_by_hand_says_so():
    run = only(read("<6>[ 1.0] sysrq: SysRq : Trigger a crash\n<1>[ 1.1] BUG: unable to handle kernel NULL pointer\n"))
    assert "by hand" in messages(run, "panic")[0]


def test_a_crash_in_a_library_is_no_fault_of_hardware():
    text = "[ 5.0] pt_main_thread[77]: segfault at 7f ip 00 sp 00 error 4 in libnccl.so.2[7f+d3]\n"
    run = only(read(text))
    assert values(run, "segfault", process="pt_main_thread") == ["libnccl.so.2"]
    assert "segfault" in codes(run)


def test_a_storm_of_corrected_errors_is_told_from_a_few():
    line = "[ {}] pcieport 0000:00:03.1: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)\n"
    storm = "".join(line.format(f"5.{n:06d}") for n in range(0, 900000, 10000))
    assert "pcie-corrected-storm" in codes(only(read(storm)))
    assert "pcie-corrected" in codes(only(read(line.format("5.0") + line.format("9000.0"))))


def test_a_long_log_is_counted_from_chunks_within_bounds(monkeypatch):
    monkeypatch.setattr(tallies, "MOST_TALLIES", 100)

    def chunks() -> Iterator[bytes]:
        for number in range(400):
            yield f"[ {number}.000000] NVRM: Xid (PCI:{number:04x}:1b:00): 31, pid=1, name=x, y\n".encode()

    run = only(read_output(chunks(), kind="kernel-log"))
    assert len(found(run, "xid")) == 100
    assert "300 events of further devices or codes" in run.missing


def test_names_of_processes_may_hold_colons_and_brackets():
    event = events_of("NVRM: Xid (PCI:0000:17:00): 119, pid=15, name=nvc:[driver], Timeout after 6s of waiting")
    assert event is not None
    run = only(read("NVRM: Xid (PCI:0000:17:00): 119, pid=15, name=nvc:[driver], Timeout after 6s of waiting\n"))
    assert values(run, "xid_processes") == ["nvc:[driver]"]


def test_a_log_quoted_in_a_report_is_still_a_log():
    run = only(
        read(f"> [ 1843.308145] {XID_79}\n>\n> [ 1844.000000] NVRM: GPU 0000:1b:00.0: GPU has fallen off the bus.\n")
    )
    assert values(run, "xid_first") == ["1843.308145"]


def test_a_record_of_a_log_shipper_is_read_one_level_down():
    record = {"jsonPayload": {"MESSAGE": XID_79, "_HOSTNAME": "n7"}, "timestamp": "2026-03-01T10:00:00Z"}
    run = only(read(json.dumps(record) + "\n"))
    assert values(run, "xid", node="n7") == [79.0]
    assert values(run, "xid_first") == ["2026-03-01T10:00:00Z"]


def test_a_pcie_error_that_is_only_received_counts_at_the_device_that_sent_it():
    run = only(read("[ 5.100000] pcieport 0000:20:01.1: AER: Uncorrectable (Fatal) error received from 0000:21:00.0\n"))
    assert values(run, "aer", pci="0000:21:00.0") == ["uncorrected fatal"]
    assert "pcie-uncorrected" in codes(run)


def test_a_device_that_cannot_recover_is_said_without_the_end_of_the_recovery():
    run = only(read("[ 5.100000] nvidia 0000:21:00.0: AER: can't recover (no error_detected callback)\n"))
    assert "nvidia 0000:21:00.0" in messages(run, "recovery-impossible")[0]


def test_the_uncorrected_pcie_error_is_the_root_cause_before_a_corrected_one():
    head = "[ 5.{}00000] pcieport 0000:20:01.1: PCIe Bus Error: severity={}, type=Transaction Layer, (Receiver ID)\n"
    text = head.format(1, "Corrected") + head.format(2, "Uncorrected (Fatal)") + f"[ 5.300000] {XID_79}\n"
    assert messages(only(read(text)), "root-cause")[0].startswith("root cause: PCIe error (uncorrected fatal)")


def test_a_number_in_brackets_that_is_no_time_is_none():
    run = only(read(f"pcieport 0000:20:01.1: AER: device recovery failed\n  [14] CmpltTO\n{XID_79}\n"))
    assert run.condition("started") is None


def test_a_failed_start_of_a_gpu_is_one_although_the_driver_reports_it_twice():
    one = (
        "[ 9.100000] NVRM: GPU 0000:0b:00.0: RmInitAdapter failed! (0x24:0x72:1568)\n"
        "[ 9.200000] NVRM: GPU 0000:0b:00.0: rm_init_adapter failed, device minor number 5\n"
    )
    (failure,) = found(only(read(one * 3)), "gpu_init_failure")
    assert dict(failure.subject)["count"] == "3"


def test_errors_of_host_memory_are_said_with_their_place():
    line = (
        "[ 9.100000] EDAC MC1: 26{} memory read error on CPU_SrcID#0_Chan#1_DIMM#0 (channel:1 - OVERFLOW area:DRAM)\n"
    )
    assert "the counter ran over" in messages(only(read(line.format(" CE"))), "host-memory-corrected")[0]
    assert "DIMM#0" in messages(only(read(line.format(" UE"))), "host-memory-uncorrected")[0]


def test_machine_checks_that_are_only_counted_elsewhere_are_no_silence():
    run = only(read("[ 9.100000] mce: [Hardware Error]: Machine check events logged\n"))
    assert codes(run) == {"machine-checks-logged"}


def test_resets_and_errors_of_amd_gpus_are_events():
    run = only(
        read(
            "[ 9.100000] [drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring gfx timeout, signaled seq=5\n"
            "[ 9.200000] amdgpu 0000:c1:00.0: amdgpu: GPU reset begin!\n"
            "[ 9.300000] amdgpu 0000:c1:00.0: amdgpu: GPU reset(2) failed\n"
            "[ 9.400000] amdgpu 0000:c1:00.0: amdgpu: socket: 0 1 new uncorrectable hardware errors detected in umc\n"
        )
    )
    events = [o.value for o in found(run, "gpu_event", pci="0000:c1:00.0")]
    assert events == ["GPU reset begun", "GPU reset failed", "uncorrected error"]
    assert "no-fault" not in codes(run)


def test_a_limited_pcie_link_is_read_with_both_rates():
    run = only(
        read(
            "[ 9.1000] mlx5_core 0000:5e:00.0: 126.016 Gb/s available PCIe bandwidth, limited by 16.0 GT/s PCIe x8 link"
            " at 0000:5d:00.0 (capable of 252.048 Gb/s with 16.0 GT/s PCIe x16 link)\n"
        )
    )
    assert [round(v.to("Gb/s"), 3) for v in values(run, "pcie_bandwidth", pci="0000:5e:00.0")] == [126.016]
    assert "x8 link at 0000:5d:00.0" in messages(run, "pcie-limited")[0]


def test_errors_that_the_driver_stops_printing_make_counts_lower_bounds():
    line = (
        "NVRM: Rate limiting GSP RPC error prints for GPU at PCI:0000:9b:00 (printing 1 of every 30).  The GPU likely\n"
    )
    assert "1 of 30" in messages(only(read(line)), "rate-limited")[0]


def test_an_xid_whose_address_was_blotted_out_still_counts():
    run = only(read("kernel: NVRM: Xid (PCI:...): 145, RLW_RXPIPE Nonfatal XC0 i0 Link 9 (0x1)\n"))
    assert values(run, "xid") == [145.0]
    assert "pci" not in dict(found(run, "xid")[0].subject)


def test_lines_that_were_rejected_are_no_proof_of_health():
    run = only(read("[    9.000000] NVRM: loading NVIDIA UNIX\n[   10.000000] NVRM: Xid (PCI:0000:1b\n"))
    assert run.rejected == 1
    assert "no-fault" not in codes(run)


def test_an_indented_line_goes_on_with_the_message_above_and_has_its_time():
    text = (
        "[ 1843.300000] NVRM: The NVIDIA GPU 0000:1b:00.0\n"
        "               NVRM: (PCI ID: 10de:2330) installed in this system has\n"
        "               NVRM: fallen off the bus and is not responding to commands.\n"
    )
    assert values(only(read(text)), "lost_device_first", pci="0000:1b:00.0") == ["1843.300000"]
