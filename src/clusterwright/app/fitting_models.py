"""The model of a fit: from the catalogue by name, or counted from a config.json on disk."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from clusterwright.catalogue.catalogues import Catalogue
from clusterwright.lib.errors import InvalidInput, Place, Problem
from clusterwright.model.decoders import Decoder

_CONFIG = "config.json"
#: Written beside a checkpoint that NVIDIA ModelOpt quantised.
_QUANTISED = "hf_quant_config.json"


def find_model(catalogue: Catalogue, name: str) -> Decoder:
    """The model of a Hugging Face id, alias, config.json or folder that holds one.

    Raises:
        InvalidInput: nothing is called so (with the nearest names), or the config cannot be counted exactly.
    """
    path = Path(name)
    if name.endswith(".json") or path.is_dir() or name.startswith((".", os.sep)):
        return _from_config(path / _CONFIG if path.is_dir() else path)
    found = catalogue.find_decoder(name)
    if found is not None:
        return found
    near = catalogue.suggest("models", name)
    hint = f"did you mean {' or '.join(near)}?" if near else "give the path of its config.json"
    raise InvalidInput(Problem(Place(name), "", f"no model '{name}' in the catalogue", hint))


def _from_config(path: Path) -> Decoder:
    from clusterwright.model.huggingface import parse_config

    quantised = path.with_name(_QUANTISED)
    quantization = _json(quantised) if quantised.is_file() else None
    config = _json(path)
    name = str(config.get("_name_or_path") or path.parent.name or path)
    return parse_config(config, name=name, quantization=quantization)


def _json(path: Path) -> dict[str, Any]:
    from clusterwright.files.inputs import read_source

    source = read_source(str(path))
    try:
        value = json.loads(source.text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(Problem(Place(str(path)), "", f"is no JSON: {error}")) from None
    if not isinstance(value, dict):
        raise InvalidInput(Problem(Place(str(path)), "", "holds no JSON object", "give a model's config.json"))
    return value
