"""Complaints: what validation found, in plain words with place, value, expectation and the nearest valid choice.

One table, validation error → sentence; the library's own wording never reaches a user.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, get_args, get_origin

from pydantic import ValidationError

from clusterwright.lib.errors import Place, Problem
from clusterwright.lib.spelling import did_you_mean
from clusterwright.model.documents import Places
from clusterwright.model.magnitudes import raw_text
from clusterwright.model.section import Section
from clusterwright.model.suggestions import bare_type, explain_unknown_key, keys_of, meant_key, type_at

_SHOWN: Final = 60

Words = tuple[str, str]
"""(message, hint)"""


def explain_errors(error: ValidationError, places: Places, keys: Mapping[str, Place]) -> list[Problem]:
    """Every error of a validation as a problem, in the order of the file.

    Args:
        keys: path → place of the key itself.
    """
    details = [(tuple(str(part) for part in item["loc"]), item) for item in error.errors(include_url=False)]
    unknown = {loc for loc, item in details if item["type"] == "extra_forbidden"}
    meant = {(*loc[:-1], meant_key(loc[-1], loc[:-1])) for loc in unknown}
    problems = []
    for loc, item in details:
        # A misspelled key is reported once, not again as the missing key that it stands for.
        if item["type"] == "missing" and loc in meant:
            continue
        path = ".".join(loc)
        message, hint = _words(item, loc)
        place = keys.get(path) if item["type"] == "extra_forbidden" else None
        problems.append(Problem(place or places.of(path), path, message, hint))
    return sorted(problems, key=lambda p: (p.place.line, p.place.column))


def _words(item: Any, loc: tuple[str, ...]) -> Words:
    explain = _SENTENCES.get(item["type"])
    if explain is None:
        text = str(item["msg"]).removeprefix("Input should be ")
        return f"this is not valid, found {found_words(item['input'])}", f"expected {text}"
    return explain(item, loc)


def found_words(value: Any) -> str:
    """What stands in the file, short enough for one line."""
    value = raw_text(value)
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "a section"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "a list"
    text = " ".join(str(value).split())
    return f"'{text[:_SHOWN]}…'" if len(text) > _SHOWN else f"'{text}'"


def _missing(item: Any, loc: tuple[str, ...]) -> Words:
    return "this is missing", _wanted(loc)


def _unknown(item: Any, loc: tuple[str, ...]) -> Words:
    return "unknown key", explain_unknown_key(loc[-1], loc[:-1])


def _literal(item: Any, loc: tuple[str, ...]) -> Words:
    choices = re.findall(r"'([^']*)'", item["ctx"]["expected"])
    found = item["input"]
    listed = choices[0] if len(choices) == 1 else f"one of {', '.join(choices)}"
    return f"this wants {listed}, found {found_words(found)}", did_you_mean(found, choices) if isinstance(
        found, str
    ) else ""


def _section(item: Any, loc: tuple[str, ...]) -> Words:
    wanted = type_at(loc)
    if not isinstance(wanted, type) or not issubclass(wanted, Section):
        return f"this wants named entries (`name: …`), found {found_words(item['input'])}", ""
    names = keys_of(wanted)
    message = f"this wants a section with keys such as {', '.join(names[:5])}, found {found_words(item['input'])}"
    if get_origin(type_at(loc[:-1])) is dict and loc[-1] in names:
        return message, f"a name is missing: write {loc[-2]}: {{some-name: {{{loc[-1]}: …}}}}"
    return message, ""


def _list(item: Any, loc: tuple[str, ...]) -> Words:
    found = item["input"]
    hint = f"write [{found}]" if isinstance(found, str) and len(found) < _SHOWN else ""
    return f"this wants a list, found {found_words(found)}", hint


def _text(item: Any, loc: tuple[str, ...]) -> Words:
    found = item["input"]
    hint = f'put it in quotes: "{found_words(found)}"' if isinstance(found, bool) else ""
    return f"this wants text, found {found_words(found)}", hint


def _whole_number(item: Any, loc: tuple[str, ...]) -> Words:
    found = raw_text(item["input"])
    plain = isinstance(item["input"], str) and found.strip().isdecimal()
    return f"this wants a whole number, found {found_words(found)}", "remove the quotes" if plain else ""


def _number(item: Any, loc: tuple[str, ...]) -> Words:
    return f"this wants a plain number, found {found_words(item['input'])}", ""


def _flag(item: Any, loc: tuple[str, ...]) -> Words:
    found = str(item["input"]).lower()
    meant = "true" if found in ("yes", "on", "1") else "false" if found in ("no", "off", "0") else ""
    return f"this wants true or false, found {found_words(item['input'])}", f"write {meant}" if meant else ""


def _bound(words: str, key: str) -> Callable[[Any, tuple[str, ...]], Words]:
    def explain(item: Any, loc: tuple[str, ...]) -> Words:
        limit = item["ctx"][key]
        return f"{found_words(item['input'])} is out of range: this wants {words} {limit:,}", ""

    return explain


def _own(item: Any, loc: tuple[str, ...]) -> Words:
    message, _, hint = str(item["ctx"]["error"]).partition("; ")
    return message, hint


_SENTENCES: Final[dict[str, Callable[[Any, tuple[str, ...]], Words]]] = {
    "missing": _missing,
    "extra_forbidden": _unknown,
    "literal_error": _literal,
    "model_type": _section,
    "dict_type": _section,
    "tuple_type": _list,
    "string_type": _text,
    "int_type": _whole_number,
    "float_type": _number,
    "finite_number": _number,
    "bool_type": _flag,
    "greater_than": _bound("more than", "gt"),
    "greater_than_equal": _bound("at least", "ge"),
    "less_than": _bound("less than", "lt"),
    "less_than_equal": _bound("at most", "le"),
    "value_error": _own,
}


def _wanted(loc: tuple[str, ...]) -> str:
    """What a missing key is for."""
    section = type_at(loc[:-1])
    if not isinstance(section, type) or not issubclass(section, Section):
        return ""
    info = next((i for n, i in section.model_fields.items() if (i.alias or n) == loc[-1]), None)
    if info is None:
        return ""
    choices = get_args(bare_type(info.annotation)) if get_origin(bare_type(info.annotation)) is not dict else ()
    if choices and all(isinstance(c, str) for c in choices):
        return f"one of {', '.join(choices)}"
    return info.description or ""
