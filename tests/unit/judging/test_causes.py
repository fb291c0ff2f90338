"""Root causes before their consequences, over logs of several nodes, the fabric, the scheduler and jobs."""

from __future__ import annotations

import json

import pytest

from clusterwright.app.judging_outputs import OutputRequest, describe_judgement, judge_outputs, values_of_judgement
from clusterwright.judging.causes import find_causes
from clusterwright.judging.happenings import Log, happenings_of
from clusterwright.readers.reading import read_output

GPU, OTHER, SWITCH = "0000:1b:00", "0000:43:00", "0000:05:00.0"


def aer(stamp, pci=f"{GPU}.0"):
    return f"{stamp} nvidia {pci}: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (Requester ID)"


def xid(stamp, code, pci=GPU, rest="GPU has fallen off the bus."):
    return f"{stamp} NVRM: Xid (PCI:{pci}): {code}, pid='<unknown>', name=<unknown>, {rest}"


def sxid(stamp, code=20001, pci=SWITCH):
    return f"{stamp} nvidia-nvswitch0: SXid (PCI:{pci}): {code}, Fatal, Link 12 TX Replay Error"


def iso(second, node="gpu-003", zone="+00:00"):
    return f"2026-11-30T10:{second // 60:02}:{second % 60:02}.000000{zone} {node} kernel:"


def ctime(second):
    return f"[Mon Nov 30 10:{second // 60:02}:{second % 60:02} 2026]"


def boot(second):
    return f"[{second:12.6f}]"


FIRST = "Linux version 6.8.0-48-generic (buildd@host)"


def kernel(*lines, path="gpu-003/dmesg.txt", nodes=("gpu-003",)):
    return log("\n".join(lines) + "\n", path, nodes, "kernel-log")


def log(text, path, nodes=(), kind=""):
    transcript = read_output([text.encode()], name=path, kind=kind)
    assert transcript.refusal is None, transcript.refusal
    return Log(path, transcript, tuple(nodes))


def manager(*texts, path="gpu-003/fabricmanager.log", nodes=("gpu-003",)):
    return log("".join(f"{text}\n" for text in texts), path, nodes, "fabric-manager-log")


def switch_error(time):
    return (
        f"[{time}] [ERROR] [tid 4711] detected NVSwitch fatal error 20001 on fid 0 on NVSwitch pci bus id "
        "00000000:05:00.0 physical id 0 port 12"
    )


def training(*lines, path="train.log", nodes=()):
    head = "iteration        1/     100 | elapsed time per iteration (ms): 900.0 | lm loss: 9.1E+00 |"
    return log("\n".join((head, *lines)) + "\n", path, nodes, "training-log")


def timed_out(rank, waited_ms=600_000, stamp=""):
    return (
        f"{stamp}[Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=77, OpType=ALLREDUCE, "
        f"NumelIn=4096, NumelOut=4096, Timeout(ms)=600000) ran for {waited_ms} milliseconds before timing out."
    )


def slurm(*lines, path="slurmctld.log"):
    return log("\n".join(lines) + "\n", path, (), "slurm-log")


def chains(*logs):
    return find_causes(happenings_of(logs))


def told(chain):
    return [chain.root.name, *(c.event.name for c in chain.consequences)]


def test_a_pcie_error_comes_before_the_loss_of_the_same_gpu():
    (chain,) = chains(kernel(boot(1) + " " + FIRST, aer(boot(900)), xid(boot(901.5), 79)))
    assert told(chain)[1:] == ["Xid 79"]
    assert chain.root.name.startswith("PCIe error")
    assert chain.consequences[0].after_s == 1.5
    assert chain.consequences[0].doubt == ""


def test_a_pcie_error_of_another_device_is_left_alone():
    assert chains(kernel(aer(iso(0), "0000:99:00.0"), xid(iso(2), 79))) == ()


def test_a_pcie_error_after_the_loss_is_not_its_cause():
    assert chains(kernel(xid(iso(0), 79), aer(iso(2)))) == ()


def test_a_lost_gpu_comes_before_the_errors_of_the_switch_also_over_two_files():
    both = kernel(ctime(0) + " " + FIRST, xid(ctime(5), 79)), manager(switch_error("Nov 30 2026 10:00:06"))
    (chain,) = chains(*both)
    assert told(chain) == ["Xid 79", "SXid 20001"]
    assert (chain.consequences[0].after_s, chain.consequences[0].doubt) == (1.0, "")
    assert chain.consequences[0].event.path == "gpu-003/fabricmanager.log"


def test_a_switch_error_on_another_node_is_left_alone():
    other = manager(switch_error("Nov 30 2026 10:00:06"), path="gpu-004/fm.log", nodes=("gpu-004",))
    assert chains(kernel(xid(ctime(5), 79)), other) == ()


def test_a_switch_error_that_came_first_is_the_root():
    (chain,) = chains(
        kernel(sxid(iso(0)), xid(iso(1), 74, rest="NVLink: fatal error"), xid(iso(2), 45, OTHER, "ended"))
    )
    assert told(chain) == ["SXid 20001", "Xid 74", "Xid 45"]


def test_seconds_since_boot_and_a_clock_cannot_be_ordered_and_it_is_said():
    (chain,) = chains(
        kernel(boot(900) + " " + FIRST, xid(boot(901), 79)), manager(switch_error("Nov 30 2026 10:00:06"))
    )
    assert told(chain) == ["Xid 79", "SXid 20001"]
    assert chain.consequences[0].after_s is None
    assert "order not known: seconds since boot and another clock" in chain.consequences[0].doubt


def test_time_outs_of_a_job_follow_from_the_link_error_on_one_of_its_nodes():
    job = training(
        *(timed_out(rank, stamp=f"2026-11-30T10:10:0{rank}.000000+00:00 ") for rank in range(4)),
        nodes=("gpu-003", "gpu-004"),
    )
    (chain,) = chains(kernel(xid(iso(1), 74, rest="NVLink: fatal error")), job)
    assert told(chain) == ["Xid 74", "NCCL time-outs of 4 ranks"]
    assert (chain.consequences[0].after_s, chain.consequences[0].doubt) == (599.0, "")


def test_the_cause_of_ranks_that_waited_long_lies_before_their_wait():
    def after(seconds, waited_s):
        stamp = f"2026-11-30T{10 + seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}Z "
        job = training(timed_out(3, waited_s * 1000, stamp), nodes=("gpu-003",))
        return chains(kernel(xid(iso(0), 79)), job)

    assert after(1900, 1800)
    assert not after(1900, 600)
    assert not after(3 * 3600, 1800)


def test_the_time_that_a_rank_prints_without_year_is_that_of_the_only_host():
    job = training(
        timed_out(3, 60_000, "[rank3]:[E1130 10:01:01.123456789 ProcessGroupNCCL.cpp:616] "), nodes=("gpu-003",)
    )
    (chain,) = chains(kernel(xid(ctime(10), 79)), job)
    assert chain.consequences[0].after_s == 51.0


def test_time_outs_without_times_have_no_known_order():
    job = training(timed_out(3), nodes=("gpu-003", "gpu-004"))
    (chain,) = chains(kernel(xid(iso(1), 74, rest="NVLink: fatal error")), job)
    assert "order not known: one of them has no time" in chain.consequences[0].doubt


def test_time_outs_on_other_nodes_are_left_alone():
    assert chains(kernel(xid(iso(1), 79)), training(timed_out(3), nodes=("gpu-007", "gpu-008"))) == ()


def test_where_a_job_names_no_hosts_only_hardware_is_named_and_that_is_said():
    (chain,) = chains(kernel(xid(iso(1), 79)), training(timed_out(3)))
    assert "names no hosts" in chain.consequences[0].doubt
    assert chains(kernel(xid(iso(1), 31, rest="MMU Fault")), training(timed_out(3))) == ()


def test_the_scheduler_loses_the_node_after_its_gpu_is_gone():
    controller = slurm(
        "[2026-11-30T10:05:10.000+00:00] error: Nodes gpu-003 not responding",
        "[2026-11-30T10:05:30.000+00:00] error: Nodes gpu-003 not responding, setting DOWN",
    )
    (chain,) = chains(kernel(aer(iso(0)), xid(iso(2), 79)), controller)
    assert told(chain)[1:] == ["Xid 79", "Slurm: node not responding", "Slurm: node down"]
    assert [c.after_s for c in chain.consequences] == [2.0, 310.0, 330.0]


def test_a_node_that_went_before_is_not_lost_by_a_later_fault():
    controller = slurm("[2026-11-30T09:50:10.000+00:00] error: Nodes gpu-003 not responding, setting DOWN")
    assert chains(kernel(xid(iso(2), 79)), controller) == ()


def test_times_without_zone_of_two_hosts_are_not_ordered_but_fit_or_do_not():
    fits = slurm("[2026-11-30T10:05:10.000] error: Nodes gpu-003 not responding, setting DOWN")
    (chain,) = chains(kernel(xid(ctime(10), 79)), fits)
    assert chain.consequences[0].after_s is None
    assert "order not known: times without a zone, of different hosts; 300 s after it" in chain.consequences[0].doubt
    days_before = slurm("[2026-11-20T10:05:10.000] error: Nodes gpu-003 not responding, setting DOWN")
    assert chains(kernel(xid(ctime(10), 79)), days_before) == ()


def test_an_event_long_after_is_no_consequence():
    assert chains(kernel(xid(iso(0), 79), sxid(iso(11 * 60)))) == ()


def test_a_fault_of_the_application_ends_its_own_channels_and_nothing_else():
    (chain,) = chains(
        kernel(xid(iso(0), 31, rest="MMU Fault"), xid(iso(1), 45, rest="ended"), xid(iso(2), 45, OTHER, "x"))
    )
    assert [(c.event.name, c.event.device) for c in chain.consequences] == [("Xid 45", "0000:1b:00.0")]


def test_the_same_event_in_two_logs_of_a_node_counts_once():
    (chain,) = chains(kernel(xid(iso(0), 79), sxid(iso(1))), kernel(xid(iso(0), 79), path="gpu-003/journal.txt"))
    assert told(chain) == ["Xid 79", "SXid 20001"]


def test_events_of_two_nodes_make_two_chains_and_nothing_makes_none():
    logs = [
        kernel(aer(iso(0, node)), xid(iso(1, node), 79), path=f"{node}/dmesg", nodes=(node,)) for node in ("a-1", "a-2")
    ]
    assert [chain.root.nodes for chain in chains(*logs)] == [("a-1",), ("a-2",)]
    assert chains(kernel(iso(0) + " " + FIRST)) == ()
    assert chains() == ()


def test_an_adapter_that_goes_down_comes_before_time_outs():
    down = f"{iso(3)} mlx5_core 0000:41:00.0 mlx5_1: Port: 1 Link DOWN".replace("DOWN", "down")
    job = training(timed_out(3), nodes=("gpu-003",))
    (chain,) = chains(kernel(iso(0) + " " + FIRST, down), job)
    assert told(chain) == ["adapter: link down", "NCCL time-outs of 1 rank"]


@pytest.fixture
def folder(tmp_path):
    for node in ("gpu-003", "gpu-004"):
        (tmp_path / node).mkdir()
    (tmp_path / "gpu-003" / "dmesg.txt").write_text(
        "\n".join((ctime(0) + " " + FIRST, aer(ctime(4)), xid(ctime(5), 79))) + "\n"
    )
    (tmp_path / "gpu-003" / "fabricmanager.log").write_text(switch_error("Nov 30 2026 10:00:06") + "\n")
    (tmp_path / "gpu-004" / "dmesg.txt").write_text(
        "\n".join((ctime(0) + " " + FIRST, xid(ctime(50), 31, rest="MMU Fault"))) + "\n"
    )
    return tmp_path


def test_the_page_tells_the_root_before_the_single_events(folder):
    judged = judge_outputs(OutputRequest([str(folder)], known="gpu-[003-004]"))
    text = describe_judgement(judged)
    flat = " ".join(text.split())
    assert text.index("root causes, before their consequences:") < text.index("wrong:")
    assert "gpu-003 0000:1b:00.0: PCIe error" in flat
    assert "→ Xid 79, 1 s later" in flat
    assert "→ SXid 20001 on gpu-003 0000:05:00.0, 2 s later" in flat
    assert "Xid 31" not in flat[flat.index("root causes") : flat.index("wrong:")]
    values = json.loads(json.dumps(values_of_judgement(judged)))
    assert [c["event"] for c in values["causes"][0]["consequences"]] == ["Xid 79", "SXid 20001"]


def test_many_events_are_looked_at_in_bounded_time():
    lines = [xid(iso(i % 600, f"n-{i % 40}"), code, f"0000:{i % 256:02x}:00") for i in range(4000) for code in (79,)]
    assert isinstance(chains(kernel(*lines, nodes=())), tuple)
