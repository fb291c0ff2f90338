"""Slurm's words: states, reasons, durations, memory, generic resources."""

import pytest

from clusterwright.model.observations import Lack, NoValue
from clusterwright.readers.slurm.amounts import memory_scope, read_duration, read_memory, read_time
from clusterwright.readers.slurm.gres import count_gpus, count_indices, gpus_in_tres, read_gres, read_tres
from clusterwright.readers.slurm.reasons import classify_reason
from clusterwright.readers.slurm.states import read_job_state, read_node_state


@pytest.mark.parametrize(
    ("word", "state", "flags", "takes_jobs"),
    [
        ("idle", "IDLE", (), True),
        ("idle*", "IDLE", ("NOT_RESPONDING",), False),
        ("idle~", "IDLE", ("POWERED_DOWN",), True),
        ("idle$", "IDLE", ("MAINTENANCE",), False),
        ("idle@", "IDLE", ("REBOOT_REQUESTED",), False),
        ("mix-", "MIXED", ("PLANNED",), True),
        ("alloc", "ALLOCATED", (), True),
        ("drng", "DRAINING", ("DRAIN",), False),
        ("drain*", "DRAINED", ("DRAIN", "NOT_RESPONDING"), False),
        ("maint", "MAINT", ("MAINTENANCE",), False),
        ("resv", "RESERVED", ("RESERVED",), False),
        ("down~", "DOWN", ("POWERED_DOWN",), False),
        ("inval", "INVALID_REG", ("INVALID_REG",), False),
        ("MIXED+DRAIN+RESERVED", "MIXED", ("DRAIN", "RESERVED"), False),
        ("IDLE+DYNAMIC_NORM", "IDLE", ("DYNAMIC_NORM",), True),
        ("UNKNOWN+NOT_RESPONDING", "UNKNOWN", ("NOT_RESPONDING",), False),
    ],
)
def test_decodes_a_node_state(word, state, flags, takes_jobs):
    read = read_node_state(word)
    assert read is not None
    assert (str(read), read.flags, read.takes_jobs) == (state, flags, takes_jobs)


@pytest.mark.parametrize("word", ["", "RUNNI+", "gpu:h100:8", "idel", "mixed+foo", "*", "idle" * 100])
def test_does_not_guess_a_node_state(word):
    assert read_node_state(word) is None


@pytest.mark.parametrize(
    ("word", "state"),
    [("R", "RUNNING"), ("PD", "PENDING"), ("CANCELLED by 1000", "CANCELLED"), ("CANCELLED+", "CANCELLED"),
     ("OOM", "OUT_OF_MEMORY"), ("NODE_FAIL", "NODE_FAIL"), ("RUNNI+", None), ("OUT_OF_ME+", None), ("", None)],
)  # fmt: skip
def test_reads_a_job_state_or_leaves_a_cut_one_unread(word, state):
    assert read_job_state(word) == state


def test_tells_a_lack_of_capacity_from_a_hold_a_limit_and_a_failure():
    assert classify_reason("(Resources)") == "capacity"
    assert classify_reason("(ReqNodeNotAvail, UnavailableNodes:gpu-[1-2])") == "capacity"
    assert classify_reason("Nodes required for job are DOWN, DRAINED or reserved for jobs") == "capacity"
    assert classify_reason("Priority") == "turn"
    assert classify_reason("JobHeldAdmin") == "held"
    assert classify_reason("QOSMaxGRESPerUser") == "limit"
    assert classify_reason("AssocGrpGRESMinutes") == "limit"
    assert classify_reason("DependencyNeverSatisfied") == "never"
    assert classify_reason("launch failed requeued held") == "failure"
    assert classify_reason("something new here") is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1-02:03:04", 93784), ("00:15.057", 15.057), ("23:59:59", 86399), ("7-00", 604800), ("5:00", 300),
     ("1566-14:49:13", 135355753)],
)  # fmt: skip
def test_reads_a_duration_in_seconds(text, seconds):
    value = read_duration(text)
    assert not isinstance(value, (str, NoValue))
    assert value.value == pytest.approx(seconds)


def test_keeps_no_limit_absent_and_negative_durations_apart():
    assert read_duration("UNLIMITED") == "unlimited"
    assert read_duration("N/A").lack is Lack.ABSENT
    assert read_duration("INVALID").lack is Lack.UNREADABLE
    assert read_duration("12:0+").lack is Lack.UNREADABLE
    assert read_duration("90").lack is Lack.UNREADABLE, "minutes or seconds: the column decides"


def test_unknown_times_are_absent_and_odd_ones_unreadable():
    assert read_time("2025-01-01T00:00:00") == "2025-01-01T00:00:00"
    assert read_time("Unknown").lack is Lack.ABSENT
    assert read_time("2025-01-0").lack is Lack.UNREADABLE


def test_reads_memory_in_powers_of_1024_and_no_unknown_unit():
    assert read_memory("1K").value == 1024
    assert read_memory("438.50M").value == 438.5 * 2**20
    assert read_memory("5000Mc").value == 5000 * 2**20
    assert (memory_scope("5000Mc"), memory_scope("4Gn"), memory_scope("4G")) == ("per core", "per node", "")
    assert read_memory("20H").lack is Lack.UNREADABLE
    assert read_memory("").lack is Lack.ABSENT


def test_reads_generic_resources_of_several_types():
    gres = read_gres("gpu:a100:2(IDX:0,3),gpu:h100:1(IDX:2),shard:4(0/2,1/2)")
    assert [(g.name, g.type, g.count, g.indices) for g in gres] == [
        ("gpu", "a100", 2, "0,3"), ("gpu", "h100", 1, "2"), ("shard", "", 4, "")]  # fmt: skip
    assert count_gpus(gres) == 3


def test_mig_slices_are_no_gpus():
    gres = read_gres("gpu:nvidia_a100_1g.5gb:7(S:0-1),gpu:a100:1")
    assert [g.is_slice for g in gres] == [True, False]
    assert count_gpus(gres) == 1


@pytest.mark.parametrize("text", ["gpu:+", "gpu:h1", "gpu:h100:8(S", "gpu:h100gpu:h100:0", "gpu", "gpu:a:b:c:2", "8"])
def test_a_cut_resource_is_unreadable(text):
    assert read_gres(text).lack is Lack.UNREADABLE


@pytest.mark.parametrize("text", ["(null)", "", "N/A"])
def test_no_resource_is_absent_and_not_zero(text):
    assert read_gres(text).lack is Lack.ABSENT


def test_counts_indices_with_ranges():
    assert count_indices("0-3,7") == 5
    assert count_indices("N/A") is None


def test_typed_gpus_are_part_of_the_total():
    assert gpus_in_tres(read_tres("cpu=8,gres/gpu:h100=4,gres/gpu=4")) == 4
    assert gpus_in_tres(read_tres("cpu=8,gres/gpu:h100=4,gres/gpu:a100=1")) == 5


def test_a_list_without_gpus_is_absent_and_a_cut_one_unreadable():
    assert gpus_in_tres(read_tres("cpu=8,mem=4G")).lack is Lack.ABSENT
    assert read_tres("").lack is Lack.ABSENT
    assert read_tres("billing=1+").lack is Lack.UNREADABLE
