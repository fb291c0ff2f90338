"""Why a training job ends: time-outs of collectives, and causes that stand lines before their consequences.

Source: PyTorch `ProcessGroupNCCL.cpp` (messages of the watchdog), NCCL's `NCCL WARN` lines, launchers of torch,
DeepSpeed and Slurm. A cause is what the machine or configuration did; a consequence is what programs say when a
collective did not come back.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

from clusterwright.model.observations import Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.values import quantity

TIMED_OUT: Final = re.compile(
    r"\[Rank (?P<rank>\d{1,9})\] Watchdog caught collective operation timeout: WorkNCCL\(SeqNum=(?P<number>\d{1,18}), "
    r"OpType=(?P<operation>\w+)(?:, NumelIn=(?P<elements>\d+))?(?:, NumelOut=(?P<out>\d+))?, "
    r"Timeout\(ms\)=(?P<limit>\d{1,12})\) ran for (?P<waited>\d{1,12}) milliseconds before timing out"
)
BEGINNING: Final = "Watchdog caught collective operation timeout"
_COMPLETED: Final = re.compile(
    r"(?:Rank (?P<rank>\d{1,9})\] )?"
    r"(?:Timeout at NCCL work|[\w ,()]{0,80}detected by watchdog at work(?: sequence id)?): "
    r"(?P<work>\d{1,18})(?:,| PG status:) last enqueued (?:NCCL )?work: (?P<enqueued>\d{1,18}), "
    r"last completed (?:NCCL )?work: (?P<done>-?\d{1,18})"
)
_OPERATIONS: Final = {
    "ALLREDUCE": "all-reduce", "_ALLGATHER_BASE": "all-gather", "ALLGATHER": "all-gather",
    "ALLGATHER_COALESCED": "all-gather", "REDUCE_SCATTER": "reduce-scatter", "_REDUCE_SCATTER_BASE": "reduce-scatter",
    "BROADCAST": "broadcast", "REDUCE": "reduce", "ALLTOALL": "all-to-all", "ALLTOALL_BASE": "all-to-all",
    "BARRIER": "barrier", "SEND": "send", "RECV": "receive", "COALESCED": "coalesced", "GATHER": "gather",
    "SCATTER": "scatter",
}  # fmt: skip
#: (pattern, code, what it means), the causes first.
_CAUSES: Final = (
    (r"failed to extend /dev/shm|creating shared memory segment|unable to write to file </torch_|Bus error.{0,9}shared",
     "shared-memory-too-small", "the shared memory (/dev/shm) of the container is too small: a setting, no hardware"),
    (r"No space left on device", "no-space", "a file system is full"),
    (r"Disk quota exceeded", "quota", "a quota is used up"),
    (r"uncorrectable ECC error|CUDA error: an uncorrectable", "ecc", "a GPU reports an uncorrectable memory error"),
    (r"NVRM: Xid|\bXid \(PCI:", "xid", "the driver logged an Xid"),
    (r"GPU has fallen off the bus|Unable to determine the device handle", "gpu-lost", "a GPU is gone"),
    (r"NET/IB.{0,300}?(?:status=12|Got completion.{0,100}?error)|IBV_WC_RETRY_EXC_ERR", "fabric-retries",
     "retries on InfiniBand are exceeded: link, cable, or the other side died"),
    (r"NET/IB.{0,300}?(?:Call to ibv_\w+ failed)", "fabric-call", "a call of the InfiniBand library failed"),
    (r"torch\.(?:cuda\.)?OutOfMemoryError|CUDA out of memory|CUDA error: out of memory", "out-of-memory",
     "a GPU ran out of memory"),
    (r"oom-kill|Out of memory: Killed process|OOMKilled|Detected \d+ oom", "host-out-of-memory",
     "the host ran out of memory"),
    (r"CUDA error: (?!out of memory|an uncorrectable)|CUDA failure|Cuda failure", "cuda-error", "a CUDA call failed"),
    (r"DUE TO TIME LIMIT", "time-limit", "the scheduler's time limit ended the job"),
    (r"DUE TO PREEMPTION|CANCELLED AT", "cancelled", "the scheduler ended the job"),
)  # fmt: skip
_CONSEQUENCES: Final = (
    (r"unhandled system error|ncclSystemError", "nccl-system-error", "NCCL: system call or library failed"),
    (r"unhandled cuda error|ncclUnhandledCudaError", "nccl-cuda-error", "NCCL: a CUDA call failed"),
    (r"ncclRemoteError|remote process exited or there was a network error", "nccl-remote-error",
     "NCCL: another process ended or the network failed"),
    (r"ncclInternalError|internal error - please report", "nccl-internal-error", "NCCL: internal error"),
    (r"ncclInvalidUsage", "nccl-invalid-usage", "NCCL: invalid usage"),
    (r"Killing subprocess|sigkill_handler", "processes-killed", "the launcher killed the processes of the job"),
    (r"ChildFailedError|exits with return code = -?[1-9]|Exited with exit code [1-9]", "job-failed",
     "a process of the job ended with an error"),
    (r"taking the entire process down", "process-ended", "the watchdog ended the process"),
    (r"Signal (?:6|7|9|11|15) \(|Segmentation fault|SIGTERM|SIGABRT", "signal", "a signal ended a process"),
)  # fmt: skip
_FORMS: Final = (
    *((re.compile(form), code, meaning, True) for form, code, meaning in _CAUSES),
    *((re.compile(form), code, meaning, False) for form, code, meaning in _CONSEQUENCES),
)
#: One of these must stand in a line before the patterns are tried on it: logs are long.
_MARKS: Final = re.compile(
    r"error|fail|kill|Xid|full|exceed|memory|DUE TO|CANCELLED|No space|Bus|fallen|Signal|SIG|nccl|status=|process down|"
    r"exit|WARN",
    re.IGNORECASE,
)
_NCCL_WARNING: Final = re.compile(r"NCCL WARN (.*)")
#: The time of a line, as Kubernetes and loggers write it, or in the form of glog (month and day without year).
_STAMP: Final = re.compile(
    r"^\[?(?P<iso>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?: ?(?:Z|[+-]\d\d:?\d\d))?)\b"
    r"|\[[EWIF](?P<glog>\d{3,4} \d\d:\d\d:\d\d\.\d{1,9}) "
)
#: Up to this number in its group a collective is one of start-up.
_FIRST: Final = 3
_MOST: Final = 4_096
_MOST_NAMED: Final = 20


class Failures:
    """What went wrong in a run, each kind once with its first line and how often."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[int, str, bool]] = {}
        self._counts: Counter[str] = Counter()
        self._timeouts: set[tuple[str, str]] = set()
        self._waiting: dict[tuple[str, str], set[int]] = {}
        self._completed: set[str] = set()
        self._warnings = 0
        self.killed_line = 0

    @property
    def any(self) -> bool:
        """Whether anything went wrong."""
        return bool(self._seen or self._timeouts or self._completed)

    def take(self, builder: RunBuilder, text: str, number: int) -> None:
        """One more line."""
        if not _MARKS.search(text):
            return
        if BEGINNING in text:
            self._timed_out(builder, text, number)
        if found := _COMPLETED.search(text):
            self._last_completed(builder, found, number)
        for form, code, meaning, cause in _FORMS:
            if form.search(text):
                self._counts[code] += 1
                self._seen.setdefault(code, (number, meaning, cause))
                if code in ("processes-killed", "job-failed", "cancelled", "time-limit"):
                    self.killed_line = self.killed_line or number
                return
        if found := _NCCL_WARNING.search(text):
            self._warnings += 1
            if self._warnings <= 5:
                builder.notice("nccl-warning", found[1].strip()[:200], Weight.WARNING, number)

    def _timed_out(self, builder: RunBuilder, text: str, number: int) -> None:
        found = TIMED_OUT.search(text)
        if found is None:
            if "WorkNCCL(" in text:
                builder.reject(number, text, "a time-out whose line is torn")
            return
        key = (found["rank"], found["number"])
        if key in self._timeouts:
            return
        if len(self._timeouts) >= _MOST:
            builder.missing(f"time-outs beyond the first {_MOST:,}")
            return
        self._timeouts.add(key)
        operation = _OPERATIONS.get(found["operation"], found["operation"])
        self._waiting.setdefault((operation, found["number"]), set()).add(int(found["rank"]))
        subject = (
            ("rank", found["rank"]), ("sequence", found["number"]), ("operation", operation),
            *((("elements", found["elements"]),) if found["elements"] else ()),
        )  # fmt: skip
        builder.observe("collective_timeout", quantity(int(found["waited"]), "ms"), subject, number)
        if stamp := _STAMP.search(text[: found.start()]):
            builder.observe("collective_timeout_at", stamp["iso"] or stamp["glog"], subject, number)
        waited = int(found["waited"]) / 1000
        message = f"rank {found['rank']} waited {waited:g} s for {operation} #{found['number']}"
        message += f" of {found['elements']} elements" if found["elements"] else ""
        if int(found["number"]) <= _FIRST:
            builder.notice("start-up-hang", f"{message}: some rank never came to it", Weight.ERROR, number)
        else:
            builder.notice("collective-timeout", f"{message}: some rank hangs or left", Weight.ERROR, number)

    def _last_completed(self, builder: RunBuilder, found: re.Match[str], number: int) -> None:
        rank = found["rank"] or ""
        if rank in self._completed or len(self._completed) >= _MOST:
            return
        self._completed.add(rank)
        subject = (("rank", rank),) if rank else ()
        builder.observe("last_completed_collective", float(found["done"]), subject, number)
        builder.observe("timed_out_collective", float(found["work"]), subject, number)
        who = f"rank {rank}" if rank else "a rank"
        message = f"{who}: collective {found['work']} timed out, the last completed is {found['done']}"
        builder.notice("desynchronised", f"{message}: hang or ranks out of step", Weight.ERROR, number)

    def _say_absent(self, builder: RunBuilder) -> None:
        """Which ranks are not among those that waited: the one that hangs or left does not wait."""
        for (operation, number), ranks in list(self._waiting.items())[:_MOST_NAMED]:
            absent = sorted(set(range(max(ranks) + 1)) - ranks) if max(ranks) < _MOST else []
            if len(ranks) >= 3 and 0 < len(absent) <= max(1, len(ranks) // 4):
                listed = ", ".join(map(str, absent[:20]))
                message = f"{operation} #{number}: of the ranks 0 to {max(ranks)} only {listed} did not report the "
                message += "time-out: look there first, unless its log is not here"
                builder.notice("rank-did-not-wait", message, Weight.WARNING)
        last = {rank: int(number) for (_, number), ranks in self._waiting.items() for rank in ranks}
        if len(last) > 1 and max(last.values()) != min(last.values()):
            behind, ahead = min(last, key=lambda rank: last[rank]), max(last, key=lambda rank: last[rank])
            message = (
                f"rank {behind} waits in collective #{last[behind]}, rank {ahead} in #{last[ahead]}: if they are of "
            )
            message += "one group, the ranks are out of step and the one behind is where to look"
            builder.notice("ranks-apart", message, Weight.WARNING)

    def finish(self, builder: RunBuilder) -> None:
        """Say every kind once, causes before consequences, with how many lines lie between."""
        self._say_absent(builder)
        causes = sorted((line, code) for code, (line, _, cause) in self._seen.items() if cause)
        for line, code in causes:
            meaning = self._seen[code][1]
            builder.notice(code, f"{meaning} ({self._counts[code]} lines, first at {line})", Weight.ERROR, line)
        for code, (line, meaning, cause) in self._seen.items():
            if cause:
                continue
            earlier = [(first, name) for first, name in causes if first < line]
            why = f"; the cause stands {line - earlier[0][0]} lines before: {earlier[0][1]}" if earlier else ""
            said = f"{meaning} ({self._counts[code]} lines, first at {line}){why}"
            builder.notice(code, said, Weight.ERROR if not earlier else Weight.WARNING, line)
        if self._warnings > 5:
            builder.notice("nccl-warnings", f"{self._warnings} warnings of NCCL", Weight.WARNING)
