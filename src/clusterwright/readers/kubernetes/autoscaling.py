"""Log lines of the cluster autoscaler: what could not be placed, and which node group grows.

Observed (subject group): `group_size_from`, `group_size_to`, `group_size_max`, `nodes_estimated`; (subject group,
resource): `pods_unplaceable` (how many different pods); `pending_reason` as in explaining.

Source: kubernetes/autoscaler cluster-autoscaler/core/scaleup/orchestrator and executor.go.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, TypeVar

from clusterwright.model.observations import Weight
from clusterwright.readers.building import RunBuilder

_PLAN: Final = re.compile(r"\{(?P<group>\S{1,300}) (?P<from>\d{1,6})->(?P<to>\d{1,6}) \(max: (?P<max>\d{1,6})\)\}")
_ESTIMATE: Final = re.compile(r"Estimated (?P<count>\d{1,6}) nodes needed in (?P<group>\S{1,300})")
_SIZE: Final = re.compile(r"Scale-up: setting group (?P<group>\S{1,300}) size to (?P<to>\d{1,6})")
_UNPLACED: Final = re.compile(
    r"Pod (?P<pod>\S{1,300}) can't be scheduled on (?P<group>\S{1,300}?), predicate checking error: "
    r"(?P<why>[^;]{1,300})"
)
_INSUFFICIENT: Final = re.compile(r"Insufficient (?P<resource>[\w./-]+)")
_FAILED: Final = re.compile(
    r"(?:Failed to increase size|scale-up failed|ScaleUpTimedOut|failed to scale up).{0,300}", re.IGNORECASE
)
_SPOKEN: Final = re.compile(
    r"(?:orchestrator|executor|static_autoscaler|scale_up|clusterstate|klogx|binder|waste|compare_nodegroups|node_group)"
    r"\.go:\d+\]"
)
_MOST: Final = 20_000
_Kept = TypeVar("_Kept")


@dataclass(slots=True)
class Scaling:
    """What the lines so far said, in bounded memory."""

    unplaced: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    plans: dict[str, tuple[str, str, str, int]] = field(default_factory=dict)
    estimates: dict[str, tuple[str, int]] = field(default_factory=dict)
    sizes: dict[str, tuple[str, int]] = field(default_factory=dict)
    failures: list[tuple[int, str]] = field(default_factory=list)
    left_out: int = 0

    def take(self, text: str, line: int) -> bool:
        """Take one line; whether it is one of the autoscaler's."""
        spoken = _SPOKEN.search(text) is not None
        if (match := _UNPLACED.search(text)) is not None:
            spoken = True
            why = _INSUFFICIENT.search(match["why"])
            key = match["group"], why["resource"] if why else match["why"].strip()
            pods = self.unplaced.setdefault(key, set()) if len(self.unplaced) < _MOST else None
            if pods is None or len(pods) >= _MOST:
                self.left_out += 1
            else:
                pods.add(match["pod"])
        if "scale-up plan" in text or "triggered scale-up" in text:
            for match in _PLAN.finditer(text[:8192]):
                spoken = True
                self._keep(self.plans, match["group"], (match["from"], match["to"], match["max"], line))
        if (match := _ESTIMATE.search(text)) is not None:
            self._keep(self.estimates, match["group"], (match["count"], line))
        if (match := _SIZE.search(text)) is not None:
            self._keep(self.sizes, match["group"], (match["to"], line))
        if spoken and (match := _FAILED.search(text)) is not None and len(self.failures) < 100:
            self.failures.append((line, match.group()))
        return spoken

    def _keep(self, into: dict[str, _Kept], key: str, value: _Kept) -> None:
        if key in into or len(into) < _MOST:
            into[key] = value
        else:
            self.left_out += 1

    def tell(self, builder: RunBuilder) -> None:
        """Observe what was taken."""
        for (group, what), pods in self.unplaced.items():
            at = (("group", group), ("resource", what))
            builder.observe("pods_unplaceable", float(len(pods)), at)
        for group, (count, line) in self.estimates.items():
            builder.observe("nodes_estimated", float(count), (("group", group),), line)
        for group, (before, after, most, line) in self.plans.items():
            for name, number in (("from", before), ("to", after), ("max", most)):
                builder.observe(f"group_size_{name}", float(number), (("group", group),), line)
            self._tell_plan(group, before, after, most, line, builder)
        for group, (after, line) in self.sizes.items():
            if group not in self.plans:
                builder.observe("group_size_to", float(after), (("group", group),), line)
        for line, text in self.failures:
            builder.notice("scale-up-failed", text, Weight.ERROR, line)
        if self.left_out:
            builder.missing(f"{self.left_out:,} autoscaler lines beyond the first {_MOST:,} groups and pods")

    def _tell_plan(self, group: str, before: str, after: str, most: str, line: int, builder: RunBuilder) -> None:
        kinds = sorted({what for _, what in self.unplaced})
        pods = set().union(*self.unplaced.values()) if self.unplaced else set()
        why = f"{len(pods)} pods wait for {', '.join(kinds[:3])}; " if pods else ""
        builder.notice(
            "scale-up",
            f"{why}the autoscaler grows {group} from {before} to {after} nodes (at most {most}): a decision, no "
            "node yet",
            Weight.INFO,
            line,
        )
