"""A run of a tool with what its caller says about it, and readings made from it.

Where no value can be given, the reading has none and says why in words that `why_unusable` repeats: such a reading
keeps every other value of its record from passing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from clusterwright.lib.hostlists import HostlistError, expand
from clusterwright.lib.quantities import KINDS, Quantity, UnitError, is_kind
from clusterwright.model.evidence import Reading
from clusterwright.model.metrics import METRICS
from clusterwright.model.observations import NoValue, Observation, Run, Value

#: Names that are no host's own.
_NO_HOSTS: Final = frozenset({"localhost", "localhost.localdomain", "127.0.0.1", "unknown"})
#: Conditions of a run that every reading repeats, because a requirement may name them.
_REPEATED: Final = ("image", "transport", "duration", "concurrency")


class Facts:
    """One run, ready to be asked.

    Args:
        kind: of the reader, such as `nccl-tests`.
        nodes: hosts that the caller says it was run on; () when the output alone must say it.
        workload: that the caller says it was about, or "".
    """

    def __init__(self, kind: str, run: Run, nodes: Sequence[str] = (), workload: str = "") -> None:
        self.kind = kind
        self.run = run
        self.given = tuple(dict.fromkeys(nodes))
        self.workload = workload
        self._by_name: dict[str, list[Observation]] = {}
        for observation in run.observations:
            self._by_name.setdefault(observation.name, []).append(observation)

    def has(self, *names: str) -> bool:
        """Whether any of these was observed."""
        return any(name in self._by_name for name in names)

    def of(self, *names: str) -> list[Observation]:
        """Observations of these names, in the order of the names."""
        return [o for name in names for o in self._by_name.get(name, ())]

    def value(self, *names: str) -> Value | None:
        """A condition, or else the first observation, of the first of these names that the run has."""
        for name in names:
            found = self.run.condition(name)
            if found is not None:
                return found
            if name in self._by_name:
                return self._by_name[name][0].value
        return None

    def text(self, *names: str) -> str:
        """The same as text, "" where the run does not say or has no value."""
        return plain(self.value(*names))

    def number(self, *names: str) -> float | None:
        """The same as a number without unit, None where it is none."""
        value = self.value(*names)
        return float(value) if isinstance(value, float | int) and not isinstance(value, bool) else None

    def node_names(self) -> tuple[str, ...]:
        """Hosts as the output prints them: of the condition `nodes` or `node`, else of all subjects."""
        listed = self.run.condition("nodes")
        if not isinstance(listed, str):
            listed = self.run.condition("node")
        if isinstance(listed, str):
            found = _split_hosts(listed)
        else:
            found = [dict(o.subject).get("node", "") for o in self.run.observations]
        return tuple(dict.fromkeys(n for n in found if n and n.lower() not in _NO_HOSTS))

    def together(self) -> tuple[str, ...]:
        """Hosts that took part at once: as given where their number fits what is printed, else as printed."""
        printed = self.node_names()
        count = self.number("node_count")
        if count is None and self.run.condition("ranks_listed") is not None:
            printed = ()  # of the rank list only a part is there
        if self.given and (not printed or len(self.given) == len(printed)) and count in (None, float(len(self.given))):
            return tuple(same_host(n, self.given) for n in printed) if self._same(printed) else self.given
        if count is not None and len(printed) != count:
            return ()
        return printed

    def _same(self, printed: Sequence[str]) -> bool:
        return bool(printed) and {short_name(n) for n in printed} == {short_name(n) for n in self.given}

    def per_node(self, *names: str) -> Iterator[tuple[str, list[Observation]]]:
        """(host, its observations of these names); the host is "" when nothing says which it is."""
        alone = self.node_names() if self.run.condition("node") or self.run.condition("nodes") else ()
        default = alone[0] if len(alone) == 1 else ""
        if len(self.given) == 1:
            default = self.given[0]
        groups: dict[str, list[Observation]] = {}
        for observation in self.of(*names):
            printed = dict(observation.subject).get("node", "")
            node = same_host(printed, self.given) if printed else default
            groups.setdefault(node, []).append(observation)
        if len(groups) == 1 and len(self.given) == 1:  # one output of one host, whatever it calls itself
            groups = {self.given[0]: next(iter(groups.values()))}
        yield from groups.items()

    def reading(
        self,
        metric: str,
        value: Value | None,
        conditions: Mapping[str, str] | None = None,
        *,
        nodes: Iterable[str] | None = None,
        why: str = "",
    ) -> Reading:
        """A reading of the metric in its own kind of value, or one without value that says why.

        Args:
            nodes: hosts it holds for; those that took part at once if not given.
            why: the reason when there is no value.
        """
        hosts = self.together() if nodes is None else tuple(n for n in nodes if n)
        said = {n: t for n in _REPEATED if (t := self.text(n))} | dict(conditions or {})
        if self.workload:
            said.setdefault("workload", self.workload)
        shown, why = (None, why) if why else _usable(metric, value)
        return Reading(metric, shown, tuple(said.items()), hosts, why)

    def count(
        self, metric: str, names: Sequence[str], conditions: Mapping[str, str] | None = None
    ) -> Iterator[Reading]:
        """Per host the sum of observed numbers; one without number leaves the host without a count it can pass with."""
        for node, observations in self.per_node(*names):
            numbers = [o.value for o in observations if isinstance(o.value, float | int)]
            lost = [o for o in observations if not isinstance(o.value, float | int)]
            if numbers and (sum(numbers) or not lost):
                yield self.reading(metric, float(sum(numbers)), conditions, nodes=(node,))
            if lost:
                yield self.reading(metric, None, conditions, nodes=(node,), why=why_lost(lost))


def _split_hosts(text: str) -> list[str]:
    """The names of a host list; text that is none is split at its commas."""
    try:
        return list(expand(text))
    except HostlistError:
        return [part.strip() for part in text.split(",")]


def why_lost(observations: Sequence[Observation]) -> str:
    """What stands where values are missing, with how many and where the first is."""
    first = observations[0]
    what = " ".join(f"{key} {value}" for key, value in _told(dict(first.subject)))
    others = f" and {len(observations) - 1} more" if len(observations) > 1 else ""
    return f"no value: {first.name}{f' of {what}' if what else ''} is {plain(first.value) or first.value}{others}"


def _told(subject: Mapping[str, str]) -> list[tuple[str, str]]:
    """The subject as people say it: one name of the device, no times."""
    device = next((key for key in ("gpu", "pci", "uuid") if key in subject), "")
    left_out = {"uuid", "pci", "time", "sample", "node"} - {device}
    return [(key, value) for key, value in subject.items() if key not in left_out]


def plain(value: Value | None) -> str:
    """A value as the text that conditions carry, "" for none."""
    if value is None or isinstance(value, NoValue):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float | int):
        return f"{value:.15g}"
    return str(value)


def short_name(host: str) -> str:
    """The host name without its domain; an address stays whole."""
    first = host.split(".", 1)[0]
    return host if first.isdecimal() else first


def same_host(printed: str, known: Sequence[str]) -> str:
    """The known spelling of a printed host name, or the name itself."""
    if printed in known:
        return printed
    return next((n for n in known if short_name(n) == short_name(printed)), printed)


def _usable(metric: str, value: Value | None) -> tuple[Quantity | float | bool | str | None, str]:
    """(value in the kind of the metric, why there is none)."""
    kind = METRICS[metric].kind
    if value is None:
        return None, "no value: not printed"
    if isinstance(value, NoValue):
        return None, f"no value: {value}"
    if kind in KINDS and isinstance(value, Quantity):
        if is_kind(value, kind):
            return value, ""
        try:
            return _convert(value, kind), ""
        except UnitError as error:
            return None, f"unit unknown: {error}"
    if kind in KINDS:
        return None, f"unit unknown: {value} has no unit"
    return value, ""


def _convert(value: Quantity, kind: str) -> Quantity:
    """Bytes as bits: the only conversion between kinds that loses nothing."""
    if kind == "bit rate" and is_kind(value, "byte rate"):
        return Quantity(value.value * 8, KINDS["bit rate"][0])
    raise UnitError(f"{value} does not measure {kind}")
