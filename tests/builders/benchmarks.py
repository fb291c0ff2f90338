"""Evidence of a collective benchmark, for tests that keep and compare evidence."""

from datetime import UTC, datetime, timedelta

from clusterwright.lib.quantities import parse_quantity
from clusterwright.model.evidence import Evidence, Reading

START = datetime(2026, 11, 1, 8, 0, tzinfo=UTC)


def benchmark(rate="380 GB/s", nodes=("gpu-001", "gpu-002"), *, hours=0, environment=(("driver", "580.65.06"),)):
    return Evidence(
        id="",
        requirements=("busbw",),
        tool="all_reduce_perf",
        readings=(
            Reading("busbw", parse_quantity(rate), (("message_size", "16 GiB"),), tuple(nodes)),
            Reading("collective_errors", 0.0, (), tuple(nodes)),
            Reading("xid_errors", None, (), tuple(nodes), "not run"),
        ),
        basis="measured",
        engine="slurm",
        devices="real",
        nodes=tuple(nodes),
        started=START + timedelta(hours=hours),
        ended=START + timedelta(hours=hours, minutes=10),
        raw_digest="sha256:" + "0" * 64,
        environment=environment,
    )
