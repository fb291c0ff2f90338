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
#: What reading a config ends in whose lists, mappings and numbers stand where others should.
_MISREAD = (TypeError, AttributeError, KeyError, IndexError, ValueError, ArithmeticError)
#: Letters of a name that messages repeat.
_LONGEST = 120
_HINT = "give the path of a model's config.json"


def find_model(catalogue: Catalogue, name: str) -> Decoder:
    """The model of a Hugging Face id, alias, config.json or folder that holds one.

    A name of the catalogue goes before a file that happens to be called so, unless it is written as a path.

    Raises:
        InvalidInput: nothing is called so (with the nearest names), or the config cannot be counted exactly.
    """
    if not name.strip():
        raise InvalidInput(Problem(Place("MODEL"), "", "no model is named", "such as llama-3.3-70b, or a config.json"))
    is_folder = os.path.isdir(name)
    config = Path(name) / _CONFIG if is_folder else Path(name)
    if name.endswith(".json") or name.startswith((".", os.sep)) or (is_folder and config.is_file()):
        return _from_config(config)
    found = catalogue.find_decoder(name)
    if found is not None:
        return found
    # Unlike Path.exists, this also answers for names that no system takes.
    if os.path.exists(name):
        return _from_config(config)
    near = catalogue.suggest("models", name)
    hint = f"did you mean {' or '.join(near)}?" if near else "give the path of its config.json"
    told = name if len(name) <= _LONGEST else f"{name[:_LONGEST]}…"
    raise InvalidInput(Problem(Place(told), "", f"no model '{told}' in the catalogue", hint))


def _from_config(path: Path) -> Decoder:
    from clusterwright.model.huggingface import UnknownArchitecture, parse_config

    if path.name == _CONFIG and path.parent.is_dir() and not path.exists():
        raise InvalidInput(Problem(Place(str(path.parent)), "", f"a directory without a {_CONFIG}", _HINT))
    quantised = path.with_name(_QUANTISED) if path.name else path
    quantization = _json(quantised) if quantised.is_file() else None
    config = _json(path)
    name = str(config.get("_name_or_path") or path.parent.name or path)
    try:
        return parse_config(config, name=name, quantization=quantization)
    except UnknownArchitecture as error:
        raise InvalidInput(Problem(Place(str(path)), "", error.reason, ", ".join(error.missing))) from None
    except _MISREAD as error:
        reason = f"a value of the config is of another kind than its key has: {error}"
        raise InvalidInput(
            Problem(Place(str(path)), "", reason, "compare it with the model's own config.json")
        ) from error


def _json(path: Path) -> dict[str, Any]:
    from clusterwright.files.inputs import read_source

    text = read_source(str(path)).text.removeprefix("\ufeff")
    if not text.strip():
        raise InvalidInput(Problem(Place(str(path)), "", "this file is empty", _HINT))
    try:
        value = json.loads(text, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        place = Place(str(path), error.lineno, error.colno)
        raise InvalidInput(Problem(place, "", f"this is a file, but not JSON: {error.msg}", _HINT)) from None
    except (ValueError, RecursionError) as error:
        raise InvalidInput(Problem(Place(str(path)), "", f"this is a file, but not JSON: {error}", _HINT)) from None
    if not isinstance(value, dict):
        raise InvalidInput(Problem(Place(str(path)), "", "holds no JSON object", _HINT))
    return value


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is no number of JSON")
