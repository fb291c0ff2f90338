"""How fast jobs run on a pool, against where their work was measured: as declared, or by ratios of the catalogue.

A declared factor is of a pool, or of a GPU, on one scale on which whatever is not named is 1. Ratios of the catalogue
are those of dense peaks (training, and jobs of a trace, of which nobody records what they are) or of memory bandwidths
(services): nothing that such a limit holds gains or loses more than its ratio, and everything else (input, network,
host) less; so they are assumed, as an upper bound of the change.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from clusterwright.app.simulated_sites import Site
from clusterwright.catalogue.catalogues import Catalogue
from clusterwright.lib.errors import InvalidInput
from clusterwright.lib.figures import Figure, Origin, leaf
from clusterwright.model.hardware import Gpu
from clusterwright.plan.results.clusters import PoolPlan
from clusterwright.plan.services import compute_rate

#: The word that asks for ratios of the catalogue.
CATALOGUE: Final = "catalogue"
#: Precision of the products of jobs of a trace, which no batch system records: 16 bit, which every such GPU has.
_PRECISION: Final = "fp16"
_MOST: Final = 1000.0


@dataclass(frozen=True, slots=True)
class Speeds:
    """What was said about speeds.

    Args:
        factors: by plain name of a pool or GPU.
        catalogue: whether ratios of the catalogue stand in.
        measured_on: GPU on which jobs of a trace that record none were measured, "" when nobody said so.
    """

    factors: Mapping[str, float] = field(default_factory=dict)
    catalogue: bool = False
    measured_on: str = ""

    def __bool__(self) -> bool:
        return bool(self.factors) or self.catalogue


#: Nothing was said about speeds.
EQUAL: Final = Speeds()


def parse_speeds(entries: Iterable[str]) -> Speeds:
    """`NAME=FACTOR` each, or `catalogue`, or `catalogue=GPU`.

    Raises:
        InvalidInput: for one that is not so, and for both at once.
    """
    factors = dict[str, float]()
    catalogue, measured = False, ""
    for entry in entries:
        name, equals, value = (part.strip() for part in entry.partition("="))
        if name == CATALOGUE:
            catalogue, measured = True, value
            continue
        try:
            factor = float(value)
        except ValueError:
            factor = math.nan
        if not (name and equals and 1 / _MOST <= factor <= _MOST):
            raise InvalidInput(
                f"--speed is '{entry}', must be a pool or GPU and how many times as fast jobs run there, such as "
                f"h200=1.3 (from {1 / _MOST:g} to {_MOST:g}), or {CATALOGUE}, or {CATALOGUE}=GPU"
            )
        factors[plain(name)] = factor
    if catalogue and factors:
        raise InvalidInput(f"--speed takes factors or {CATALOGUE}, not both: they are on different scales")
    return Speeds(factors, catalogue, measured)


def plain(word: str) -> str:
    """A name without what people write differently: case, spaces, dashes, the vendor in front."""
    name = "".join(c for c in word.lower() if c.isalnum())
    return name.removeprefix("nvidia").removeprefix("amd") or name


class Paces:
    """Speeds of jobs on the pools of a site.

    Args:
        measured_on: GPU where jobs that record none were measured; "" when it is not known.

    Attributes:
        figures: the ratios that were used, with their origin.
    """

    def __init__(self, site: Site, catalogue: Catalogue, speeds: Speeds, measured_on: str = "") -> None:
        self._pools, self._catalogue, self._speeds = site.pools, catalogue, speeds
        self._sliced = site.slices
        self._measured_on = speeds.measured_on or measured_on
        self._figures = dict[str, Figure]()
        self._equal = dict[str, None]()

    def of(
        self, measured: str, pools: tuple[str, ...] = (), *, serving: bool = False, precision: str = _PRECISION
    ) -> tuple[tuple[str, float], ...]:
        """(pool, speed there ÷ speed where it was measured) of every pool where it is not 1.

        Args:
            measured: pool, or GPU as the source calls it; several with `|` between, "" where it is not recorded.
            pools: that the job may get, none for any: of others it is not said that equal speed is assumed, unless
                somebody asked for speeds.
            serving: whether memory bandwidth is the limit in place of matrix products.
        """
        found = []
        for pool in self._pools:
            ratio = self._ratio(measured, pool, serving, precision)
            if ratio is None and (self._speeds or not pools or pool.name in pools):
                self._equal[measured or self._measured_on or "a GPU that the trace does not record"] = None
            ratio = 1.0 if ratio is None else ratio
            if ratio != 1:
                found.append((pool.name, ratio))
        return tuple(found)

    @property
    def figures(self) -> tuple[Figure, ...]:
        """Ratios that were used; where GPUs differ and no ratio is known, that equal speed is assumed."""
        equal = sorted(self._equal)
        if not equal:
            return tuple(self._figures.values())
        basis = (
            f"jobs measured on {', '.join(equal[:5])} run as fast on every pool, because nobody said how fast; "
            "--speed POOL=FACTOR says it, --speed catalogue takes ratios of peaks"
        )
        return (*self._figures.values(), leaf("speeds.equal", 1.0, "×", Origin.ASSUMED, basis))

    def check(self, known: Iterable[str]) -> None:
        """Refuse factors of names that are neither a pool, nor a GPU of the catalogue or of these words.

        Raises:
            InvalidInput: with the pools that there are.
        """
        names = [plain(w) for w in known] + [plain(p.name) for p in self._pools] + [plain(p.gpu) for p in self._pools]
        names += [plain(gpu.name) for gpu in self._catalogue.gpus]
        names = [name for name in names if name]
        for word in self._speeds.factors:
            if not any(word in name or name in word for name in names):
                pools = ", ".join(f"{p.name} ({p.gpu})" if p.gpu else p.name for p in self._pools)
                raise InvalidInput(f"--speed {word}: no pool, no GPU of the catalogue and of the trace; pools: {pools}")
        if self._speeds.measured_on and self._gpu(self._speeds.measured_on) is None:
            self._catalogue.gpu(self._speeds.measured_on)

    def pool_of(self, word: str) -> PoolPlan | None:
        """The pool that a word of a trace names, by its own name or that of its GPU; None when it is none."""
        name = plain(word)
        if not name:
            return None
        named = next((p for p in self._pools if plain(p.name) == name), None)
        if named is not None:
            return named
        whole = [p for p in self._pools if p.gpu and p.name not in self._sliced]
        found = next((p for p in whole if name in plain(p.gpu) or plain(p.gpu) in name), None)
        gpu = self._catalogue.find_gpu(word) if found is None else None
        return found if gpu is None else next((p for p in whole if p.gpu == gpu.name), None)

    def _ratio(self, measured: str, pool: PoolPlan, serving: bool, precision: str) -> float | None:
        """The speed of a job on a pool; None where that is another GPU, and nobody knows."""
        if self._speeds.factors:
            here, there = self._declared(measured), self._factor(pool)
            if here != there:
                said = f"--speed: {there:g} here" + (
                    f" ÷ {here:g} on {measured}, where it was measured" if here != 1 else ""
                )
                self._note(measured, pool, there / here, Origin.DECLARED, said)
            return there / here
        origin = self.pool_of(measured)
        same = origin is pool or (origin is not None and bool(origin.gpu) and origin.gpu == pool.gpu)
        if same or (len(self._pools) == 1 and not measured and not self._measured_on):
            return 1.0
        word = measured or self._measured_on
        ratio = self._of_catalogue(word, pool, serving, precision) if self._speeds.catalogue else None
        return 1.0 if ratio is None and self._alike(word, pool) else ratio

    def _alike(self, word: str, pool: PoolPlan) -> bool:
        """Whether a word and a pool name one GPU; without a word, whether all pools have the same."""
        if word:
            gpu = self._gpu(word)
            return gpu is not None and gpu.name == pool.gpu
        return len({p.gpu or p.name for p in self._pools}) == 1

    def _declared(self, measured: str) -> float:
        words = {self._of_word(word) for word in measured.split("|") if word}
        return words.pop() if len(words) == 1 else 1.0

    def _of_word(self, word: str) -> float:
        name = plain(word)
        if name in self._speeds.factors:
            return self._speeds.factors[name]
        pool = self.pool_of(word)
        return self._named(name) if pool is None else self._factor(pool)

    def _factor(self, pool: PoolPlan) -> float:
        named = self._speeds.factors.get(plain(pool.name))
        return self._named(plain(pool.gpu)) if named is None else named

    def _named(self, gpu: str) -> float:
        return next((f for key, f in self._speeds.factors.items() if gpu and (key in gpu or gpu in key)), 1.0)

    def _gpu(self, word: str) -> Gpu | None:
        pool = self.pool_of(word)
        name = pool.gpu if pool is not None and pool.gpu else word
        found = self._catalogue.find_gpu(name) if name else None
        if found is not None or not plain(name):
            return found
        near = [gpu for gpu in self._catalogue.gpus if plain(name) in plain(gpu.name)]
        return near[0] if len(near) == 1 else None

    def _of_catalogue(self, word: str, pool: PoolPlan, serving: bool, precision: str) -> float | None:
        here, there = self._gpu(word) if word else None, self._catalogue.find_gpu(pool.gpu) if pool.gpu else None
        if here is None or there is None:
            return None
        if here.name == there.name:
            return 1.0
        if serving:
            ratio, what = (
                float(there.bandwidth.value / here.bandwidth.value),
                "memory bandwidths, as the limit of serving",
            )
        else:
            ours, theirs = compute_rate(here, precision), compute_rate(there, precision)
            if ours is None or theirs is None:
                return None
            ratio, what = float(theirs[1].value / ours[1].value), f"dense {theirs[0]} peaks, as the limit of training"
            if ours[0] != theirs[0]:
                what += f" ({ours[0]} on {here.name})"
        said = f"ratio of {what}: {there.name} ÷ {here.name}; an upper bound of the change, not what jobs gain or lose"
        self._note(word, pool, ratio, Origin.ASSUMED, said)
        return ratio

    def _note(self, measured: str, pool: PoolPlan, ratio: float, origin: Origin, basis: str) -> None:
        name = f"speeds.{pool.name}" + (f".from.{plain(measured)}" if measured else "")
        self._figures[name if origin is Origin.DECLARED else f"{name}.{ratio:.3g}"] = leaf(
            name, ratio, "×", origin, basis
        )
