from __future__ import annotations

from typing import Any

from clusterwright.ledger.accounting import Ledger
from clusterwright.ledger.attempts import ENTRIES, AttemptRecord, Ending, charge_attempt
from clusterwright.ledger.lines import Account, Entry, Line

US = Account("h100", "training", "nlp", "8")


def attempt(ending: Ending = Ending.COMPLETED, **facts: Any) -> AttemptRecord:
    """Eight GPUs from 0 s to 100 s, running from 10 s on."""
    return AttemptRecord(
        **({"gpus": 8, "admitted_s": 0.0, "started_s": 10.0, "ended_s": 100.0, "ending": ending} | facts)
    )


def charged(record: AttemptRecord) -> dict[Entry, float]:
    """GPU-seconds by entry, without the empty ones."""
    sums = [0] * len(ENTRIES)
    charge_attempt(sums, record)
    return {entry: n / 1000 for entry, n in zip(ENTRIES, sums, strict=True) if n}


def ledger(gpus: int = 16, since_s: float = 0.0) -> Ledger:
    """Free GPUs of one flavor from 0 s on."""
    made = Ledger(since_s)
    made.install(0.0, "h100", gpus)
    made.free(0.0, "h100", gpus)
    return made


def one(line: Line, why: str = "") -> Entry:
    return Entry(line, why)
