"""The catalogue as a value: look-ups by name or alias, each kind built when it is first asked for.

Building the types of everything costs more than most commands need, so raw fields are kept until a kind is used, and
types that few commands use are imported when one asks for them. The shipped data is validated whole by the tests; a
user's files are validated whole when they are parsed.
"""

from __future__ import annotations

import datetime
import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from clusterwright.catalogue.building import build
from clusterwright.lib.errors import InvalidInput, Place, Problem
from clusterwright.model.calibrations import Calibration
from clusterwright.model.decoders import Decoder
from clusterwright.model.entries import Entry
from clusterwright.model.hardware import Gpu, Nic, NodeShape
from clusterwright.model.prices import ApiPrice, Price, PriceKind

if TYPE_CHECKING:
    from clusterwright.model.failures import FailureRates
    from clusterwright.model.language_models import LanguageModel
    from clusterwright.model.support import Support

#: What an entry of a kind is called in messages.
_WORDS: Final = {"gpus": "GPU", "shapes": "node shape", "nics": "NIC", "models": "model", "failures": "failure rates"}

E = TypeVar("E", bound=Entry)
RawFields = Mapping[str, Mapping[str, Mapping[str, Any]]]


@dataclass(frozen=True)
class Catalogue:
    """Everything known, by kind and name.

    Args:
        raw: kind → name → fields as text, the form of the data files.
        files: the user's files that extended or overrode the shipped data, in order.
    """

    raw: RawFields
    files: tuple[str, ...] = ()
    _built: dict[str, dict[str, Entry]] = field(default_factory=dict, compare=False, repr=False)
    _aliases: dict[str, dict[str, str]] = field(default_factory=dict, compare=False, repr=False)
    _decoders: dict[str, Decoder] = field(default_factory=dict, compare=False, repr=False)

    def gpu(self, name: str, place: Place | None = None) -> Gpu:
        """The GPU of that name or alias; InvalidInput with the nearest names otherwise."""
        return self._look_up("gpus", Gpu, name, place)

    def shape(self, name: str, place: Place | None = None) -> NodeShape:
        """The node shape of that name or alias; InvalidInput with the nearest names otherwise."""
        return self._look_up("shapes", NodeShape, name, place)

    def nic(self, name: str, place: Place | None = None) -> Nic:
        """The NIC of that name or alias; InvalidInput with the nearest names otherwise."""
        return self._look_up("nics", Nic, name, place)

    def model(self, name: str, place: Place | None = None) -> LanguageModel:
        """The model of that Hugging Face id or alias; InvalidInput with the nearest names otherwise."""
        return self._look_up("models", _language_model(), name, place)

    def find_gpu(self, name: str) -> Gpu | None:
        """The GPU of that name or alias, None if unknown."""
        return self._find("gpus", Gpu, name)

    def find_shape(self, name: str) -> NodeShape | None:
        """The node shape of that name or alias, None if unknown."""
        return self._find("shapes", NodeShape, name)

    def find_nic(self, name: str) -> Nic | None:
        """The NIC of that name or alias, None if unknown."""
        return self._find("nics", Nic, name)

    def find_model(self, name: str) -> LanguageModel | None:
        """The model of that Hugging Face id or alias, None if unknown."""
        return self._find("models", _language_model(), name)

    def find_decoder(self, name: str) -> Decoder | None:
        """The model of that id or alias layer by layer; None if unknown, or if the entry has no `config`.

        Only the facts of that one model are read; the result is kept.

        Raises:
            UnknownArchitecture: a user's entry whose config cannot be counted exactly.
        """
        own = self._table("models").get(fold(name))
        config = None if own is None else self.raw["models"][own].get("config")
        if own is None or config is None:
            return None
        if own not in self._decoders:
            # Most commands need no config counted: these modules are read when one is.
            from clusterwright.model.huggingface import parse_config
            from clusterwright.model.huggingface.facts import typed

            self._decoders[own] = parse_config(typed(config), name=own)
        return self._decoders[own]

    @property
    def gpus(self) -> tuple[Gpu, ...]:
        """Every GPU, in the order of the files."""
        return self._all("gpus", Gpu)

    @property
    def shapes(self) -> tuple[NodeShape, ...]:
        """Every node shape, in the order of the files."""
        return self._all("shapes", NodeShape)

    @property
    def nics(self) -> tuple[Nic, ...]:
        """Every NIC, in the order of the files."""
        return self._all("nics", Nic)

    @property
    def models(self) -> tuple[LanguageModel, ...]:
        """Every model, in the order of the files."""
        return self._all("models", _language_model())

    def prices(self, kind: PriceKind | None = None, item: str | None = None) -> tuple[Price, ...]:
        """Prices of a kind and of an item (catalogue name), newest first; all where None is given."""
        names = [
            name
            for name, own in self.raw.get("prices", {}).items()
            if kind in (None, own.get("kind")) and item in (None, own.get("item"))
        ]
        chosen = [self._entry("prices", Price, name) for name in names]
        return tuple(sorted(chosen, key=lambda p: p.date, reverse=True))

    def api_prices(self, model: str | None = None) -> tuple[ApiPrice, ...]:
        """Model-API prices of a model (its id or an alias), newest first; all where None is given."""
        known = self.find_model(model) if model is not None else None
        wanted = known.name if known else model
        chosen = [p for p in self._all("api_prices", ApiPrice) if wanted in (None, p.model)]
        return tuple(sorted(chosen, key=lambda p: p.date, reverse=True))

    def failures(self, name: str, place: Place | None = None) -> FailureRates:
        """The failure rates of that system or alias; InvalidInput with the nearest names otherwise."""
        from clusterwright.model.failures import FailureRates

        return self._look_up("failures", FailureRates, name, place)

    def calibrations(self) -> tuple[Calibration, ...]:
        """Constants of serving engines, shipped ones first."""
        return self._all("calibrations", Calibration)

    @cached_property
    def support(self) -> Support:
        """The software support matrix."""
        from clusterwright.model import support as kinds

        return kinds.Support(
            driver_branches=self._all("support.driver_branches", kinds.DriverBranch),
            fabric_manager=self._all("support.fabric_manager", kinds.FabricManagerRule),
            firmware=self._all("support.firmware", kinds.FirmwareRule),
            operators=self._all("support.operators", kinds.OperatorSupport),
            containerd=self._all("support.containerd", kinds.ContainerdRule),
            skew=self._all("support.skew", kinds.SkewRule),
            kubernetes=self._all("support.kubernetes", kinds.KubernetesRelease),
            cuda=self._all("support.cuda", kinds.CudaDriver),
            nccl=self._all("support.nccl", kinds.NcclCuda),
            engines=self._all("support.engines", kinds.EngineFormat),
        )

    def entries(self) -> Iterable[tuple[str, Entry]]:
        """(kind, entry) of everything; builds all kinds."""
        from clusterwright.catalogue.kinds import TYPES

        for kind, entry_type in TYPES.items():
            for entry in self._all(kind, entry_type):
                yield kind, entry

    def names(self, kind: str) -> tuple[str, ...]:
        """Names of a kind's entries, without aliases."""
        return tuple(self.raw.get(kind, {}))

    def suggest(self, kind: str, name: str) -> tuple[str, ...]:
        """Up to three entry names close to a wrong one, nearest first."""
        table = self._table(kind)
        wanted = fold(name)
        near = [key for key in table if len(wanted) > 2 and (wanted in key or key in wanted) and len(key) > 2]
        near += difflib.get_close_matches(wanted, table, n=6, cutoff=0.6)
        return tuple(dict.fromkeys(table[key] for key in near))[:3]

    def _look_up(self, kind: str, entry_type: type[E], name: str, place: Place | None) -> E:
        found = self._find(kind, entry_type, name)
        if found is not None:
            return found
        near = self.suggest(kind, name)
        hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(sorted(self.names(kind)))}"
        word = _WORDS[kind]
        raise InvalidInput(Problem(place or Place("catalogue"), "", f"no {word} '{name}' in the catalogue", hint))

    def _find(self, kind: str, entry_type: type[E], name: str) -> E | None:
        own = self._table(kind).get(fold(name))
        return None if own is None else self._entry(kind, entry_type, own)

    def _table(self, kind: str) -> dict[str, str]:
        if kind not in self._aliases:
            entries = self.raw.get(kind, {})
            table = {fold(alias): name for name, fields in entries.items() for alias in fields.get("aliases", ())}
            table |= {fold(name): name for name in entries}
            self._aliases[kind] = (_without_owner(entries) | table) if kind == "models" else table
        return self._aliases[kind]

    def _entry(self, kind: str, entry_type: type[E], name: str) -> E:
        built = self._built.setdefault(kind, {})
        if name not in built:
            built[name] = build(entry_type, {"name": name, **self.raw[kind][name]})
        return cast(E, built[name])

    def _all(self, kind: str, entry_type: type[E]) -> tuple[E, ...]:
        return tuple(self._entry(kind, entry_type, name) for name in self.raw.get(kind, {}))


def _language_model() -> type[LanguageModel]:
    from clusterwright.model.language_models import LanguageModel

    return LanguageModel


def _without_owner(entries: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Folded ids of models without the part before the slash, where only one entry has them."""
    owners: dict[str, set[str]] = {}
    for name, fields in entries.items():
        for known in (name, *fields.get("aliases", ())):
            owners.setdefault(fold(known.rpartition("/")[2]), set()).add(name)
    return {short: next(iter(names)) for short, names in owners.items() if len(names) == 1}


def fold(name: str) -> str:
    """A name as look-ups compare it: lower case, letters, digits and dots only.

    `NVIDIA H100 80GB HBM3`, `nvidia-h100-80gb-hbm3` and the label of GPU feature discovery are one name.
    """
    return re.sub(r"[^a-z0-9.]+", "", name.lower())


def stale(entry: Entry, today: datetime.date, shelf_life: datetime.timedelta) -> bool:
    """Whether an entry was looked up longer than `shelf_life` before `today`."""
    return today - entry.date > shelf_life
