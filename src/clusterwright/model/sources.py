"""Sources: the named texts an architecture is read from, and what is no such text.

Source of the character set: YAML 1.2.2, section 5.1 (c-printable).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from clusterwright.lib.errors import InvalidInput, Place, Problem

#: An architecture of a thousand pools stays far below; larger files are something else.
MAX_BYTES: Final = 8 * 2**20

_BYTE_ORDER_MARK: Final = "\ufeff"
_UNPRINTABLE: Final = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LINE_END: Final = re.compile("\r\n|[\n\r\x85\u2028\u2029]")


@dataclass(frozen=True, slots=True)
class Source:
    """A text with the name that messages give it.

    Args:
        name: file name as the user wrote it, or a word such as `standard input`.
        text: decoded content.
    """

    name: str
    text: str

    @property
    def lines(self) -> tuple[str, ...]:
        """Lines without their ends, counted as YAML counts them."""
        return tuple(_LINE_END.split(self.text))

    def place_at(self, offset: int) -> Place:
        """Place of the character at `offset`, 0-based."""
        ends = [m.end() for m in _LINE_END.finditer(self.text, 0, offset)]
        return Place(self.name, len(ends) + 1, offset - (ends[-1] if ends else 0) + 1)


def decode_source(name: str, data: bytes) -> Source:
    """Read bytes as the text of a source.

    Raises:
        InvalidInput: when there are more than MAX_BYTES, or the bytes are not UTF-8; names the first bad byte.
    """
    if len(data) > MAX_BYTES:
        raise InvalidInput(_too_large(name))
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InvalidInput(Problem(Place(name, 1, 1), "", "this is UTF-16", "save the file as UTF-8"))
    try:
        return Source(name, data.decode("utf-8"))
    except UnicodeDecodeError as error:
        before = Source(name, data[: error.start].decode("utf-8"))
        place = before.place_at(len(before.text))
        message = f"byte 0x{data[error.start]:02x} is not UTF-8"
        raise InvalidInput(Problem(place, "", message, "save the file as UTF-8")) from None


def checked_source(source: Source) -> Source:
    """The source without a byte order mark.

    Raises:
        InvalidInput: on a text that is too large or holds characters that YAML forbids.
    """
    text = source.text.removeprefix(_BYTE_ORDER_MARK)
    # A character is at most four bytes: the exact count is needed only near the limit.
    if len(text) > MAX_BYTES or (len(text) > MAX_BYTES // 4 and len(text.encode("utf-8", "replace")) > MAX_BYTES):
        raise InvalidInput(_too_large(source.name))
    clean = Source(source.name, text)
    bad = _UNPRINTABLE.search(text)
    if bad is not None:
        code = ord(bad.group())
        message = "a NUL byte" if not code else f"the character U+{code:04X}, which YAML does not allow"
        raise InvalidInput(Problem(clean.place_at(bad.start()), "", f"found {message}", "is this a text file?"))
    return clean


def _too_large(name: str) -> Problem:
    limit = f"{MAX_BYTES // 2**20} MiB"
    return Problem(Place(name), "", f"the file is larger than {limit}", "is this an architecture file?")
