"""What a careful person says about a scrape of the DCGM exporter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import Value, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.dcgm.scrapes import Gpu, Interned, Scrape, SeriesKey, absent_marks, is_pod_name

XID: Final = "DCGM_FI_DEV_XID_ERRORS"
#: Counters that are above 0 only after a fault of the memory or of a link.
FAULTS: Final = {
    "DCGM_FI_DEV_ROW_REMAP_FAILURE": ("row-remap-failure", Weight.ERROR, "could not remap a row of memory"),
    "DCGM_FI_DEV_ROW_REMAP_PENDING": ("row-remap-pending", Weight.WARNING, "waits for a reset to remap a row"),
    "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS": (
        "rows-remapped", Weight.WARNING, "has rows remapped after uncorrectable errors",
    ),
    "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": ("ecc-uncorrected", Weight.ERROR, "counts uncorrected memory errors"),
    "DCGM_FI_DEV_RETIRED_PENDING": ("page-retirement-pending", Weight.WARNING, "waits for a reset to retire pages"),
}  # fmt: skip


def say_what_stands_out(run: RunBuilder, scrape: Scrape, gpus: list[Gpu], values: dict[SeriesKey, Value]) -> None:
    """Add the notices of one scrape to its run."""
    _xids(run, scrape, values)
    _counted_xids(run, scrape, values)
    say_faults(run, values, scrape.interned)
    for (name, meaning), count in absent_marks(dict(values)).items():
        run.notice("value-absent", f"{name}: {count:,} series have no value ({meaning})", Weight.INFO)
    _repeats(run, scrape)
    hosts = {value for _, labels in scrape.series for key, value in labels if key == "Hostname" and is_pod_name(value)}
    for host in sorted(hosts)[:3]:
        run.notice(
            "hostname-is-a-pod",
            f"the label Hostname holds the exporter's pod {host}, not the node: these values belong to no known node",
        )
    if not scrape.types and any(name.startswith("DCGM_") for name in scrape.names()):
        run.notice("types-unknown", "no TYPE lines: which metrics are counters is not said", Weight.INFO)
    _attribution(run, scrape, gpus)


def _xids(run: RunBuilder, scrape: Scrape, values: dict[SeriesKey, Value]) -> None:
    found = [(labels, value) for (name, labels), value in values.items() if name == XID]
    if not found:
        return
    say_what_xid_holds(run)
    for labels, value in found:
        label = dict(labels).get("err_code", "")
        code = f"{value:g}" if isinstance(value, float) and value else label
        if code and code != "0":
            gpu = scrape.gpu(labels)
            where = f"GPU {gpu.index or gpu.uuid}" if gpu else "a GPU that is not named"
            run.notice("xid-reported", f"the last Xid of {where} is {code}", line=scrape.series[(XID, labels)].line)


def _counted_xids(run: RunBuilder, scrape: Scrape, values: dict[SeriesKey, Value]) -> None:
    """Counts within a window, a series for each code (DCGM_EXP_XID_ERRORS_COUNT)."""
    for (name, labels), value in values.items():
        code = dict(labels).get("xid", "0")
        if "_XID_ERRORS_" in name and code != "0" and isinstance(value, float) and value > 0:
            gpu = scrape.gpu(labels)
            where = f"GPU {gpu.index or gpu.uuid}" if gpu else "a GPU that is not named"
            times = "once" if value == 1 else f"{value:,.0f} times"
            run.notice("xid-reported", f"{where} reported Xid {code} {times}", line=scrape.series[(name, labels)].line)


def say_what_xid_holds(run: RunBuilder) -> None:
    """Say that the gauge of Xids is no count."""
    run.notice(
        "xid-is-the-last-code",
        f"{XID} holds the code of the last Xid, not a count; an earlier one is overwritten: only the kernel log "
        "has all of them",
        Weight.INFO,
    )


def say_faults(run: RunBuilder, values: Mapping[SeriesKey, Value], interned: Interned) -> None:
    """Name the GPUs whose counters are above 0 only after a fault."""
    for (name, labels), value in values.items():
        rule = FAULTS.get(name)
        number = value.value if isinstance(value, Quantity) else value
        if rule is not None and isinstance(number, float) and number > 0:
            gpu = interned.gpu(labels)
            code, weight, says = rule
            run.notice(code, f"GPU {gpu.index or gpu.uuid if gpu else '?'} {says} ({number:g})", weight)


def _repeats(run: RunBuilder, scrape: Scrape) -> None:
    repeated = [(key, row) for key, row in scrape.series.items() if row.repeats]
    for (name, _), row in repeated[:20]:
        differs = f", with another value ({row.value}, then {row.other}); the first is kept" if row.other else ""
        run.notice(
            "duplicate-series", f"{name} at line {row.line} stands {row.repeats + 1} times in one scrape{differs}",
            line=row.line,
        )  # fmt: skip
    if len(repeated) > 20:
        run.notice("duplicate-series", f"{len(repeated) - 20:,} more series stand twice in one scrape")
    history = sum(row.history for row in scrape.series.values())
    if history:
        run.notice(
            "several-timestamps", f"{history:,} samples are older than the last of their series and are not shown",
            Weight.INFO,
        )  # fmt: skip


def _attribution(run: RunBuilder, scrape: Scrape, gpus: list[Gpu]) -> None:
    pods: dict[str, set[str]] = {}
    for _, labels in scrape.series:
        found = dict(labels)
        pod = found.get("pod", "") or found.get("pod_name", "") or found.get("exported_pod", "")
        gpu = scrape.gpu(labels)
        if pod and gpu is not None:
            pods.setdefault(gpu.uuid or gpu.index, set()).add(pod)
    if pods and gpus:
        names = sorted(set().union(*pods.values()))
        run.notice(
            "gpu-attribution",
            f"{len(pods)} of {len(gpus)} GPUs belong to a pod ({', '.join(names[:5])}), the other "
            f"{len(gpus) - len(pods)} to none",
            Weight.INFO,
        )
