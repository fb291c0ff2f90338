"""Calibrating: files of measurements → constants refitted, shown before and after, written as a catalogue file."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from clusterwright.app.evidencing import load_evidence, open_store
from clusterwright.calibrating.benchmarks import Declared, read_runs
from clusterwright.calibrating.documents import catalogue_text, text_of, values_of
from clusterwright.calibrating.measurements import Left, Measured, joined
from clusterwright.calibrating.refitting import Key, Outcome, refit_all
from clusterwright.calibrating.settings import settings_of
from clusterwright.calibrating.tables import ENGINES, FORMATS, read_table
from clusterwright.catalogue.calibrations import closest
from clusterwright.catalogue.catalogues import Catalogue
from clusterwright.files.catalogue import load_catalogue
from clusterwright.files.outputs import write_text
from clusterwright.files.streams import find_outputs, stream_bytes
from clusterwright.lib.errors import InvalidInput
from clusterwright.model.decoders import Decoder
from clusterwright.model.evidence import Evidence
from clusterwright.model.hardware import Gpu
from clusterwright.model.observations import Transcript
from clusterwright.physics.layouts import Layout
from clusterwright.physics.serving.constants import Constants, named
from clusterwright.physics.serving.sides import Device
from clusterwright.readers.reading import read_output

#: Rate of a NIC where the architecture is not known: 400 Gb/s, one per GPU, as on HGX and NVL72 systems.
NIC_BYTES_S = 50e9


@dataclass(frozen=True, slots=True)
class CalibrateRequest:
    """What to calibrate from.

    Args:
        files: CSV tables, outputs of benchmarks, evidence stores; another directory stands for the files below it.
        engine, version, model, gpu, weights, cache: of the server, for outputs that do not tell.
        tp, ep, dp, attention_dp: its layout.
        accepted: tokens kept per step and sequence with speculation, of `width` computed.
        catalogues: the user's own, over the shipped.
    """

    files: Sequence[str]
    engine: str = ""
    version: str = ""
    model: str = ""
    gpu: str = ""
    weights: str = ""
    cache: str = "bf16"
    tp: int = 1
    ep: int = 1
    dp: int = 1
    attention_dp: int = 1
    width: float = 1.0
    accepted: float = 1.0
    catalogues: Sequence[str] = ()


def calibrate(request: CalibrateRequest) -> Outcome:
    """Refit the constants of every engine, version and GPU in the files.

    Raises:
        InvalidInput: a file is not there, an option is not known, or no file holds a measurement.
    """
    catalogue = load_catalogue(request.catalogues)
    declared = _declared(request)
    measured = joined(_read(name, data, declared) for name, data in _sources(request.files))
    if not measured.rows and not measured.left:
        raise InvalidInput("no measurement of serving in these files")
    told = measured.without_assumed_counts()
    named = Measured(tuple(replace(r, gpu=gpu_name(catalogue, r.gpu)) for r in told.rows), told.left)
    settings, left = settings_of(named, decoder_finder(catalogue), device_finder(catalogue))
    return refit_all(settings, left, known_constants(catalogue))


def write_calibration(outcome: Outcome, path: Path, sources: Sequence[str], today: datetime.date) -> None:
    """Write the refits as a catalogue file.

    Raises:
        InvalidInput: there is nothing to write, or the path cannot be written.
    """
    if not outcome.refits:
        raise InvalidInput("nothing was fitted; no file is written")
    write_text(path, catalogue_text(outcome, "own measurements: " + ", ".join(sources), today.isoformat()))


def describe_outcome(outcome: Outcome) -> str:
    """The outcome as text."""
    return text_of(outcome)


def values_of_outcome(outcome: Outcome) -> dict[str, Any]:
    """The outcome as plain values."""
    return values_of(outcome)


def gpu_name(catalogue: Catalogue, name: str) -> str:
    """The catalogue's name of a GPU, or the name as given where there is none."""
    for tried in (name, name.replace("_", "-"), name.removesuffix("_sxm")):
        found = catalogue.find_gpu(tried)
        if found is not None:
            return found.name
    return name


def decoder_finder(catalogue: Catalogue) -> Callable[[str], Decoder | None]:
    """Looks models up in the catalogue, by id or by its last part."""

    def find(name: str) -> Decoder | None:
        return catalogue.find_decoder(name) or catalogue.find_decoder(name.rpartition("/")[2])

    return find


def device_finder(catalogue: Catalogue) -> Callable[[str], Device | None]:
    """Looks GPUs up in the catalogue."""

    def find(name: str) -> Device | None:
        gpu = catalogue.find_gpu(name)
        return None if gpu is None else device_of(gpu)

    return find


def device_of(gpu: Gpu, nic_bytes_s: float = NIC_BYTES_S) -> Device:
    """Peaks of a GPU of the catalogue; without a scale-up link its PCIe rate stands for it."""
    rates = {form: gpu.dense.of(form) for form in ("fp32", "fp16", "bf16", "fp8", "int8", "fp4")}
    memory = gpu.visible_memory or gpu.memory
    link = gpu.scale_up
    return Device(
        memory_gib=memory.to("GiB"),
        bandwidth_bytes_s=gpu.bandwidth.to("B/s"),
        flops_s={form: rate.to("FLOP/s") for form, rate in rates.items() if rate is not None},
        link_bytes_s=link.per_direction.to("B/s") if link else nic_bytes_s,
        domain=link.gpus if link else 1,
        nic_bytes_s=nic_bytes_s,
    )


def known_constants(catalogue: Catalogue) -> Callable[[Key], Constants]:
    """Constants that the catalogue has for an engine, version and GPU; the starting values where it has none."""

    def find(key: Key) -> Constants:
        found = closest(catalogue.calibrations(), *key)
        return Constants() if found is None else named(found.constants)

    return find


def _declared(request: CalibrateRequest) -> Declared:
    if request.engine and request.engine.lower() not in ENGINES:
        raise InvalidInput(f"--engine '{request.engine}' is not one of vllm, sglang, tensorrt-llm")
    for option, word in (("--weights", request.weights), ("--kv-cache", request.cache)):
        if word.lower() not in FORMATS:
            raise InvalidInput(f"{option} '{word}' is not one of {', '.join(name for name in FORMATS if name)}")
    try:
        layout = Layout(tp=request.tp, ep=request.ep, dp=request.dp, attention_dp=request.attention_dp)
    except ValueError as error:
        raise InvalidInput(str(error)) from None
    return Declared(
        engine=request.engine,
        version=request.version,
        model=request.model,
        gpu=request.gpu,
        weights=FORMATS[request.weights.lower()],
        cache=FORMATS[request.cache.lower()] or "bf16",
        layout=layout,
        width=request.width,
        accepted=request.accepted,
    )


def _sources(files: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """(name, content) of every file, and of every raw output of serving that an evidence store keeps."""
    for file in files:
        if (Path(file) / "index.sqlite").is_file():
            yield from _kept(Path(file))
        else:
            for path in find_outputs([file]):
                yield path, b"".join(stream_bytes(path))


def _kept(path: Path) -> Iterator[tuple[str, bytes]]:
    """Raw outputs of serving benchmarks that were measured, from a store whose chain holds."""
    measured = [e for e in load_evidence(path) if e.basis == "measured" and e.raw_digest and _is_serving(e)]
    store = open_store(path)
    try:
        for evidence in measured:
            yield f"{path}:{evidence.id[7:19]}", b"".join(store.raw(evidence.raw_digest))
    finally:
        store.close()


def _is_serving(evidence: Evidence) -> bool:
    return any(reading.metric.startswith(("ttft", "tpot")) for reading in evidence.readings)


def _read(path: str, data: bytes, declared: Declared) -> Measured:
    head = data[:4096].decode("utf-8", "replace").splitlines()[:1]
    if head and "," in head[0] and any(word in head[0] for word in ("ttft_ms", "tpot_ms")) and "{" not in head[0]:
        return read_table(data.decode("utf-8", "replace"), Path(path).name)
    transcript: Transcript = read_output([data], name=path)
    runs = [(f"{Path(path).name}#{i}", run) for i, run in enumerate(transcript.runs, 1) if _serves(run)]
    if not runs:
        return Measured((), (Left(path, "holds no result of a serving benchmark"),))
    return read_runs(runs, declared)


def _serves(run: Any) -> bool:
    return any(o.name.startswith(("ttft_", "tpot_")) for o in run.observations)
