"""What a kind of output can prove, and what people take it for although it does not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from clusterwright.judging.deriving import families_of


@dataclass(frozen=True, slots=True)
class Meaning:
    """In words for a ticket."""

    proves: str
    does_not: str


_MEANINGS: Final[dict[str, Meaning]] = {
    "collectives": Meaning(
        "bus bandwidth of one collective at the printed sizes over these hosts, and, with validation on, its results",
        "other sizes or hosts, storage, the latency of a service, or the same in another image",
    ),
    "traffic": Meaning(
        "bandwidth or latency of RDMA between two hosts over one device",
        "the fabric under load from all hosts at once, other rails, or collectives",
    ),
    "storage": Meaning(
        "rate and latency of this load, block size and number of clients",
        "the rate with other numbers of clients, cold loads of a real payload, or checkpoints of a real job",
    ),
    "support": Meaning(
        "which direct paths between storage and GPUs exist, and whether a copy may stand in for them",
        "any rate",
    ),
    "serving": Meaning(
        "latency and rate of one model at this load",
        "other loads or lengths, behaviour after a failure, or sustained operation beyond the printed duration",
    ),
    "capacity": Meaning(
        "room for tokens of one started server",
        "that a request of full length is answered, or any latency",
    ),
    "training": Meaning(
        "step time and useful work of one job, and which checkpoints were finished",
        "that a checkpoint can be restored, recovery from a failure, or convergence",
    ),
    "listing": Meaning(
        "which checkpoints of a directory have all parts at their full size", "that one of them can be restored"
    ),
    "gpus": Meaning(
        "devices, error counters, repairs and clocks of one host at one moment",
        "health under load, or bandwidth",
    ),
    "exports": Meaning(
        "the counters of the exporter at one moment",
        "events between two scrapes; it keeps the last Xid only",
    ),
    "diagnosis": Meaning(
        "the tests that ran, on the GPUs that are listed",
        "tests that were skipped, deeper levels, other hosts, or the network",
    ),
    "watches": Meaning(
        "failures that DCGM's background watches saw",
        "health: nothing was loaded",
    ),
    "counters": Meaning(
        "with a second reading of the same ports, errors per hour in between",
        "anything by itself: counters run since they were cleared",
    ),
    "kernel": Meaning(
        "faults that the kernel logged on one host in the time that the log covers",
        "health before or after that time; a short or filtered log proves no absence",
    ),
    "switches": Meaning(
        "errors of NVSwitch that the fabric manager logged",
        "their absence; the kernel log has them all",
    ),
    "bus": Meaning("GPUs that answer on PCIe at one moment", "that they work, or their links to each other"),
    "checkpoints": Meaning(
        "time to write one checkpoint of this size from one node, and to restore it",
        "checkpoints of the real job, or from all nodes at once",
    ),
    "placement": Meaning(
        "that the ranks of one job met, each on a GPU of its own, and the image that the job names",
        "that the ranks are where the plan wants them, or how fast they are",
    ),
    "ports": Meaning(
        "state and rate of the ports of one host at one moment",
        "bandwidth, error-free links, or which switch they lead to",
    ),
    "schedulers": Meaning(
        "what the scheduler offers and which nodes take jobs",
        "that a job gets these devices, or that they work",
    ),
}
_NOTHING: Final = Meaning("no claim by itself; it describes", "health, bandwidth or behaviour under load")


def meaning_of(kind: str) -> Meaning:
    """What outputs of this kind prove."""
    families = families_of(kind)
    return _MEANINGS[families[0].name] if families else _NOTHING
