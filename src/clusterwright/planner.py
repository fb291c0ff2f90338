"""What `clusterwright.plan` computes with, looked up by name: models, GPUs, pools, constants; and whole files.

The catalogue is the shipped one with files of your own over it. Everything here reads; everything that computes is in
`clusterwright.plan`, which reads nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from clusterwright.app.loading import load_catalogue
from clusterwright.catalogue.calibrations import closest
from clusterwright.catalogue.catalogues import Catalogue
from clusterwright.lib.errors import InvalidInput
from clusterwright.lib.quantities import Quantity, UnitError, parse_kind
from clusterwright.model.decoders import Decoder
from clusterwright.model.hardware import Gpu
from clusterwright.physics.serving.constants import Constants, named
from clusterwright.plan.estimating.choices import chosen
from clusterwright.plan.estimating.memories import ENGINES
from clusterwright.plan.fitting.machines import find_machine
from clusterwright.plan.results.plans import Plan
from clusterwright.plan.searching.questions import Pool

__all__ = ["catalogue", "constants", "gpu", "model", "plan_files", "pool"]

Files = Sequence[str | Path]


def catalogue(*files: str | Path) -> Catalogue:
    """The shipped catalogue with your own files over it, in order.

    Raises:
        InvalidInput: with every problem of every file.
    """
    return load_catalogue(files)


def model(name: str, catalogues: Files = ()) -> Decoder:
    """A model of the catalogue layer by layer, by its Hugging Face id (with or without its owner) or alias.

    Raises:
        InvalidInput: nothing is called so, with the nearest names; or the entry has no config.
    """
    known = load_catalogue(catalogues)
    found = known.find_decoder(name)
    if found is not None:
        return found
    entry = known.model(name)
    raise InvalidInput(f"{entry.name} has no config in the catalogue; plan.model_from_config takes its config.json")


def gpu(name: str, catalogues: Files = ()) -> Gpu:
    """A GPU of the catalogue by its name or alias.

    Raises:
        InvalidInput: nothing is called so; with the nearest names.
    """
    return load_catalogue(catalogues).gpu(name)


def pool(
    name: str,
    gpus: int | None = None,
    *,
    nic: str | None = None,
    price: float | None = None,
    currency: str = "USD",
    catalogues: Files = (),
) -> Pool:
    """GPUs in nodes as they are sold.

    Args:
        name: a GPU, a node shape, or a number of GPUs (`4xl40s`).
        gpus: that there are, None for as many as are needed.
        nic: rate of the NIC of one GPU, such as `400 Gb/s`; that of the node shape where None.
        price: money per GPU-hour in `currency`.

    Raises:
        InvalidInput: nothing is called so, with the nearest names; or a rate without its unit.
    """
    rate = None if nic is None else _rate(nic)
    return find_machine(load_catalogue(catalogues), name, rate).pool(gpus, price, currency)


def constants(engine: str, gpu: str, version: str = "", catalogues: Files = ()) -> Constants:
    """Constants of an engine's speed: the calibration of this GPU and version, else the closest one.

    Without any, the prior: round numbers of which nothing was measured.

    Raises:
        InvalidInput: unknown engine or GPU.
    """
    known = load_catalogue(catalogues)
    name = known.gpu(gpu).name
    found = closest(known.calibrations(), chosen("engine", engine, ENGINES), version, name)
    return Constants() if found is None else named(found.constants)


def plan_files(paths: Files, overrides: Sequence[str] = (), catalogues: Files = ()) -> Plan:
    """The plan of architecture files, as `cw plan` computes it.

    Args:
        overrides: `path=value`, written over what the files say.

    Raises:
        InvalidInput: when a file cannot be read.
    """
    from clusterwright.app.planning import plan_files as read  # most scripts have no file

    return read(paths, overrides, catalogues)


def _rate(text: str) -> Quantity:
    try:
        return parse_kind(text, "bit rate")
    except UnitError as error:
        raise InvalidInput(f"nic: {error}") from error
