"""Files in which each host's output stands below its name: ad-hoc commands of Ansible, dshbak, clush -b.

Source: ansible.plugins.callback.minimal (`host | CHANGED | rc=0 >>`), dshbak of pdsh (16 dashes above and below the
name), ClusterShell's `clush -b` (15 dashes, `node[1-2] (2)`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

_ANSIBLE: Final = re.compile(
    r"(?P<host>[A-Za-z0-9][\w.-]{0,127}) \| (?:CHANGED|SUCCESS|FAILED|UNREACHABLE)!?(?: \| rc=-?\d{1,5})?"
    r"(?: \([a-z]{3,8}\))? (?:>>|=> ?\{?)(?P<rest>.*)"
)
_RULES: Final = frozenset({"-" * 15, "-" * 16})
_NAMES: Final = re.compile(r"(?P<host>[A-Za-z0-9][\w.,\[\]-]{0,1000})(?: \(\d{1,6}\))?")
#: Where a beginning holds one of these banners.
_ANY: Final = re.compile(
    rf"^{_ANSIBLE.pattern}$|^(?P<rule>-{{15,16}})\n{_NAMES.pattern.replace('host', 'names')}\n(?P=rule)$", re.MULTILINE
)


def holds_banners(head: str) -> bool:
    """Whether a beginning has the name of a host above that host's output."""
    return ("\n" in head) and _ANY.search(head) is not None


def below_banners(numbered: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str, str, bool]]:
    """(number, text, host, whether it is the banner) of every line; rules of a banner are left out."""
    host = ""
    held: list[tuple[int, str]] = []
    for number, text in numbered:
        if len(held) == 2 and text == held[0][1]:
            host = _name(held[1][1])
            yield held[1][0], held[1][1], host, True
            held = []
            continue
        if len(held) == 1 and _NAMES.fullmatch(text):
            held.append((number, text))
            continue
        for before in held:
            yield *before, host, False
        held = []
        if text in _RULES:
            held = [(number, text)]
        elif " | " in text[:140] and (match := _ANSIBLE.fullmatch(text[:4000])) is not None:
            host = match["host"]
            yield number, text, host, True
        else:
            yield number, text, host, False
    for before in held:
        yield *before, host, False


def _name(text: str) -> str:
    match = _NAMES.fullmatch(text)
    return match["host"] if match is not None else text
