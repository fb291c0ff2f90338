"""A model counted layer by layer against what its publisher states: which way of counting gives the same number.

The metadata of safetensors counts every tensor: draft layers and towers always, scales of quantised formats in most
repositories (their scale tensors are of 1, 2 or 4 B), tensors in fp32 not in all. A model card rounds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from clusterwright.model.decoders import Decoder

#: Share of a published number below which a difference is of buffers that are no parameters.
BUFFERS: Final = 1e-6
#: Bytes of one scale that checkpoints have.
_SCALES: Final = (4, 2, 1)


@dataclass(frozen=True, slots=True)
class Comparison:
    """One model's count beside its published number.

    Args:
        ours: the count that is nearest in kind; the model alone where nothing matches.
        way: how it counts, in words.
        exact: whether it is the published number to the last digit.
        rounded: whether it is the published number after rounding to the digits that the publisher gives.
    """

    ours: int
    published: int
    way: str
    exact: bool
    rounded: bool


def compare(decoder: Decoder, published: int) -> Comparison:
    """The count that explains a published number."""
    counted = tuple(_ways(decoder))
    for way, ours in counted:
        if ours == published:
            return Comparison(ours, published, way, exact=True, rounded=True)
    nearest = min(counted, key=lambda pair: abs(pair[1] - published))
    difference = published - nearest[1]
    if 0 < difference < BUFFERS * published:
        return Comparison(
            nearest[1], published, f"{nearest[0]}, but for {difference:,} buffers", exact=False, rounded=True
        )
    unit = _unit(published)
    ways = [(way, ours) for way, ours in counted if abs(ours - published) <= unit / 2]
    if ways:
        return Comparison(ways[0][1], published, f"{ways[0][0]}, rounded by the publisher", exact=False, rounded=True)
    return Comparison(decoder.parameters, published, "the model", exact=False, rounded=False)


def _unit(published: int) -> int:
    """Smallest step of the digits that a publisher gives, two at least: 671e9 in 1e9, 1e12 in 1e11."""
    digits = len(str(published))
    zeros = digits - len(str(published).rstrip("0"))
    return int(10 ** min(zeros, digits - 2))


def _tables_of_drafts(decoder: Decoder) -> int:
    parts = (part for layer in decoder.drafts for part in layer.parts)
    return sum(part.parameters for part in parts if part.role in ("embedding", "head"))


def _ways(decoder: Decoder) -> Iterator[tuple[str, int]]:
    main = decoder.parameters
    drafts = sum(part.parameters for layer in decoder.drafts for part in layer.parts)
    single = sum(p.parameters * n for p, n in decoder.parts() if p.stored == "fp32")
    drafted = sum(p.parameters for layer in decoder.drafts for p in layer.parts if p.stored == "fp32")
    scales = sum(p.scale_bytes * n for p, n in decoder.parts(drafts=True))
    yield "the model", main
    if drafts:
        yield "with draft layers", main + drafts
        yield "with draft layers that share the model's tables", main + drafts - _tables_of_drafts(decoder)
    if decoder.towers:
        yield "text alone", decoder.text_parameters
    if scales:
        for size in _SCALES:
            yield "with draft layers and scales" if drafts else "with scales", main + drafts + scales // size
    if single:
        yield "without tensors in fp32", main - single
        yield "with draft layers, without tensors in fp32", main + drafts - single - drafted
