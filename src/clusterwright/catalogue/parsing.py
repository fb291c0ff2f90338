"""Catalogue files → Catalogue: a user's files extend or override what is shipped.

An entry with a new name is added and must be whole, unless `like: NAME` says from which entry it starts. An entry with
a known name overrides the fields it gives (nested mappings field by field) and must give its own source and date.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clusterwright.catalogue.building import Unreadable, Wrong, build
from clusterwright.catalogue.catalogues import Catalogue, fold
from clusterwright.catalogue.kinds import TYPES
from clusterwright.catalogue.reading import RawEntry, read_entries
from clusterwright.lib.errors import InvalidInput, Problem

#: Fields that a copy (`like`) does not take over: they belong to the original.
_OWN = ("source", "date", "aliases", "note")
EMPTY = Catalogue({})


def parse_catalogue(texts: Mapping[str, str], base: Catalogue = EMPTY) -> Catalogue:
    """A catalogue from files' texts on top of another.

    Args:
        texts: file name → content, in order.
        base: what the files extend or override.

    Raises:
        InvalidInput: with every problem found and its place: form, unknown keys, missing source or date, units,
            duplicate names, references to nothing.
    """
    problems: list[Problem] = []
    entries: dict[tuple[str, str], RawEntry] = {}
    for file, text in texts.items():
        found, wrong = read_entries(text, file)
        problems += wrong
        for entry in found:
            first = entries.setdefault((entry.kind, entry.name), entry)
            if first is not entry:
                problems.append(Problem(entry.place, _path(entry), f"'{entry.name}' is already at {first.place}"))
    merged: dict[str, dict[str, Mapping[str, Any]]] = {k: dict(v) for k, v in base.raw.items()}
    for entry in entries.values():
        merged.setdefault(entry.kind, {})[entry.name] = _merge(entry, base, entries, problems)
    result = Catalogue(merged, (*base.files, *(texts if base.raw else ())))
    for entry in entries.values():
        problems += _invalid(entry, merged[entry.kind][entry.name])
    problems += _alias_clashes(merged, entries)
    if not problems:
        problems += _dangling(result, entries)
    if problems:
        raise InvalidInput(*sorted(problems, key=lambda p: (p.place.file, p.place.line, p.place.column)))
    return result


def _path(entry: RawEntry) -> str:
    return f"{entry.kind}.{entry.name}"


def _merge(
    entry: RawEntry, base: Catalogue, entries: Mapping[tuple[str, str], RawEntry], problems: list[Problem]
) -> Mapping[str, Any]:
    fields = dict(entry.fields)
    like = fields.pop("like", None)
    below: Mapping[str, Any] = base.raw.get(entry.kind, {}).get(entry.name, {})
    if like is not None:
        written = entries.get((entry.kind, str(like)))
        original = written.fields if written is not None else base.raw.get(entry.kind, {}).get(str(like))
        if original is None or "like" in original or like == entry.name:
            near = base.suggest(entry.kind, str(like))
            hint = f"did you mean {' or '.join(near)}?" if near else "name a whole entry of the same kind"
            place = entry.place_of(("like",))
            problems.append(Problem(place, f"{_path(entry)}.like", f"no entry '{like}' to start from", hint))
        else:
            below = {key: value for key, value in original.items() if key not in _OWN}
    kept = {key: value for key, value in below.items() if key not in ("source", "date")}
    return _overlay(kept, fields)


def _overlay(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(below)
    for key, value in above.items():
        old = result.get(key)
        result[key] = _overlay(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return result


def _invalid(entry: RawEntry, fields: Mapping[str, Any]) -> list[Problem]:
    if "name" in fields:
        return [Problem(entry.place_of(("name",)), f"{_path(entry)}.name", "the name is the key of the entry")]
    try:
        build(TYPES[entry.kind], {"name": entry.name, **fields})
    except Unreadable as error:
        return [_problem(entry, wrong) for wrong in error.wrong]
    return []


def _problem(entry: RawEntry, wrong: Wrong) -> Problem:
    path = ".".join([_path(entry), *(str(step) for step in wrong.path)])
    return Problem(entry.place_of(wrong.path), path, wrong.message, wrong.hint)


def _alias_clashes(
    merged: Mapping[str, Mapping[str, Mapping[str, Any]]], entries: Mapping[tuple[str, str], RawEntry]
) -> list[Problem]:
    problems = []
    for kind, named in merged.items():
        owner: dict[str, str] = {}
        for name, fields in named.items():
            aliases = fields.get("aliases")
            texts = [a for a in aliases if isinstance(a, str)] if isinstance(aliases, list) else []
            for alias in dict.fromkeys(fold(a) for a in (name, *texts)):
                first = owner.setdefault(alias, name)
                written = entries.get((kind, name)) or entries.get((kind, first))
                if first != name and written is not None:
                    message = f"'{alias}' names both '{first}' and '{name}'"
                    problems.append(Problem(written.place_of(("aliases",)), f"{kind}.{name}", message))
    return problems


def _dangling(catalogue: Catalogue, entries: Mapping[tuple[str, str], RawEntry]) -> list[Problem]:
    """Names of GPUs and NICs that shapes and prices mention and nobody defines."""
    problems = []

    def check(entry: RawEntry, kind: str, name: str, path: tuple[str | int, ...]) -> None:
        if name in catalogue.raw.get(kind, {}):
            return
        near = catalogue.suggest(kind, name)
        hint = f"did you mean {' or '.join(near)}?" if near else ""
        message = f"'{name}' is not in {kind}"
        problems.append(Problem(entry.place_of(path), ".".join([_path(entry), *map(str, path)]), message, hint))

    for (kind, name), entry in entries.items():
        fields = catalogue.raw[kind][name]
        if kind == "shapes":
            if "gpu" in fields:
                check(entry, "gpus", fields["gpu"], ("gpu",))
            for number, slots in enumerate(fields.get("nics", ())):
                if "nic" in slots:
                    check(entry, "nics", slots["nic"], ("nics", number, "nic"))
        elif kind == "prices" and fields["kind"] == "rental":
            check(entry, "gpus", fields["item"], ("item",))
    return problems
