"""Salted commitments: a value can be withheld later, and the digest over all of them still verifies.

A record is a set of fields. Each is committed as SHA-256 over (salt, place, value); the record's digest covers only the
commitments. Whoever holds a field's opening (salt and value) can check it; without the opening the value cannot be
guessed, because the salt is 128 random bits. The construction is that of selective disclosure in RFC 9901 (SD-JWT),
section 4.2, with the place of the field inside the hash so that openings cannot be exchanged.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

#: Bytes of a salt.
SALT: Final = 16


def canonical(value: Any) -> bytes:
    """The one JSON text of a plain value: keys sorted, no spaces, UTF-8; ValueError for NaN or infinity."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "surrogatepass")


def digest_of(data: bytes) -> str:
    """`sha256:` and 64 hex digits."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def commit(salt: str, place: str, value: Any) -> str:
    """The commitment to the value of one field.

    Args:
        salt: hex digits, drawn at random for this field alone.
        place: where the field stands in the record.
    """
    return digest_of(canonical([salt, place, value]))


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a record.

    Args:
        place: keys and positions from the root, joined by `/`.
        commitment: to its value.
        salt: with `value` the opening of the commitment; "" when the field is withheld.
        value: what stands there, or a stand-in when withheld.
    """

    place: str
    commitment: str
    salt: str
    value: Any

    @property
    def withheld(self) -> bool:
        """Whether the value is only a stand-in."""
        return not self.salt

    @property
    def holds(self) -> bool:
        """Whether the opening fits the commitment; a withheld field has none and holds."""
        return self.withheld or hmac.compare_digest(commit(self.salt, self.place, self.value), self.commitment)


def open_field(place: str, value: Any, salt: str) -> Field:
    """A field with its opening."""
    return Field(place, commit(salt, place, value), salt, value)


def withhold(field: Field, stand_in: Any) -> Field:
    """The field without its opening."""
    return Field(field.place, field.commitment, "", stand_in)


def flatten(value: Any) -> list[tuple[str, Any]]:
    """(place, leaf) of every leaf of a plain value; empty lists and objects are leaves of their own."""
    found: list[tuple[str, Any]] = []
    _flatten(value, "", found)
    return found


def _flatten(value: Any, place: str, found: list[tuple[str, Any]]) -> None:
    items: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, Mapping):
        items = value.items()
    elif isinstance(value, list | tuple):
        items = enumerate(value)
    if isinstance(value, Mapping | list | tuple) and value:
        for key, item in items:
            step = str(key).replace("~", "~0").replace("/", "~1")  # as in JSON Pointer, RFC 6901
            _flatten(item, f"{place}/{'#' if not isinstance(value, Mapping) else '.'}{step}", found)
    else:
        found.append((place, [] if isinstance(value, tuple) else value))


def unflatten(leaves: Iterable[tuple[str, Any]]) -> Any:
    """The plain value whose leaves these are; ValueError when they do not fit together."""
    root: dict[str, Any] = {}
    for place, value in leaves:
        steps = place.split("/")[1:]
        node = root
        for step in ["", *steps][:-1]:
            inner = node.setdefault(step, {})
            if not isinstance(inner, dict):
                raise ValueError(f"{place}: a value stands above it")
            node = inner
        last = ["", *steps][-1]
        if last in node:
            raise ValueError(f"{place} stands twice")
        node[last] = value if not isinstance(value, dict) else _Leaf()
    return _rebuild(root.get(""))


class _Leaf(dict[str, Any]):
    """An empty object that is a leaf."""


def _rebuild(node: Any) -> Any:
    if not isinstance(node, dict) or isinstance(node, _Leaf):
        return {} if isinstance(node, _Leaf) else node
    kinds = {step[:1] for step in node}
    if kinds == {"#"}:
        order = sorted(node, key=lambda step: int(step[1:]))
        if [int(step[1:]) for step in order] != list(range(len(order))):
            raise ValueError("a list with gaps")
        return [_rebuild(node[step]) for step in order]
    if kinds != {"."}:
        raise ValueError("neither a list nor an object")
    return {step[1:].replace("~1", "/").replace("~0", "~"): _rebuild(item) for step, item in node.items()}


def line_salt(secret: str, number: int) -> str:
    """Salt of one line of a text, derived from the secret of the whole (HMAC-SHA-256, first 128 bits)."""
    return hmac.new(bytes.fromhex(secret), str(number).encode(), hashlib.sha256).hexdigest()[: 2 * SALT]


def root_of_lines(commitments: Sequence[str]) -> str:
    """The digest over the commitments of all lines of a text, in order."""
    whole = hashlib.sha256()
    for item in commitments:
        whole.update(item.encode() + b"\n")
    return f"sha256:{whole.hexdigest()}"
