"""Public operator files of nccl-tests and rccl-tests: the conclusions that a reader must reach."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from builders.corpus import FOLDER, check_corpus, found
from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import NoValue, Outcome, Run, Transcript, Weight


def speeds(run: Run, size: int, name: str = "busbw") -> list[float]:
    rows = found(run, name, size=str(size))
    return [round(o.value.to("GB/s"), 6) for o in rows if isinstance(o.value, Quantity)]


def average(run: Run) -> float | None:
    value = run.condition("average_busbw")
    return round(value.to("GB/s"), 6) if isinstance(value, Quantity) else None


def sizes(run: Run) -> set[int]:
    return {int(dict(o.subject)["size"]) for o in run.observations if o.name == "busbw"}


def codes(run: Run) -> set[str]:
    return {notice.code for notice in run.notices}


def errors(run: Run) -> set[str]:
    return {notice.code for notice in run.notices if notice.weight is Weight.ERROR}


def only(transcript: Transcript, outcome: Outcome = Outcome.READ) -> Run:
    assert transcript.outcome is outcome, (
        f"{transcript.outcome}: {transcript.refusal or [r.missing for r in transcript.runs]}"
    )
    (run,) = transcript.runs
    return run


def holds(
    outcome: Outcome, *, largest: int, busbw: list[float], mean: float | None, **conditions: object
) -> Callable[[Transcript], None]:
    """One run with this average, these values at the largest size and these conditions."""

    def check(transcript: Transcript) -> None:
        run = only(transcript, outcome)
        assert max(sizes(run)) == largest
        assert speeds(run, largest) == busbw
        assert average(run) == mean
        assert 0 not in sizes(run)
        assert not errors(run)
        for name, expected in conditions.items():
            assert run.condition(name) == expected, (name, run.condition(name))
        if conditions.get("correctness") == "unknown":
            assert "validation-off" in codes(run)
            assert all(isinstance(o.value, NoValue) for o in found(run, "wrong"))
            assert not isinstance(run.condition("out_of_bounds"), float)

    return check


def also(first: Callable[[Transcript], None], *said: str) -> Callable[[Transcript], None]:
    """The check and notices or missing parts with these words."""

    def check(transcript: Transcript) -> None:
        first(transcript)
        run = transcript.runs[0]
        texts = [n.code for n in run.notices] + list(run.missing)
        for words in said:
            assert any(words in text for text in texts), (words, texts)

    return check


def refused(*words: str) -> Callable[[Transcript], None]:
    def check(transcript: Transcript) -> None:
        assert transcript.outcome is Outcome.REFUSED
        assert all(word in str(transcript.refusal) for word in words), str(transcript.refusal)

    return check


def data_corruption(transcript: Transcript) -> None:
    run = only(transcript, Outcome.PARTLY)
    assert [o.value for o in found(run, "wrong", size="524288")] == [237858.0, 238038.0]
    assert sizes(run) == {8, 262144, 524288}
    assert errors(run) == {"wrong-values"}
    assert run.rejected == 1
    assert "line 'Avg bus bandwidth'" in run.missing


def stops_after_ranks(transcript: Transcript) -> None:
    run = only(transcript, Outcome.PARTLY)
    assert (run.condition("ranks_listed"), run.condition("gpu")) == (13, "NVIDIA H100 80GB HBM3")
    assert run.condition("nodes") == "h100-2,h100-4"
    assert {"the table", "rest of the rank list, which breaks off"} <= set(run.missing)
    assert dict(found(run, "gpu")[0].subject)["pci"] == "0002:00:01.0"


def finished_then_hung(transcript: Transcript) -> None:
    assert transcript.outcome is Outcome.PARTLY
    first, second = transcript.runs
    assert average(first) == 6.6972
    assert speeds(first, 134217728) == [20.34, 21.86]
    assert (second.condition("operation"), len(second.observations)) == ("broadcast", 0)
    assert "the table" in second.missing


def partial_ops(transcript: Transcript) -> None:
    run = only(transcript, Outcome.PARTLY)
    assert speeds(run, 199680) == [2.98, 2.99, 2.98, 2.99]
    assert {dict(o.subject)["redop"] for o in found(run, "busbw", size="199680")} == {"max", "min"}
    assert run.condition("correctness") == "right in the rows shown"
    assert run.rejected == 1


def first_collective_fails(transcript: Transcript) -> None:
    run = only(transcript, Outcome.PARTLY)
    assert transcript.kind == "rccl-tests"
    assert errors(run) == {"test-failed"}
    assert not found(run, "busbw")
    assert (run.condition("ranks"), run.condition("correctness")) == (2, "unknown")


N = "nccl-tests/"
EXPECTATIONS = {
    N + "001-a100-8gpu-allreduce-old-header-check-off.log": holds(
        Outcome.READ, largest=8589934592, busbw=[235.26, 235.03], mean=68.4048, ranks=8, gpu="A100-SXM4-40GB",
        operation="all-reduce", correctness="unknown", validation=False,
    ),
    N + "002-a100-8gpu-alltoall-blank-redop.log": holds(
        Outcome.READ, largest=8589934592, busbw=[224.31, 226.16], mean=58.6481, ranks=8, operation="all-to-all",
        correctness="unknown",
    ),
    N + "003-a100-8gpu-reduce-root-column.log": holds(
        Outcome.READ, largest=8589934592, busbw=[228.38, 228.83], mean=65.018, operation="reduce",
        correctness="unknown",
    ),
    N + "004-k80-2node-tcp-check-off.txt": also(
        holds(
            Outcome.READ, largest=1073741824, busbw=[0.61, 0.61], mean=0.565546, ranks=2, node_count=2,
            gpu="Tesla K80", correctness="unknown", iterations=1,
        ),
        "few-iterations",
    ),
    N + "008-elided-rows-mpi-tagged.log": also(
        holds(Outcome.PARTLY, largest=2147483648, busbw=[437.79, 437.89], mean=52.9753),
        "somebody left out", "is not the mean of the rows shown",
    ),
    N + "009-elided-table-topology-aware.txt": also(
        holds(Outcome.PARTLY, largest=17179869184, busbw=[369.86, 369.42], mean=84.0569), "somebody left out"
    ),
    N + "010-deepops-roce-k8s-alternating-slow-rows.log": also(
        holds(Outcome.READ, largest=2147483648, busbw=[22.92, 22.85], mean=7.76739, correctness="right"), "jitter"
    ),
    N + "011-deepops-slurm-dgx-errorcol.log": holds(
        Outcome.READ, largest=4294967296, busbw=[191.05, 191.56], mean=113.289, correctness="right", out_of_bounds=0
    ),
    N + "012-template-placeholder-XXX.txt": refused("template"),
    N + "013-a3high-tcpx-allgather-na.txt": holds(
        Outcome.READ, largest=536870912, busbw=[70.9, 71.35], mean=30.9622, ranks=16, correctness="unknown"
    ),
    N + "014-a3mega-allgather-zero-size-rows.txt": also(
        holds(
            Outcome.READ, largest=8589934592, busbw=[188.73, 188.9], mean=53.8932, ranks=16, correctness="right",
            operation="all-gather",
        ),
        "size-zero-rows",
    ),
    N + "015-gb200-nvl72-72rank-headless.txt": also(
        holds(
            Outcome.PARTLY, largest=8589934592, busbw=[834.57, 846.82], mean=745.53, ranks=72, ranks_listed=1,
            node_count=None, correctness="right",
        ),
        "71 of 72 lines of the rank list",
    ),
    N + "016-gb200-20rack-1440rank.txt": holds(
        Outcome.PARTLY, largest=17179869184, busbw=[405.74, 404.77], mean=297.808, ranks=1440, gpu="NVIDIA GB200"
    ),
    N + "017-stas-underscore-digit-groups.txt": also(
        holds(Outcome.PARTLY, largest=17179869184, busbw=[234.89], mean=None, correctness="unknown"),
        "hand-edited", "column #wrong",
    ),
    N + "018-oci-a100-2node-sparse-rank-list-no-avg.txt": also(
        holds(
            Outcome.PARTLY, largest=8589934592, busbw=[189.6, 189.5], mean=None, ranks=16, ranks_listed=4, node_count=2,
            gpu="NVIDIA A100-SXM4-40GB", correctness="right", nccl="2.29.3", cuda="13.1",
        ),
        "line 'Avg bus bandwidth'",
    ),
    N + "019-oci-h100-2node-good.txt": holds(
        Outcome.READ, largest=17179869184, busbw=[471.22, 470.75], mean=464.075, ranks=16, node_count=2,
        correctness="right", nccl="2.23.4", cuda="12.6", gpu="NVIDIA H100 80GB HBM3",
    ),
    N + "020-b200-1gpu-per-node-ssh-noise.txt": holds(
        Outcome.READ, largest=1073741824, busbw=[36.67, 45.14], mean=12.5463, ranks=2, node_count=2,
        operation="all-gather", correctness="right",
    ),
    N + "025-nebius-h100-hash-stripped-header-shifted.txt": holds(
        Outcome.READ, largest=8589934592, busbw=[467.54, 468.46], mean=125.499, operation="all-reduce", ranks=16,
        correctness="right",
    ),
    N + "026-gcp-a4-wrong-header-without-hash.txt": also(
        holds(Outcome.PARTLY, largest=8589934592, busbw=[683.52, 679.54], mean=165.789, correctness="right"),
        "sizes below", "is not the mean of the rows shown",
    ),
    N + "028-issue1453-row-torn-by-nccl-info.log": refused("no whole row", "NCCL_DEBUG_FILE"),
    N + "029-issue1184-wrong-237858-proto-simple.txt": data_corruption,
    N + "030-issue294-h100-2node-stops-after-rank-list.txt": stops_after_ranks,
    N + "033-issue340-alltoall-consumer-old.txt": finished_then_hung,
    N + "034-issue318-json-with-mpi-warnings-before.txt": refused("the JSON ends in the middle"),
    N + "037-issue167-ops-loop-sizes-restart.txt": partial_ops,
    "rccl-tests/001-mi300x-2node-oci-no-device-names.txt": also(
        holds(
            Outcome.PARTLY, largest=17179869184, busbw=[358.37, 358.24], mean=None, ranks=16, node_count=2,
            correctness="right", operation="all-reduce",
        ),
        "line 'Avg bus bandwidth'",
    ),
    "rccl-tests/002-mi50-first-collective-fails.txt": first_collective_fails,
    "rccl-tests/004-mi300x-amdsmi-wrapper-banner.txt": holds(
        Outcome.PARTLY, largest=16384, busbw=[0.54, 0.54], mean=None, correctness="right in the rows shown",
        rccl="2.28.3-amdsmi-bdf-topology:360c5c6+",
    ),
}  # fmt: skip


@pytest.mark.skipif(not FOLDER.is_dir(), reason="the public operator files are not beside this clone")
def test_every_public_file_leads_to_its_conclusion():
    assert check_corpus(EXPECTATIONS, "nccl-tests", "rccl-tests") > 0
