"""Loading: the files a command names → a document, and the catalogue they refer to."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from clusterwright.catalogue.catalogues import Catalogue
from clusterwright.files import catalogue as catalogue_files
from clusterwright.files.inputs import STANDARD_INPUT, read_source
from clusterwright.lib.errors import InvalidInput, Problem
from clusterwright.model.documents import Document
from clusterwright.model.parsing import parse_architecture, parse_trees, read_trees
from clusterwright.model.sources import Source


def load_document(paths: Sequence[str | Path], overrides: Sequence[str] = ()) -> Document:
    """Read and merge architecture files.

    Args:
        paths: files, directories that hold `cluster.yaml`, or `-` for standard input.
        overrides: `path=value`, written over what the files say.

    Raises:
        InvalidInput: with every problem of every file.
    """
    names = [str(path) for path in paths]
    if names.count(STANDARD_INPUT) > 1:
        raise InvalidInput("standard input can be read only once; name `-` once")
    sources = _read_all(list(dict.fromkeys(names)))
    if not any("trace" in text for text in (*(source.text for source in sources), *overrides)):
        return parse_architecture(*sources, overrides=overrides)
    from clusterwright.app.traced_lengths import traced_lengths  # few files name a trace

    return parse_trees(read_trees(sources), sources, overrides, traced_lengths)


def load_catalogue(extra_paths: Sequence[str | Path] = ()) -> Catalogue:
    """The shipped catalogue with the user's own catalogue files over it, in order.

    Raises:
        InvalidInput: with every problem of every file.
    """
    return catalogue_files.load_catalogue(extra_paths)


def _read_all(names: Sequence[str]) -> list[Source]:
    sources, problems = list[Source](), list[Problem]()
    for name in names:
        try:
            sources.append(read_source(name))
        except InvalidInput as error:
            problems.extend(error.problems)
    if problems:
        raise InvalidInput(*problems)
    return sources
