"""The shipped catalogue and the user's own catalogue files.

The data is written in YAML and read from `compiled.json`, the same content: reading YAML takes about a hundred times
as long, and every command would pay for it. `write_compiled` makes the second from the first; a test compares them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from clusterwright import catalogue
from clusterwright.catalogue.catalogues import Catalogue
from clusterwright.lib.errors import InvalidInput, Place, Problem, Unavailable

#: The data lies beside the package's code as plain files; importlib.resources would cost 20 ms at every start.
DATA: Final = Path(catalogue.__file__).parent / "data"
COMPILED: Final = "compiled.json"


def load_catalogue(files: Iterable[str | Path] = ()) -> Catalogue:
    """The shipped catalogue, extended and overridden by the user's files in order.

    Raises:
        InvalidInput: when a file cannot be read or holds something wrong; every problem with its place.
    """
    paths = tuple(Path(f) for f in files)
    shipped = _shipped()
    if not paths:
        return shipped
    from clusterwright.catalogue.parsing import parse_catalogue  # needs the YAML reader: only for those who use it

    return parse_catalogue({str(path): _read(path) for path in paths}, shipped)


@cache
def _shipped() -> Catalogue:
    try:
        text = (DATA / COMPILED).read_text(encoding="utf-8")
    except OSError as error:
        raise Unavailable(f"the installed catalogue cannot be read: {error}; install clusterwright again") from error
    return Catalogue(json.loads(text))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidInput(Problem(Place(str(path)), "", f"cannot be read: {error.strerror or error}")) from error
    except UnicodeDecodeError as error:
        raise InvalidInput(Problem(Place(str(path)), "", f"is not UTF-8 at byte {error.start}")) from error


def read_sources() -> dict[str, str]:
    """File name → text of the shipped YAML files."""
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(DATA.glob("*.yaml"))}


def compile_sources() -> dict[str, Any]:
    """The shipped YAML files as one value of plain text, lists and mappings.

    Fields of a model that follow from its `config` are written out, so that nobody counts them again at every start.

    Raises:
        InvalidInput: with everything wrong in them.
    """
    from clusterwright.catalogue.parsing import parse_catalogue

    raw = {kind: dict(named) for kind, named in parse_catalogue(read_sources()).raw.items()}
    raw["models"] = {name: _written_out(name, fields) for name, fields in raw["models"].items()}
    return raw


def _written_out(name: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    if "config" not in fields or "layers" in fields:
        return dict(fields)
    from clusterwright.model.huggingface import parse_config
    from clusterwright.model.huggingface.facts import typed
    from clusterwright.model.huggingface.summaries import summary_of

    return {**summary_of(parse_config(typed(fields["config"]), name=name)), **fields}


def write_compiled() -> Path:
    """Write `compiled.json` beside the YAML files (a source tree, not an installed package)."""
    path = DATA / COMPILED
    path.write_text(json.dumps(compile_sources(), ensure_ascii=False, indent=0) + "\n", encoding="utf-8")
    return path
