"""Identifiers in text: hosts, users, addresses, serials, device ids → stand-ins, the same one for the same thing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

_HEX: Final = "[0-9a-fA-F]"
#: What names one device, machine or person, by form alone.
_FORMS: Final = re.compile(
    rf"(?P<uuid>\b(?:GPU-|MIG-)?{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}\b)"
    rf"|(?P<mac>\b{_HEX}{{2}}(?::{_HEX}{{2}}){{5}}\b(?![:.]))"
    rf"|(?P<guid>\b0x{_HEX}{{16}}\b|\b{_HEX}{{4}}(?::{_HEX}{{4}}){{3}}\b(?![:.]))"
    rf"|(?P<ipv6>\b(?:{_HEX}{{1,4}}:){{7}}{_HEX}{{1,4}}\b|\bfe80::[0-9a-fA-F:]{{2,39}})"
    r"|(?P<ipv4>\b(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)\b)"
    r"|(?P<mail>[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64})+)"
    r"|(?P<user>(?<=/home/)[A-Za-z_][\w.-]{0,31}|(?<=/Users/)[A-Za-z_][\w.-]{0,31})"
    r"|(?P<serial>(?<=[Ss]erial)(?:[ _]?(?:[Nn]umber|[Nn]o\.?))?[\"' ]{0,4}[:=>][\"' ]{0,4}(?P<digits>[\w-]{4,40}))"
)
_WORD: Final = re.compile(r"[A-Za-z0-9_][\w.-]*")
_LIST: Final = re.compile(r"[A-Za-z][\w.-]*\[[\d,-]{1,2000}\][\w.-]*")
_JOINT: Final = re.compile(r"[._-]")
#: Words that name nobody.
_COMMON: Final = frozenset({"root", "nobody", "slurm", "none", "all", "user", "localhost", "unknown", "n/a", "default"})
#: Most parts of a word of which every run is tried.
_PARTS: Final = 16


class Redactor:
    """Replaces identifiers; the same identifier gets the same stand-in, such as `host-3`.

    Args:
        words: kind → words that are identifiers of that kind, found whole or between `.`, `_` and `-`. For the kind
            `host` also as the beginning of a host list such as `gpu-[001-008]`.
    """

    def __init__(self, words: Mapping[str, Iterable[str]]) -> None:
        self._words = {
            word: kind
            for kind, found in words.items()
            for word in found
            if len(word) > 2 and word.lower() not in _COMMON and not word.replace(".", "").isdigit()
        }
        self._words |= {w: "serial" for w in words.get("serial", ()) if len(w) > 5}
        self._stems = {word.rstrip("0123456789") for word, kind in self._words.items() if kind == "host"} - {""}
        self._known: dict[tuple[str, str], str] = {}
        self._counts: Counter[str] = Counter()

    def __call__(self, text: str) -> str:
        """The text with stand-ins for every identifier in it."""
        found = _FORMS.sub(self._form, text)
        if not self._words:
            return found
        if "[" in found:
            found = _LIST.sub(self._host_list, found)
        return _WORD.sub(self._word, found)

    @property
    def counts(self) -> dict[str, int]:
        """Different identifiers by kind that were replaced so far."""
        return dict(self._counts)

    def _form(self, match: re.Match[str]) -> str:
        kind = match.lastgroup or ""
        if match["serial"]:
            digits = match["digits"]
            return match["serial"][: -len(digits)] + self._stand_in("serial", digits)
        return self._stand_in(kind, match.group())

    def _host_list(self, match: re.Match[str]) -> str:
        text = match.group()
        return self._stand_in("hostlist", text) if text.partition("[")[0] in self._stems else text

    def _word(self, match: re.Match[str]) -> str:
        word = match.group()
        if word in self._words:
            return self._stand_in(self._words[word], word)
        joints = [m.start() for m in _JOINT.finditer(word)][:_PARTS]
        if not joints:
            return word
        starts, ends = [0, *(j + 1 for j in joints)], [*joints, len(word)]
        for start in starts:
            for end in reversed(ends):
                part = word[start:end]
                if start < end and part in self._words:
                    return word[:start] + self._stand_in(self._words[part], part) + word[end:]
        return word

    def _stand_in(self, kind: str, text: str) -> str:
        key = kind, text
        if key not in self._known:
            self._counts[kind] += 1
            self._known[key] = f"{kind}-{self._counts[kind]}"
        return self._known[key]
