"""The shipped acceptance tests."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from clusterwright import catalogue
from clusterwright.catalogue.acceptance_tests import AcceptanceTest, parse_tests
from clusterwright.lib.errors import Unavailable

DATA: Final = Path(catalogue.__file__).parent / "suites" / "acceptance_tests.yaml"


@cache
def load_tests() -> tuple[AcceptanceTest, ...]:
    """Every test that is shipped, in the order of the file."""
    try:
        text = DATA.read_text(encoding="utf-8")
    except OSError as error:
        raise Unavailable(f"the installed tests cannot be read: {error}; install clusterwright again") from error
    return parse_tests(text, DATA.name)
