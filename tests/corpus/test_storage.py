"""Public operator files of fio, ior, mdtest, IO500, elbencho and gdsio: the conclusions that a reader must reach."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from builders.corpus import FOLDER, check_corpus, values
from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import Lack, NoValue, Outcome, Run, Transcript, Weight


def amounts(run: Run, name: str, unit: str, **subject: str) -> list[float]:
    return [round(v.to(unit), 6) for v in values(run, name, **subject) if isinstance(v, Quantity)]


def codes(run: Run) -> set[str]:
    return {notice.code for notice in run.notices}


def errors(run: Run) -> set[str]:
    return {notice.code for notice in run.notices if notice.weight is Weight.ERROR}


def only(transcript: Transcript, kind: str, outcome: Outcome = Outcome.READ) -> Run:
    assert transcript.kind == kind, transcript.kind
    assert transcript.outcome is outcome, [run.missing for run in transcript.runs]
    (run,) = transcript.runs
    return run


def five_jobs(transcript: Transcript) -> None:
    run = only(transcript, "fio")
    assert amounts(run, "write_rate", "KiB/s", job="sequential_write") == [68118]
    assert amounts(run, "write_iops", "IOPS", job="sequential_write") == [133]
    assert amounts(run, "read_rate", "KiB/s", job="sequential_read") == [129836]
    assert amounts(run, "read_iops", "IOPS", job="sequential_read") == [253]
    assert amounts(run, "write_iops", "IOPS") == [133, 1610]
    assert amounts(run, "read_iops", "IOPS") == [253, 317, 323]
    assert "rate-disagrees" not in codes(run)


def two_jobs(transcript: Transcript) -> None:
    run = only(transcript, "fio")
    assert amounts(run, "read_iops", "IOPS") == [8086.673998]
    assert amounts(run, "read_rate", "KiB/s") == [129386]
    assert amounts(run, "write_iops", "IOPS") == [2457.017193]
    assert amounts(run, "write_rate", "KiB/s") == [39312]
    assert amounts(run, "read_latency_mean", "µs") == [238.357679]
    assert round(amounts(run, "write_latency_mean", "µs")[0]) == 800
    assert str(run.condition("block_size")) == "16 KiB"


def spread(transcript: Transcript) -> None:
    assert transcript.outcome is Outcome.READ
    rates = [amounts(run, "read_rate", "KiB/s")[0] for run in transcript.runs]
    assert rates == [611058, 502252, 592500, 541760, 662189]
    assert [amounts(run, "read_iops", "IOPS")[0] for run in transcript.runs][1::3] == [125562, 165547]
    assert all("runs-differ" in codes(run) for run in transcript.runs)


def outlier(transcript: Transcript) -> None:
    assert transcript.outcome is Outcome.READ
    iops = [amounts(run, "write_iops", "IOPS")[0] for run in transcript.runs]
    assert iops == [7801, 24972, 26793, 26616, 30816]
    (notice,) = [n for n in transcript.runs[0].notices if n.code == "outlier-run"]
    assert notice.message.startswith("run 1 ")
    (notice,) = [n for n in transcript.runs[0].notices if n.code == "runs-differ"]
    assert "7801" in notice.message


def synced(transcript: Transcript) -> None:
    run = only(transcript, "fio", Outcome.PARTLY)
    assert amounts(run, "write_latency_p99", "µs") == [260]
    assert amounts(run, "write_completion_p99", "µs") == [23.168]
    assert {"short-run", "sync-latency"} <= codes(run)


def progress(transcript: Transcript) -> None:
    run = only(transcript, "fio", Outcome.PARTLY)
    assert run.observations == ()
    assert "no-result" in errors(run)


def stonewalled(transcript: Transcript) -> None:
    run = only(transcript, "ior", Outcome.PARTLY)
    assert amounts(run, "write_rate", "MiB/s") == [361270]
    assert (run.condition("node_count"), run.condition("ranks")) == ("80", "640")
    assert run.condition("stonewall_time") == "300"
    assert codes(run) == {"stonewall"}
    assert not errors(run)


def only_creation(rate: float, *others: str, seconds: float | None = None) -> Callable[[Transcript], None]:
    def check(transcript: Transcript) -> None:
        run = only(transcript, "mdtest")
        assert amounts(run, "file_creation", "op/s") == [rate]
        assert amounts(run, "file_creation_time", "s") == ([] if seconds is None else [seconds])
        for phase in ("file_stat", "file_read", "file_removal", "tree_removal"):
            (value,) = values(run, phase)
            assert isinstance(value, NoValue)
            assert value.lack is Lack.ABSENT
        assert set(others) <= codes(run)

    return check


def transport_errors(transcript: Transcript) -> None:
    only_creation(378835.575, "transport-errors", seconds=320.984)(transcript)
    assert amounts(transcript.runs[0], "file_create_stonewall", "op/s") == [402457.892]


def io500(transcript: Transcript) -> None:
    run = only(transcript, "io500")
    assert amounts(run, "write_rate", "GiB/s", phase="ior-easy-write") == [352.803032]
    assert amounts(run, "write_rate_stonewall", "GiB/s", phase="ior-easy-write") == [403.55]
    assert run.condition("ranks") == "640"
    assert values(run, "io500_score") == [153.38664]


def sweep(transcript: Transcript) -> None:
    assert transcript.outcome is Outcome.READ
    first = transcript.runs[0]
    assert amounts(first, "write_files_rate", "op/s") == [53757]
    assert amounts(first, "mkdirs_elapsed_first", "ms") == [0]
    assert "small-files" in codes(first)
    assert len(transcript.runs) > 8


def last_done(transcript: Transcript) -> None:
    run = only(transcript, "elbencho")
    assert amounts(run, "write_rate", "MiB/s") == [33352]
    assert amounts(run, "write_rate_first", "MiB/s") == [33395]
    assert amounts(run, "write_elapsed", "s") == [125.755]


def too_short(transcript: Transcript) -> None:
    assert transcript.outcome is Outcome.READ
    rates = [amounts(run, "read_rate", "GiB/s")[0] for run in transcript.runs]
    assert rates == [0.669796, 1.142847, 1.276344, 1.329787]
    assert all("short-run" in codes(run) for run in transcript.runs)
    assert {run.condition("queue_depth") for run in transcript.runs} == {"128"}


def no_gain(transcript: Transcript) -> None:
    assert transcript.outcome is Outcome.READ
    found = {str(run.condition("transfer")): amounts(run, "read_rate", "GiB/s")[0] for run in transcript.runs}
    assert found == {"GPUD": 6.622534, "CPU_GPU": 6.573733, "CPUONLY": 6.478798}
    assert "no-gain" in codes(transcript.runs[0])


def compatible(transcript: Transcript) -> None:
    run = only(transcript, "gdscheck", Outcome.PARTLY)
    assert values(run, "compat_mode") == [True]
    assert "compat-mode-allowed" in codes(run)
    assert values(run, "gds_driver", driver="WekaFS") == ["Supported"]


EXPECTED = {
    "fio/002-pkb-multi-job-json.json": five_jobs,
    "fio/003-pkb-hist-json.json": two_jobs,
    "fio/005-randread-normal-a.log": spread,
    "fio/007-randwrite-normal-c.log": outlier,
    "fio/008-homelab-zfs-fsync-normal.log": synced,
    "fio/009-progress-carriage-return-storm.log": progress,
    "ior-mdtest/001-ior-easy-write-stonewall-warnings.txt": stonewalled,
    "ior-mdtest/002-mdtest-easy-write-helios.txt": only_creation(119113.15, seconds=372.432),
    "ior-mdtest/003-mdtest-easy-write-ucx-errors-inside.txt": transport_errors,
    "ior-mdtest/005-mdtest-old-1.9.txt": only_creation(4560.893, "out-of-inodes"),
    "ior-mdtest/007-io500-result-ini.txt": io500,
    "elbencho/002-sweep-losf.txt": sweep,
    "elbencho/003-columns-doc-table.txt": last_done,
    "gdsio/001-gpu-batch-read-markdown-bold.txt": too_short,
    "gdsio/002-gds-vs-cpu-modes-with-top.txt": no_gain,
    "gdsio/004-gdscheck-compat-mode.txt": compatible,
}


@pytest.mark.skipif(not FOLDER.is_dir(), reason="the public operator files are not here")
def test_every_file_gives_the_conclusion_that_it_must() -> None:
    assert check_corpus(EXPECTED, "fio", "ior-mdtest", "elbencho", "gdsio") == len(EXPECTED)
