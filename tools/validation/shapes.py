"""Models counted layer by layer beside what their publishers state: the table of `make validate` and of docs/models.md.

Run as a program it writes docs/models.md. Configs of ../shared/cases are read where they are present; the facts of the
catalogue always.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from clusterwright.catalogue.catalogues import Catalogue
from clusterwright.catalogue.counting import Comparison, compare
from clusterwright.files.catalogue import load_catalogue
from clusterwright.model.decoders import Decoder
from clusterwright.model.huggingface import UnknownArchitecture, known_architectures, parse_config
from validation.scoring import Row, Scored

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "models.md"
#: End of config files' names in the set.
_CONFIG, _QUANT = "_config.json", "_hf_quant_config.json"


@dataclass(frozen=True, slots=True)
class Shape:
    """One model's count.

    Args:
        comparison: with the published number; None where there is none, or the config is refused.
        source: of the published number.
        refused: why a config cannot be counted, empty where it is.
    """

    name: str
    decoder: Decoder | None
    comparison: Comparison | None
    source: str = ""
    refused: str = ""

    @property
    def verdict(self) -> str:
        """One word or two for a table."""
        if self.decoder is None:
            return "refused"
        if self.comparison is None:
            return "no published total"
        if self.comparison.exact:
            return "exact"
        return "to the digits given" if self.comparison.rounded else "OFF"


def table(cases: Path | None = None, catalogue: Catalogue | None = None) -> tuple[Shape, ...]:
    """Every model of the catalogue, then every config of the set that the catalogue has not.

    Args:
        cases: folder with `model_configs`; None for the catalogue alone.
        catalogue: the shipped one where None.
    """
    known = catalogue or load_catalogue()
    shapes = [_known(known, name) for name in known.names("models")]
    shapes += [] if cases is None else _configs(cases / "model_configs", known)
    return tuple(shapes)


def score(cases: Path) -> Scored:
    """Models with a published total: a row is inside when the count is that number to the digits that are given."""
    shapes = table(cases)
    rows = tuple(
        Row(
            id=shape.name,
            group="published total" if shape.comparison.exact else "rounded total",
            predicted=float(shape.comparison.ours),
            measured=float(shape.comparison.published),
            inside=shape.comparison.rounded,
            reason=shape.comparison.way,
        )
        for shape in shapes
        if shape.comparison is not None
    )
    refused = tuple(f"{s.name}: {s.refused}" for s in shapes if s.refused)
    return Scored("shapes", "exact, as far as printed", "nothing is fitted", rows, (), refused)


def _known(catalogue: Catalogue, name: str) -> Shape:
    entry, decoder = catalogue.model(name), catalogue.find_decoder(name)
    if decoder is None:
        return Shape(name, None, None, refused="the entry has no config")
    if entry.parameters is None:
        return Shape(name, decoder, None)
    return Shape(name, decoder, compare(decoder, entry.parameters), entry.parameters_source or "")


def _configs(folder: Path, catalogue: Catalogue) -> Iterator[Shape]:
    for path in sorted(folder.glob(f"*{_CONFIG}")):
        if path.name.endswith(_QUANT):
            continue
        name = path.name.removesuffix(_CONFIG).replace("--", "/")
        quantisation = path.with_name(path.name.removesuffix(_CONFIG) + _QUANT)
        how = _read(quantisation) if quantisation.exists() else None
        try:
            decoder = parse_config(_read(path), name=name, quantization=how)
        except UnknownArchitecture as unknown:
            yield Shape(name, None, None, refused=f"{unknown.reason} ({', '.join(unknown.missing)})")
            continue
        entry = catalogue.find_model(name)
        if entry is None or entry.name != name:
            yield Shape(name, decoder, None)


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def page(shapes: tuple[Shape, ...]) -> str:
    """docs/models.md."""
    counts = {verdict: sum(s.verdict == verdict for s in shapes) for verdict in ("exact", "to the digits given")}
    plain = sum(s.verdict == "no published total" for s in shapes)
    lines = [
        _INTRODUCTION.strip(),
        "",
        f"Of {len(shapes)} models in the catalogue {counts['exact']} agree with a published total to the last digit, "
        f"{counts['to the digits given']} to the digits that the publisher gives; for {plain} we know of none.",
        "",
        "| Model | Parameters | Active | Draft layers | Checkpoint, GB | Published | Agreement |",
        "|---|---:|---:|---:|---:|---:|---|",
        *(_row(shape) for shape in sorted(shapes, key=lambda s: s.name.lower())),
        "",
        "## Architectures",
        "",
        "Names of `architectures` in config.json that are counted: "
        + ", ".join(f"`{name}`" for name in known_architectures())
        + ".",
        "",
    ]
    return "\n".join(lines)


def _row(shape: Shape) -> str:
    if shape.decoder is None:
        return f"| {shape.name} | | | | | | refused: {shape.refused} |"
    decoder = shape.decoder
    drafts = sum(layer.parameters for layer in decoder.drafts)
    published, agreement = "", ""
    if shape.comparison is not None:
        published = f"{shape.comparison.published:,}"
        agreement = f"{shape.verdict}: {shape.comparison.way}" if shape.comparison.exact else shape.comparison.way
    return (
        f"| {shape.name} | {decoder.parameters:,} | {decoder.active / 1e9:.2f}e9 | {f'{drafts:,}' if drafts else ''} "
        f"| {decoder.checkpoint_bytes / 1e9:,.2f} | {published} | {agreement} |"
    )


_INTRODUCTION: Final = """
# Models: parameters and bytes, layer by layer

A config.json of Hugging Face gives every tensor of a model: `cw` counts them layer by layer, with the format each is
stored in (`quantization_config`, `hf_quant_config.json`, block and group scales). Nothing is approximated: an
architecture, a layer kind, a quantisation format or a key that could change the count and is not known is refused by
name, with what is missing and the nearest names known.

- *Parameters*: layers, tables and vision towers; draft layers (multi-token prediction) apart, block scales never.
- *Active*: what one token uses, the input table counted (the convention of model cards).
- *Checkpoint*: bytes as stored, with scales, draft layers and towers.
- *Published*: the total of the safetensors metadata, or the card's rounded figure. Metadata count draft layers always,
  and block scales in most repositories: *agreement* says which count is the published one.

A quantised checkpoint whose config does not say which modules stay in 16 bits (`hf_quant_config.json` without
`exclude_modules`) is counted exactly, but its bytes assume that only the head and the router stay; its notes say so.
"""


if __name__ == "__main__":
    PAGE.write_text(page(table()), encoding="utf-8")
    cases = ROOT.parent / "shared" / "cases"
    for one in table(cases if cases.exists() else None):
        if one.verdict not in ("exact", "no published total"):
            sys.stdout.write(f"{one.name}: {one.verdict} {one.refused or (one.comparison and one.comparison.way)}\n")
