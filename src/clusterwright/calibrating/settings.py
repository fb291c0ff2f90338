"""Measurements → columns that the serving formulas work on, and their predictions for given constants."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from clusterwright.calibrating.measurements import Left, Measured, Measurement, Worker
from clusterwright.model.decoders import Decoder
from clusterwright.physics.layouts import Layout
from clusterwright.physics.serving.closed import Latencies, Load, Workers, aggregated, disaggregated
from clusterwright.physics.serving.constants import Array, ConstantColumns
from clusterwright.physics.serving.sides import Device, Side, SideColumns, side, stack
from clusterwright.physics.serving.traffic import Traffic, traffic

FindDecoder = Callable[[str], Decoder | None]
FindDevice = Callable[[str], Device | None]


@dataclass(frozen=True)
class Settings:
    """Rows as columns. Rows with prefill workers of their own come last.

    Args:
        apart: index of the first disaggregated row.
    """

    rows: tuple[Measurement, ...]
    apart: int
    decode: SideColumns | None
    prefill: SideColumns | None
    workers: Workers
    load: Load

    def chosen(self, mask: Array) -> Settings:
        """The rows where `mask` is not 0."""
        rows, split = np.flatnonzero(mask), np.flatnonzero(mask[self.apart :])
        return Settings(
            tuple(self.rows[i] for i in rows),
            int(np.count_nonzero(mask[: self.apart])),
            self.decode.take(rows) if self.decode is not None and len(rows) else None,
            self.prefill.take(split) if self.prefill is not None and len(split) else None,
            Workers(self.workers.prefill[split], self.workers.decode[split], self.workers.token_s[split]),
            self.load.take(rows),
        )

    @property
    def ttft_s(self) -> Array:
        """Measured, nan where not."""
        return np.array([np.nan if r.ttft_s is None else r.ttft_s for r in self.rows])

    @property
    def tpot_s(self) -> Array:
        """Measured, nan where not."""
        return np.array([np.nan if r.tpot_s is None else r.tpot_s for r in self.rows])


def settings_of(measured: Measured, decoder: FindDecoder, device: FindDevice) -> tuple[Settings, tuple[Left, ...]]:
    """Columns of all rows whose model and GPU are known; the others with the reason."""
    left = list(measured.left)
    models: dict[tuple[str, str | None, str], Traffic] = {}
    sides: dict[tuple[object, ...], Side] = {}
    kept: list[tuple[Measurement, Side, Side | None, Device]] = []
    for row in measured.rows:
        key = (row.model, row.weights, row.cache)
        if key not in models:
            found = decoder(row.model)
            if found is None:
                left.append(Left(row.id, f"model {row.model} is not known layer by layer"))
                continue
            models[key] = traffic(found, weights=row.weights, cache=row.cache)
        gpu = device(row.gpu)
        if gpu is None:
            left.append(Left(row.id, f"GPU {row.gpu} is not in the catalogue"))
            continue
        try:
            one, two = (
                None if w is None else _side(sides, key, models[key], w, row.gpu, gpu)
                for w in (row.decode, row.prefill)
            )
        except KeyError as problem:
            left.append(Left(row.id, str(problem.args[0])))
            continue
        assert one is not None
        kept.append((row, one, two, gpu))
    kept.sort(key=lambda each: each[2] is not None)
    return _columns(kept), tuple(left)


def _side(
    sides: dict[tuple[object, ...], Side],
    key: tuple[str, str | None, str],
    model: Traffic,
    worker: Worker,
    name: str,
    gpu: Device,
) -> Side:
    whole = (*key, worker.layout, name)
    if whole not in sides:
        sides[whole] = side(model, possible(worker.layout, model), gpu)
    return sides[whole]


def possible(layout: Layout, model: Traffic) -> Layout:
    """The layout, or with attention data parallel where the heads do not divide over its tensor ranks.

    Tables that give the GPUs of a wide expert-parallel worker as its tensor size mean that one.
    """
    if model.heads % layout.attention_tp == 0:
        return layout
    return replace(layout, attention_dp=layout.tp, ep=layout.tp)


def _columns(kept: Sequence[tuple[Measurement, Side, Side | None, Device]]) -> Settings:
    rows = tuple(row for row, _, _, _ in kept)
    apart = sum(two is None for _, _, two, _ in kept)
    split = [(row, one, two, gpu) for row, one, two, gpu in kept if two is not None]

    def column(of: Callable[[Measurement], float]) -> Array:
        return np.array([of(row) for row in rows], dtype=np.float64)

    return Settings(
        rows,
        apart,
        stack([one for _, one, _, _ in kept]) if kept else None,
        stack([two for _, _, two, _ in split]) if split else None,
        Workers(
            np.array([_prefill_workers(row) for row, _, _, _ in split]),
            np.array([float(row.decode.count) for row, _, _, _ in split]),
            np.array([two.hand_bytes / gpu.nic_bytes_s for _, _, two, gpu in split]),
        ),
        Load(
            concurrency=column(lambda r: r.concurrency),
            prompt=column(lambda r: r.prompt),
            output=column(lambda r: r.output),
            cached=column(lambda r: r.cached),
            width=column(lambda r: r.width),
            accepted=column(lambda r: r.accepted),
            chunk=column(lambda r: 8192.0),
        ),
    )


def _prefill_workers(row: Measurement) -> float:
    """Prefill workers; where they are not told, one for every request, so that none waits for another."""
    return float(row.prefill.count if row.prefill and row.prefill.count else max(row.concurrency, 1.0))


def predict(settings: Settings, constants: Mapping[str, Array]) -> tuple[Array, Array]:
    """(TTFT, TPOT) in s of every row; constants have shape (rows,)."""
    parts: list[Latencies] = []
    if settings.decode is None:
        return np.empty(0), np.empty(0)
    whole, cut = np.arange(len(settings.rows)), settings.apart
    if cut:
        held = ConstantColumns({name: value[:cut] for name, value in constants.items()})
        parts.append(aggregated(settings.decode.take(whole[:cut]), held, settings.load.take(whole[:cut])))
    if settings.prefill is not None:
        held = ConstantColumns({name: value[cut:] for name, value in constants.items()})
        second, work = settings.decode.take(whole[cut:]), settings.load.take(whole[cut:])
        parts.append(disaggregated(settings.prefill, second, held, settings.workers, work))
    return np.concatenate([p.ttft_s for p in parts]), np.concatenate([p.tpot_s for p in parts])
