"""docs/catalogue.md names every field of every kind, and its examples are accepted."""

from __future__ import annotations

import re
import typing
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest

from clusterwright.catalogue.kinds import TYPES
from clusterwright.catalogue.parsing import parse_catalogue
from clusterwright.files.catalogue import load_catalogue
from clusterwright.model.entries import Record

PAGE = (Path(__file__).parents[3] / "docs" / "catalogue.md").read_text(encoding="utf-8")


def fields_of(record: type[Record]) -> set[str]:
    found = {field.name for field in fields(record)}
    for hint in typing.get_type_hints(record).values():
        for part in (hint, *typing.get_args(hint)):
            if is_dataclass(part) and isinstance(part, type) and issubclass(part, Record):
                found |= fields_of(part)
    return found


@pytest.mark.parametrize("kind", TYPES)
def test_every_field_is_explained(kind: str) -> None:
    missing = {name for name in fields_of(TYPES[kind]) if f"`{name}`" not in PAGE} - {"name"}
    assert not missing


def test_the_examples_are_accepted() -> None:
    examples = re.findall(r"```yaml\n(.*?)```", PAGE, flags=re.DOTALL)
    assert len(examples) == 2
    for number, example in enumerate(examples):
        result = parse_catalogue({f"example-{number}.yaml": example}, load_catalogue())
        assert result.files == (f"example-{number}.yaml",)
