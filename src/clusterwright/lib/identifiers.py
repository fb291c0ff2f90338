"""Identifiers in text: hosts, addresses, serials, device ids → stand-ins, the same one for the same thing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
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
    r"|(?P<serial>(?<=[Ss]erial)(?: ?(?:[Nn]umber|[Nn]o\.?))?[\"' ]{0,4}[:=][\"' ]{0,4}(?P<digits>[\w-]{4,40}))"
)
_WORD: Final = re.compile(r"[A-Za-z0-9][\w.-]*")


class Redactor:
    """Replaces identifiers; the same identifier gets the same stand-in, such as `host-3`.

    Args:
        hosts: names of machines, found as whole words, also with a domain behind them.
    """

    def __init__(self, hosts: Iterable[str] = ()) -> None:
        self._hosts = frozenset(hosts)
        self._known: dict[tuple[str, str], str] = {}
        self._counts: Counter[str] = Counter()

    def __call__(self, text: str) -> str:
        """The text with stand-ins for every identifier in it."""
        found = _FORMS.sub(self._form, text)
        return _WORD.sub(self._word, found) if self._hosts else found

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

    def _word(self, match: re.Match[str]) -> str:
        word = match.group()
        if word in self._hosts:
            return self._stand_in("host", word)
        short, dot, domain = word.partition(".")
        if dot and short in self._hosts and not domain[:1].isdigit():
            return self._stand_in("host", short)
        return word

    def _stand_in(self, kind: str, text: str) -> str:
        key = kind, text.lower() if kind != "host" else text
        if key not in self._known:
            self._counts[kind] += 1
            self._known[key] = f"{kind}-{self._counts[kind]}"
        return self._known[key]
