"""The public operator files, where they are present beside the clone; tests may read them and must not need them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from clusterwright.model.observations import Observation, Run, Transcript
from clusterwright.readers.reading import read_output

FOLDER: Final = Path(__file__).resolve().parents[3] / "shared" / "corpus"

Expectation = Callable[[Transcript], None]


def read_file(path: Path) -> Transcript:
    """The transcript of one file, its kind found out."""
    return read_output([path.read_bytes()], name=path.name)


def check_corpus(expectations: dict[str, Expectation], *kinds: str) -> int:
    """Check every file of the kinds that is present against its expectation; each must have one. Returns how many.

    Raises:
        AssertionError: naming the file.
    """
    checked = 0
    for kind in kinds:
        for path in sorted(FOLDER.glob(f"{kind}/*")) if FOLDER.is_dir() else ():
            name = f"{kind}/{path.name}"
            assert name in expectations, f"{name}: no expectation"
            try:
                expectations[name](read_file(path))
            except (AssertionError, LookupError, TypeError) as error:
                raise AssertionError(f"{name}: {error}") from error
            checked += 1
    return checked


def values(run: Run, name: str, **subject: str) -> list[object]:
    """Values of every observation of that name whose subject has these labels, in order."""
    return [o.value for o in found(run, name, **subject)]


def found(run: Run, name: str, **subject: str) -> list[Observation]:
    """Observations of that name whose subject has these labels."""
    return [o for o in run.observations if o.name == name and subject.items() <= dict(o.subject).items()]
