"""One record of a batch system's accounting as plain values: what `accounting` makes jobs of."""

from __future__ import annotations

from datetime import datetime
from math import nan
from typing import Final, NamedTuple

from clusterwright.traces.tables import UNKNOWN

#: GPUs of a record whose trackable resources name none: 0 or unknown, which the other records tell.
UNNAMED: Final = -2


class Record(NamedTuple):
    """An allocation, or a step inside one.

    Args:
        line: in the source, 0 where it has none.
        text: the record, for samples.
        job: its id, without the step: `12`, `12_3`, `12+1`, `12_[4-9]`.
        cluster: of federations and of accounting for several clusters; "" for one.
        same: equal for records that are equal in every field.
        wrong: what makes it unfit, "" if nothing.
        state: one of Slurm's words; None where it is unknown.
        submit, eligible, start, end: without a zone in the cluster's local time; None where there is none.
        elapsed_s: NaN where not recorded.
        gpus: `UNNAMED` where its resources are recorded without GPUs, -1 where they are not recorded.
        cut: the list of its resources is cut or unreadable.
        slices: it asks for MIG instances.
        unplaced: it was given no node.
        nodes: -1 where not recorded.
        limit_s: infinite for none, NaN where not recorded.
        limit: the word of the source where that is no duration, such as `Partition_Limit`.
        restarts: how often it was requeued, as far as the source counts.
    """

    line: int
    text: str
    job: str
    step: str = ""
    cluster: str = ""
    same: int = 0
    wrong: str = ""
    state: str | None = None
    submit: datetime | None = None
    eligible: datetime | None = None
    start: datetime | None = None
    end: datetime | None = None
    elapsed_s: float = nan
    gpus: int = UNKNOWN
    cut: bool = False
    slices: bool = False
    flavor: str = ""
    unplaced: bool = False
    nodes: int = UNKNOWN
    cpus: float = nan
    memory_gib: float = nan
    limit_s: float = nan
    limit: str = ""
    priority: float = nan
    restarts: int = 0
    queue: str = ""
    account: str = ""
    user: str = ""
    qos: str = ""
