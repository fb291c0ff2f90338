"""Bytes → clean lines, in constant memory, with a record of everything that was removed or replaced.

Removed: byte order marks, terminal escapes, what a carriage return overwrote, rank and host prefixes and names above
a host's output (kept beside the line), quote marks of mail and Markdown, and lines that ssh, kubectl or a shell put
between. Undecodable bytes become U+FFFD and are counted.
"""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import chain
from typing import Final, NamedTuple

from clusterwright.readers.banners import below_banners, holds_banners
from clusterwright.readers.refusing import Refused

#: Longest line that is read; a longer one is cut and counted. `nvidia-smi` and slurm.conf stay far below.
LONGEST_LINE: Final = 256 * 1024
#: Largest output that is read as a whole document (JSON, XML, YAML), in bytes.
LARGEST_DOCUMENT: Final = 64 * 1024 * 1024
#: What recognition looks at, in bytes.
HEAD: Final = 64 * 1024
#: What it looks at where that is not enough: logs of jobs begin with pages of a shell's trace.
LONG_HEAD: Final = 1024 * 1024

_ARCHIVES: Final = (
    (b"\x1f\x8b", "gzip"), (b"PK\x03\x04", "zip"), (b"PK\x05\x06", "zip"), (b"BZh", "bzip2"),
    (b"\xfd7zXZ\x00", "xz"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"7z\xbc\xaf\x27\x1c", "7z"), (b"\x7fELF", "ELF program"),
    (b"\x89PNG", "PNG picture"), (b"%PDF", "PDF document"), (b"SQLite format 3\x00", "SQLite database"),
    (b"\xd0\xcf\x11\xe0", "Office document"), (b"\x04\x22\x4d\x18", "lz4"),
)  # fmt: skip
_ESCAPE: Final = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,512}(?:\x07|\x1b\\)|[PX^_][^\x1b]{0,512}\x1b\\|[ -/]*[0-~])"
)
#: The separators 0x1E and 0x1F stay: squeue scripts ask for them between records and fields.
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1d\x7f]")
#: Tags that nothing but a launcher writes: mpirun --tag-output, torchrun (in its forms).
_TAGS: Final = re.compile(r"(?P<tag>\[\d+,\d+\](?:<(?:stdout|stderr|stddiag)>)?:?|\[(?:default|rank|worker)\d+\]:) ?")
#: Prefixes that other text could have too; they count only where most lines have them.
_VOTED: Final = {
    "srun label": re.compile(r"(?P<tag> *\d{1,6}): (?=\S|\s)|(?P<bare> *\d{1,6}): ?$"),
    "host prefix": re.compile(
        r"(?!slurm(?:ctld|d|dbd|stepd|restd):)"
        r"(?P<tag>[A-Za-z][\w.-]{1,63}|\d{1,3}(?:\.\d{1,3}){3}): (?=\S|  |\t)"
        r"|(?P<bare>[A-Za-z][\w.-]{1,63}|\d{1,3}(?:\.\d{1,3}){3}): ?$"
    ),
    "quote mark": re.compile(r"(?P<tag>)(?P<bare>)>(?: |$)"),
}
_NOISE: Final = re.compile(
    r"Warning: Permanently added .* to the list of known hosts\.?$"
    r"|Defaulted container .* out of: .*$"
    r"|Connection to .* closed\.?$"
    r"|Pseudo-terminal will not be allocated because stdin is not a terminal\.?$"
    r"|Unable to use a TTY - input is not a terminal or the right kind of file$"
    r"|If you don't see a command prompt, try pressing enter\.$"
    r"|stdin is not a tty$|mesg: ttyname failed: .*$"
)
#: Most hosts of one file whose names are kept.
_MOST_HOSTS: Final = 20_000
#: What is decoded at a time, in bytes.
_PIECE: Final = 64 * 1024
#: Bytes of lines that need no cleaning.
_PLAIN: Final = bytes((*b"\t\n", *range(0x20, 0x7F)))
#: How a line of ssh, kubectl or a shell begins; a quick look before patterns.
_NOISY: Final = frozenset("WDCPUIsm")
_TAGGED: Final = _NOISY | {"["}


class Line(NamedTuple):
    """One clean line.

    Args:
        number: in the file, from 1.
        prefix: launcher tag or host that stood before it, such as `rank6` or `gpu-001`; "" if none.
    """

    number: int
    text: str
    prefix: str = ""


_new_line: Final = tuple.__new__  # a million lines a file: without the calls of the generated constructor


class Source:
    """An output to be read once, as lines or as a whole.

    `hosts` are the names that stood before the lines read so far, with the first line of each: (number, text).

    Args:
        chunks: its bytes, in pieces of any size.
        name: of the file, a hint for recognition; "" when unknown.
    """

    def __init__(self, chunks: Iterable[bytes], name: str = "") -> None:
        self.name = name
        self._chunks = iter(chunks)
        self._counts: Counter[str] = Counter()
        self.hosts: dict[str, tuple[int, str]] = {}
        self._begun = False
        self._start = self._take(HEAD)
        encoding = _encoding_of(self._start)
        if encoding != "utf-8":
            self._counts[f"{encoding} read as UTF-8"] += 1
            self._chunks = _recode(chain((self._start,), self._chunks), encoding)
            self._start = self._take(HEAD)
        self._head = self._decode_head(HEAD)
        self._bannered = holds_banners(self._head)
        self._voted = None if self._bannered else _vote(self._head)

    @cached_property
    def head(self) -> str:
        """Beginning of the output, clean, without prefixes; for recognition."""
        return "\n".join(line.text for line in self._split_prefixes(_enumerate(self._head), Counter()))

    def look_further(self) -> str:
        """A longer beginning of the output, as `head`; only before it is read, for where `head` shows nothing known."""
        if len(self._start) < LONG_HEAD:
            self._start += self._take(LONG_HEAD - len(self._start))
        text = self._decode_head(LONG_HEAD)
        return "\n".join(line.text for line in self._split_prefixes(_enumerate(text), Counter()))

    @property
    def empty(self) -> bool:
        """Whether there is nothing but white space at the beginning."""
        return not self._head.strip()

    @property
    def cleaned(self) -> tuple[tuple[str, int], ...]:
        """What was removed or replaced so far, and how often."""
        return tuple(sorted(self._counts.items()))

    def lines(self, *, prefixes: bool = True) -> Iterator[Line]:
        """Clean lines, read as they are needed; can be called once.

        Args:
            prefixes: split launcher tags and host names from the lines; without it they stay in the text.
        """
        if self._bannered:
            return self._split_banners(enumerate(chain.from_iterable(self._batches()), 1), self._counts)
        if prefixes and self._voted is not None:
            texts = chain.from_iterable(self._batches())
            return self._split_prefixes(enumerate(texts, 1), self._counts)
        return self._pass_lines(tags=prefixes)

    def text(self, *, prefixes: bool = False) -> str:
        """The whole output, clean; Refused when it is larger than LARGEST_DOCUMENT. Can be called once.

        Args:
            prefixes: strip launcher tags and host names.
        """
        held: list[str] = []
        size = 0
        for batch in self._batches(longest=LARGEST_DOCUMENT):
            size += sum(map(len, batch)) + len(batch)
            if size > LARGEST_DOCUMENT:
                raise Refused(f"larger than {LARGEST_DOCUMENT // 2**20} MiB; split it")
            held += batch
        if not prefixes:
            return "\n".join(held)
        return "\n".join(line.text for line in self._split_prefixes(enumerate(held, 1), self._counts))

    def _take(self, wanted: int) -> bytes:
        parts, size = [], 0
        for chunk in self._chunks:
            parts.append(chunk)
            size += len(chunk)
            if size >= wanted:
                break
        return b"".join(parts)

    def _decode_head(self, size: int) -> str:
        text = self._start[:size].removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")
        text = _ESCAPE.sub("", text).replace("\r\n", "\n")
        return _CONTROL.sub("", text.replace("\r", "\n"))

    def _pass_lines(self, *, tags: bool) -> Iterator[Line]:
        """Lines of an output in which no prefix was voted; only those that begin remarkably need a closer look."""
        remarkable = _TAGGED if tags else _NOISY
        number = 0
        for batch in self._batches():
            for text in batch:
                number += 1
                if text[:1] not in remarkable:
                    yield _new_line(Line, (number, text, ""))
                elif tags:
                    if (line := self._split_prefix(number, text, self._counts)) is not None:
                        yield line
                elif not self._is_noise(text, self._counts):
                    yield _new_line(Line, (number, text, ""))

    def _batches(self, longest: int = LONGEST_LINE) -> Iterator[list[str]]:
        """Clean lines without their ends, some at a time; a line above `longest` bytes is cut and counted."""
        held: list[bytes] = []
        size = 0
        for piece in self._pieces():
            last = piece.rfind(b"\n")
            if last >= 0:
                if size + last <= longest:
                    block = b"".join((*held, piece[:last])) if held else piece[:last]
                    yield self._clean_block(block, longest)
                else:
                    first, *others = piece[:last].split(b"\n")
                    yield [self._clean(self._decode(held, first, longest, size))]
                    yield [self._clean(self._decode([], end, longest, 0)) for end in others]
                held, size, piece = [], 0, piece[last + 1 :]
            if piece and size <= longest:
                held.append(piece)
            size += len(piece)
        if size:
            yield [self._clean(self._decode(held, b"", longest, size))]

    def _clean_block(self, block: bytes, longest: int) -> list[str]:
        """Lines of whole lines that are together no longer than one line may be, so that none is cut."""
        if not block.translate(None, _PLAIN):
            self._begun = True
            return block.decode("ascii").split("\n")
        return [self._clean(self._decode([], end, longest, 0)) for end in block.split(b"\n")]

    def _decode(self, parts: list[bytes], end: bytes, longest: int, size: int) -> str:
        raw = b"".join((*parts, end)) if parts else end
        if max(size + len(end), len(raw)) > longest:
            self._counts["over-long lines cut"] += 1
            raw = raw[:longest]
        if not self._begun:
            self._begun = True
            if raw.startswith(b"\xef\xbb\xbf"):
                self._counts["byte order mark"] += 1
                raw = raw[3:]
        text = raw.decode("utf-8", "replace")
        if "\ufffd" in text:
            self._counts["undecodable bytes"] += text.count("\ufffd")
        return text

    def _pieces(self) -> Iterator[bytes]:
        start, self._start = self._start, b""
        for chunk in chain((start,), self._chunks):
            if len(chunk) <= _PIECE:
                yield chunk
            else:
                yield from (chunk[i : i + _PIECE] for i in range(0, len(chunk), _PIECE))

    def _clean(self, text: str) -> str:
        if text.isprintable():
            return text
        if text.endswith("\r"):
            self._counts["carriage returns at line ends"] += 1
            text = text.rstrip("\r")
        if "\x1b" in text:
            text, count = _ESCAPE.subn("", text)
            self._counts["terminal escapes"] += count
        if "\r" in text:
            self._counts["overwritten by a carriage return"] += text.count("\r")
            text = text.rsplit("\r", 1)[1]
        text, count = _CONTROL.subn("", text)
        if count:
            self._counts["control characters"] += count
        return text

    def _is_noise(self, text: str, counts: Counter[str]) -> bool:
        if text[:1] in _NOISY and _NOISE.match(text):
            counts["lines of ssh or kubectl"] += 1
            return True
        return False

    def _split_banners(self, numbered: Iterable[tuple[int, str]], counts: Counter[str]) -> Iterator[Line]:
        named = ""
        for number, text, host, banner in below_banners(numbered):
            if banner:
                counts["banners of hosts"] += 1
                named = host if counts is self._counts and host not in self.hosts else ""
            if named and (banner or text.strip()):
                self._note_host(host, number, text)
                named = host if banner else ""
            if not banner and not self._is_noise(text, counts):
                yield _new_line(Line, (number, text, host))

    def _split_prefixes(self, numbered: Iterable[tuple[int, str]], counts: Counter[str]) -> Iterator[Line]:
        if self._bannered:
            return self._split_banners(numbered, counts)
        lines = (self._split_prefix(number, text, counts) for number, text in numbered)
        return (line for line in lines if line is not None)

    def _note_host(self, host: str, number: int, text: str) -> None:
        if text.strip() and (host in self.hosts or len(self.hosts) < _MOST_HOSTS):
            self.hosts[host] = (number, text.strip()[:200])

    def _split_prefix(self, number: int, text: str, counts: Counter[str]) -> Line | None:
        """The line without its prefix, None for one that ssh, kubectl or a shell put between."""
        prefix, voted = "", self._voted
        tag = _TAGS.match(text) if text.startswith("[") else None
        if tag is not None:
            prefix, text = _name_of(tag["tag"]), text[tag.end() :]
            counts["launcher tags"] += 1
        elif voted is not None:
            found = _VOTED[voted].match(text)
            if found is not None:
                prefix, text = (found["tag"] or found["bare"]).strip(), text[found.end() :]
                counts[f"{voted}es" if voted.endswith("x") else f"{voted}s"] += 1
                if prefix not in self.hosts and voted == "host prefix" and counts is self._counts:
                    self._note_host(prefix, number, text)
        return None if self._is_noise(text, counts) else _new_line(Line, (number, text, prefix))


def _name_of(tag: str) -> str:
    """`rank6` of `[rank6]:`, `1,0` of `[1,0]<stdout>:`."""
    return tag[1 : tag.index("]")]


def _enumerate(text: str) -> Iterable[tuple[int, str]]:
    return enumerate(text.split("\n"), 1)


def _recode(chunks: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    for chunk in chunks:
        yield decoder.decode(chunk).encode("utf-8", "replace")
    yield decoder.decode(b"", True).encode("utf-8", "replace")


def _encoding_of(start: bytes) -> str:
    """`utf-8`, or UTF-16 by its mark; Refused for an archive or a binary file."""
    for magic, name in _ARCHIVES:
        if start.startswith(magic):
            raise Refused(f"this is a {name} file, not text; unpack or export it first", found=repr(start[:8]))
    if start.startswith(b"\xff\xfe"):
        return "utf-16"
    if start.startswith(b"\xfe\xff"):
        return "utf-16"
    zeros = start.count(0)
    if zeros > 16 and zeros > len(start) // 100:
        raise Refused("this is a binary file, not text", found=repr(start[:16]))
    return "utf-8"


def _vote(head: str) -> str | None:
    """The prefix form that nearly every line of the beginning has, or None."""
    lines = [line for line in head.split("\n")[:400] if line.strip()]
    if len(lines) < 3:
        return None
    for name, form in _VOTED.items():
        found = [m for m in map(form.match, lines) if m]
        tags = {m["tag"] or m["bare"] for m in found}
        if len(found) >= 0.9 * len(lines) and len(tags) <= max(1, len(found) // 3):
            return name
    return None
