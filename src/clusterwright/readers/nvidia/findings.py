"""What a careful person says about the values of a GPU, whichever form of the tool printed them.

Sources: NVIDIA Dynamic Page Retirement (RMA policy: 60 or more retired pages); NVIDIA GPU Memory Error Management
(row remapping: pending takes effect at the next reset, a failure is cause for replacement); NVML reference for the
clock event reasons and the recovery action.
"""

from __future__ import annotations

from typing import Final

from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import Labels, Observation, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.nvidia.devices import name_of

#: Retired pages from which a board qualifies for replacement.
RETIRED_PAGES_FOR_RMA: Final = 60

_DEVICE: Final = ("node", "gpu", "uuid", "pci")
_REASONS: Final = {
    "hw thermal slowdown": Weight.ERROR,
    "hw power brake slowdown": Weight.ERROR,
    "hw slowdown": Weight.ERROR,
    "sw thermal slowdown": Weight.WARNING,
    "sw power cap": Weight.INFO,
}
#: Names of products whose ECC is meant to be on.
_DATA_CENTRE: Final = ("A100", "A800", "H100", "H200", "H800", "H20", "B200", "B300", "GB200", "GB300", "V100", "A30",
                       "A40", "L40", "P100", "T4", "GH200")  # fmt: skip


class Faults:
    """Findings over the observations of one run; `say` writes them."""

    def __init__(self, builder: RunBuilder) -> None:
        self._builder = builder
        self._devices: dict[Labels, list[Observation]] = {}
        for observation in builder.observations:
            device = tuple(pair for pair in observation.subject if pair[0] in _DEVICE)
            self._devices.setdefault(device, []).append(observation)

        self._widths = {o.value for o in builder.observations if o.name == "pcie_width" and isinstance(o.value, float)}

    def say(self) -> None:
        """One notice for each fault of each device."""
        for device, observations in self._devices.items():
            name = name_of(device)
            self._pages(name, observations)
            self._rows(name, observations)
            self._ecc(name, observations)
            self._heat(name, observations)
            self._links(name, observations)
            self._states(name, observations)

    def _notice(self, code: str, message: str, weight: Weight, at: Observation) -> None:
        self._builder.notice(code, message, weight, at.line)

    def _pages(self, name: str, observations: list[Observation]) -> None:
        latest = {dict(o.subject).get("cause", ""): o for o in observations if o.name == "retired_pages"}
        counts = {cause: o.value for cause, o in latest.items() if isinstance(o.value, float)}
        total = sum(counts.values())
        if total >= RETIRED_PAGES_FOR_RMA:
            parts = " + ".join(f"{count:.0f} {cause}" for cause, count in counts.items())
            said = f"{total:.0f} retired pages ({parts}); from {RETIRED_PAGES_FOR_RMA} on the board qualifies for RMA"
            self._notice("retired-pages-rma", f"{name}: {said}", Weight.ERROR, next(iter(latest.values())))
        for o in _true(observations, "retired_pages_pending"):
            self._notice("retirement-pending", f"{name}: a page retirement is pending; reset the GPU or reboot",
                         Weight.WARNING, o)  # fmt: skip

    def _rows(self, name: str, observations: list[Observation]) -> None:
        for o in _true(observations, "remap_pending"):
            self._notice("remap-pending", f"{name}: a row remapping is pending; reset the GPU", Weight.WARNING, o)
        for o in _true(observations, "remap_failure"):
            self._notice("remap-failure", f"{name}: a row remapping failed; replace the GPU", Weight.ERROR, o)
        for o in observations:
            if o.name == "remap_banks" and ("availability", "none") in o.subject and _above(o, 0):
                self._notice("remap-exhausted", f"{name}: {o.value:.0f} memory banks have no spare row left",
                             Weight.WARNING, o)  # fmt: skip
            if o.name == "remapped_rows" and ("cause", "uncorrectable") in o.subject and _above(o, 0):
                self._notice("rows-remapped", f"{name}: {o.value:.0f} rows remapped after uncorrectable errors",
                             Weight.INFO, o)  # fmt: skip

    def _ecc(self, name: str, observations: list[Observation]) -> None:
        for o in observations:
            if o.name == "ecc_uncorrected" and _above(o, 0):
                subject = dict(o.subject)
                scope = subject.get("scope", "")
                where = f" in {subject['location']}" if "location" in subject else ""
                weight = Weight.ERROR if scope == "volatile" else Weight.WARNING
                self._notice(
                    "ecc-uncorrected", f"{name}: {o.value:.0f} uncorrected ECC errors{where} ({scope})", weight, o
                )
        for flag, what in (("sram_threshold_exceeded", "the SRAM error threshold is exceeded; replace the GPU"),
                           ("unrepairable_memory", "unrepairable memory"),):  # fmt: skip
            for o in _true(observations, flag):
                self._notice(flag.replace("_", "-"), f"{name}: {what}", Weight.ERROR, o)
        for flag in ("channel_repair_pending", "tpc_repair_pending"):
            for o in _true(observations, flag):
                self._notice("repair-pending", f"{name}: {flag.replace('_', ' ')}; reset the GPU", Weight.WARNING, o)
        product = next((o.value for o in observations if o.name == "gpu" and isinstance(o.value, str)), "")
        words = product.replace("-", " ").split()
        for o in observations:
            if o.name == "ecc_mode" and o.value is False and any(word in _DATA_CENTRE for word in words):
                self._notice("ecc-disabled", f"{name}: ECC is off on {product}; its error counters say nothing",
                             Weight.WARNING, o)  # fmt: skip

    def _heat(self, name: str, observations: list[Observation]) -> None:
        for o in observations:
            weight = _REASONS.get(o.value) if o.name == "throttle" and isinstance(o.value, str) else None
            if weight is not None:
                self._notice("throttled", f"{name}: clocks are held down by {o.value}", weight, o)
        last = {o.name: o for o in observations}
        margin, limit = last.get("temperature_margin"), last.get("temperature_margin_slowdown")
        if margin is not None and isinstance(margin.value, Quantity):
            floor = limit.value.value if limit is not None and isinstance(limit.value, Quantity) else 0.0
            if margin.value.value <= floor:
                said = f"{name}: {margin.value} to the thermal limit (slowdown at {floor:g} °C)"
                self._notice("thermal-margin", said, Weight.ERROR, margin)
        now, slow = last.get("temperature"), last.get("temperature_slowdown")
        if (
            now and slow and isinstance(now.value, Quantity) and isinstance(slow.value, Quantity)
            and now.value.powers == slow.value.powers and now.value.value >= slow.value.value
        ):  # fmt: skip
            said = f"{name}: {now.value} reaches the slowdown temperature {slow.value}"
            self._notice("thermal-margin", said, Weight.ERROR, now)

    def _links(self, name: str, observations: list[Observation]) -> None:
        last = {o.name: o.value for o in observations}
        now, most = last.get("pcie_width"), last.get("pcie_width_max")
        if isinstance(now, float) and isinstance(most, float) and now < most:
            alone = now < max(self._widths, default=now)
            at = next(o for o in observations if o.name == "pcie_width")
            said = f"{name}: PCIe link is x{now:.0f} of x{most:.0f}" + ("; other GPUs have more" if alone else "")
            self._notice("pcie-narrow", said, Weight.WARNING if alone else Weight.INFO, at)

    def _states(self, name: str, observations: list[Observation]) -> None:
        for o in observations:
            if not isinstance(o.value, str):
                continue
            said = o.value.lower()
            if o.name == "fabric_state" and said in ("in progress", "not started"):
                why = f"{name}: fabric state is {o.value}; CUDA fails with error 802 until it completes"
                self._notice("fabric-not-ready", why, Weight.ERROR, o)
            elif o.name == "fabric_status" and said != "success":
                self._notice("fabric-failed", f"{name}: fabric status is {o.value}", Weight.ERROR, o)
            elif o.name == "fabric_health" and said in ("unhealthy", "degraded", "limited capacity", "true", "yes"):
                what = dict(o.subject).get("check", "health")
                self._notice("fabric-unhealthy", f"{name}: fabric {what} is {o.value}", Weight.ERROR, o)
            elif o.name == "recovery_action" and said != "none":
                self._notice("recovery-action", f"{name}: the driver asks for recovery: {o.value}", Weight.ERROR, o)


def _true(observations: list[Observation], name: str) -> list[Observation]:
    return [o for o in observations if o.name == name and o.value is True]


def _above(observation: Observation, limit: float) -> bool:
    return isinstance(observation.value, float) and observation.value > limit
