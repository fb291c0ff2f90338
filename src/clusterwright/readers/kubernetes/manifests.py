"""Kubernetes objects in a text: JSON or YAML, one or many documents, lists of kubectl, excerpts pasted from an issue.

Lines that a shell or an author put between (prompts, fences, `...`) are taken out and counted; a document that cannot
be parsed is kept as rejected while the others are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from textwrap import dedent
from typing import Any, Final

from clusterwright.model.observations import Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.documents import Duplicate, Patience, find_json, load_json, load_yaml
from clusterwright.readers.kubernetes.shapes import Fields, guess_kind, rows, table, word
from clusterwright.readers.refusing import Refused

_PROMPT: Final = re.compile(
    r"\s{0,8}(?:[\w.@~:/\[\]()-]{0,80} ?)?[$#%>❯] ?(?:sudo |watch |k3s |microk8s )?(?:kubectl|oc|helm|k|cat|yq|jq)\s.*"
)
_FENCE: Final = re.compile(r"\s{0,8}```[\w-]{0,20}\s*")
_ELISION: Final = re.compile(
    r"\s*(?:- ?)?(?:\.{3,}|…|\[(?:\.{3}|…|snip|truncated|omitted)\]|<(?:\.{3}|snip|snipped|truncated|omitted)>"
    r"|\((?:\.{3}|…)\)|\{\.{3}\})\s*,?\s*|\s*# ?(?:\.{3}|…|\[\.{3}\]|snip\b|truncated\b|omitted\b).*"
)
_ELIDED_VALUE: Final = re.compile(r"(?P<key>\s*(?:- )?[\w./-]{1,120}:)\s+(?:\.{3}|…|\[\.{3}\]|\{\.{3}\}|<\.{3}>)\s*")
_COMMENTED: Final = re.compile(r"#\s*kind:\s*[\"']?(?P<kind>[A-Z]\w+)")


@dataclass(frozen=True, slots=True)
class Thing:
    """One object.

    Args:
        group: of its API, "" for the core.
        version: of its API, such as `v1beta1`; "" in an excerpt.
        kind: as written, or guessed from its fields in an excerpt; "" when neither is known.
        line: where it begins; 0 when unknown.
        excerpt: whether apiVersion and kind are not in the text.
    """

    group: str
    version: str
    kind: str
    name: str
    namespace: str
    body: Fields
    line: int = 0
    excerpt: bool = False

    @property
    def spec(self) -> Fields:
        """Its spec, empty when it has none."""
        return table(self.body.get("spec"))

    @property
    def status(self) -> Fields:
        """Its status, empty when it has none."""
        return table(self.body.get("status"))

    @property
    def metadata(self) -> Fields:
        """Its metadata, empty when it has none."""
        return table(self.body.get("metadata"))

    @property
    def dumped(self) -> bool:
        """Whether an API server wrote it (a uid is there), so that its status belongs to it."""
        return bool(self.metadata.get("uid"))


@dataclass(slots=True)
class Manifest:
    """The objects of a text and what was not read of it."""

    things: list[Thing] = field(default_factory=list)
    elisions: list[int] = field(default_factory=list)
    rejected: list[tuple[int, str, str]] = field(default_factory=list)
    duplicates: list[Duplicate] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    commented: list[str] = field(default_factory=list)
    comments: list[tuple[int, str]] = field(default_factory=list)
    patience: Patience = field(default_factory=Patience)

    def tell(self, builder: RunBuilder) -> None:
        """Put into a run what was not read."""
        for line, text, why in self.rejected:
            builder.reject(line, text, why)
        for part in self.missing:
            builder.missing(part)
        if self.elisions:
            shown = ", ".join(str(line) for line in self.elisions[:3])
            builder.missing(f"what stood where line {shown} says that something was left out")
        for duplicate in self.duplicates[:20]:
            builder.notice(
                "duplicate-key",
                f"the key {duplicate.key!r} stands {len(duplicate.values)} times in one object; its first value is "
                "read",
            )
        if self.commented:
            kinds = ", ".join(sorted(set(self.commented)))
            builder.notice(
                "commented-objects",
                f"comments hold what looks like objects ({len(self.commented)}: {kinds}): they are not read",
                Weight.INFO,
            )


def load_manifest(text: str) -> Manifest:
    """Read every object of a text.

    Raises:
        Refused: when it is a template, or when no document of it can be parsed.
    """
    manifest = Manifest()
    lines = text.split("\n")
    start = next((line.lstrip() for line in lines if line.strip() and not _PROMPT.fullmatch(line)), "")
    if (start.startswith(("{", "[")) and not start.startswith("{{")) or _json_after_noise(lines):
        _load_json(lines, manifest)
    else:
        _load_yaml(lines, manifest)
    if not manifest.things and not manifest.rejected:
        raise Refused("holds no object")
    return manifest


def _json_after_noise(lines: list[str]) -> bool:
    """Whether a JSON document begins after some warnings of a tool, which are no YAML."""
    head = [line for line in lines[:20] if line.strip()]
    begins = any(line.rstrip() == "{" or line.startswith('{"') for line in head)
    return begins and not any(re.match(r"\w+:( |$)", line) for line in head)


def _load_json(lines: list[str], manifest: Manifest) -> None:
    cleaned = ["" if _PROMPT.fullmatch(line) or _FENCE.fullmatch(line) else line for line in lines]
    text = "\n".join(cleaned)
    place = find_json(text)
    first = text.count("\n", 0, place[0]) if place else 0
    ends = [n for n, line in enumerate(cleaned) if line.rstrip() == "}" and n >= first]
    begins = [first]
    for end in ends:
        following = next((n for n in range(end + 1, len(cleaned)) if cleaned[n].strip()), None)
        if following is not None and cleaned[following].startswith("{"):
            begins.append(following)
    for begin, end in zip(begins, [*begins[1:], len(cleaned)], strict=True):
        document = load_json("\n".join(cleaned[begin:end]), first_line=begin + 1)
        manifest.duplicates += document.duplicates
        manifest.things.extend(_expand(document.value, begin + 1, manifest))


def _load_yaml(lines: list[str], manifest: Manifest) -> None:
    cleaned = [_clean(number, line, manifest) for number, line in enumerate(lines, 1)]
    failures: list[Refused] = []
    for first, block in _documents(cleaned):
        try:
            manifest.things.extend(_read_document(first, block, manifest))
        except Refused as refused:
            if "template" in refused.refusal.reason:
                raise _moved(refused, first) from None
            failures.append(_moved(refused, first))
            manifest.rejected.append((failures[-1].refusal.line or first, block[0], refused.refusal.reason))
    if failures and not manifest.things:
        raise failures[0]


def _clean(number: int, line: str, manifest: Manifest) -> str:
    """The line without what an author put in; prompts, fences and elisions leave an empty one."""
    if "#" in line:
        if (found := _COMMENTED.match(line.lstrip())) is not None:
            manifest.commented.append(found["kind"])
        elif not line.lstrip().startswith("#"):
            manifest.comments.append((number, line))
    if _ELISION.fullmatch(line):
        manifest.elisions.append(number)
        return ""
    if (elided := _ELIDED_VALUE.fullmatch(line)) is not None:
        manifest.elisions.append(number)
        return elided["key"]
    return "" if _PROMPT.fullmatch(line) or _FENCE.fullmatch(line) else line


def _documents(lines: list[str]) -> Iterator[tuple[int, list[str]]]:
    """(line at which it begins, its lines) of every YAML document that is not empty."""
    begin = 0
    for n in [*(n for n, line in enumerate(lines) if re.match(r"---(?:\s|$)", line)), len(lines)]:
        block = lines[begin:n]
        if any(line.strip() and not line.lstrip().startswith("#") for line in block):
            skipped = next(i for i, line in enumerate(block) if line.strip() and not line.lstrip().startswith("#"))
            yield begin + skipped + 1, block[skipped:]
        begin = n + 1


def _read_document(first: int, block: list[str], manifest: Manifest) -> Iterator[Thing]:
    at = next((n for n, line in enumerate(block[:50]) if re.fullmatch(r"items:\s*", line)), None)
    if at is not None and not any(re.match(r"(?:spec|data):", line) for line in block[:at]):
        yield from _read_list(first, block, at, manifest)
        return
    for value in _parse(first, block, manifest):
        yield from _expand(value, first, manifest)


def _read_list(first: int, block: list[str], at: int, manifest: Manifest) -> Iterator[Thing]:
    """Items of a list that kubectl wrote, each parsed alone: lines are known, and a cut end loses only the last one."""
    indent = next((len(line) - len(line.lstrip()) for line in block[at + 1 :] if line.lstrip().startswith("- ")), None)
    end = next((n for n in range(at + 1, len(block)) if re.match(r"[A-Za-z]", block[n])), len(block))
    if not any(line.startswith("kind:") for line in (*block[:at], *block[end:])):
        manifest.missing.append("the end of the list (kind: List)")
    if indent is None:
        return
    mark = " " * indent + "- "
    begins = [n for n in range(at + 1, end) if block[n].startswith(mark)]
    if not begins:
        manifest.missing.append("the items of the list")
        return
    kind = next((line.split(":", 1)[1].strip() for line in (*block[:at], *block[end:]) if line.startswith("kind:")), "")
    for begin, stop in zip(begins, [*begins[1:], end], strict=True):
        item = [" " * len(mark) + block[begin][len(mark) :], *block[begin + 1 : stop]]
        try:
            for value in _parse(first + begin, item, manifest):
                yield from _expand(value, first + begin, manifest, kind)
        except Refused as refused:
            manifest.rejected.append((first + begin, block[begin], refused.refusal.reason))


def _parse(first: int, block: list[str], manifest: Manifest) -> list[Any]:
    """The document's value; a document whose last lines alone are torn is read without them."""
    text = dedent("\n".join(_with_parents(block)))
    try:
        return load_yaml(text, manifest.patience)
    except Refused as refused:
        last = max((n for n, line in enumerate(block) if line.strip()), default=0)
        if "template" in refused.refusal.reason or last < 3 or refused.refusal.line < last:
            raise
        value = load_yaml(dedent("\n".join(_with_parents(block[:last]))), manifest.patience)
        manifest.missing.append(f"everything from line {first + last} on, where the text is torn")
        manifest.rejected.append((first + last, block[last], refused.refusal.reason))
        return value


def _with_parents(block: list[str]) -> list[str]:
    """The lines of an excerpt that begins deep inside an object, with a key for every parent that was cut off."""
    indents = [
        len(line) - len(line.lstrip(" ")) for line in block if line.strip() and not line.lstrip().startswith("#")
    ]
    lowest = min(indents, default=0)
    if not indents or indents[0] == lowest:
        return block
    levels, depth = [], indents[0]
    for indent in indents:
        if indent < depth:
            levels.append(indent)
            depth = indent
    return [*(" " * level + f"cut-parent-{level}:" for level in reversed(levels)), *block]


def _moved(refused: Refused, first: int) -> Refused:
    refusal = refused.refusal
    return Refused(refusal.reason, refusal.line + first - 1 if refusal.line else first, refusal.found)


def _expand(value: object, line: int, manifest: Manifest, kind: str = "") -> Iterator[Thing]:
    """The objects of a document, those of lists one by one."""
    if isinstance(value, list):
        for item in value:
            yield from _expand(item, line, manifest)
        return
    if not isinstance(value, dict):
        if value is not None:
            manifest.rejected.append((line, str(value)[:200], "no object with fields"))
        return
    body: Fields = {str(key): item for key, item in value.items()}
    if isinstance(body.get("items"), list) and not body.get("spec"):
        inner = word(body.get("kind"))
        if not inner:
            manifest.missing.append("the kind of the list")
        for item in rows(body["items"]):
            yield from _expand(item, line, manifest, inner)
        return
    yield _thing(body, line, kind)


def _thing(body: Fields, line: int, list_kind: str) -> Thing:
    api = word(body.get("apiVersion"))
    group, _, version = api.rpartition("/")
    kind = word(body.get("kind"))
    excerpt = not kind
    if excerpt and list_kind not in ("", "List") and list_kind.endswith("List"):
        kind, excerpt = list_kind.removesuffix("List"), False
    if excerpt:
        group, kind, body = guess_kind(body)
    metadata = table(body.get("metadata"))
    name = word(metadata.get("name")) or word(metadata.get("generateName"))
    return Thing(group, version, kind, name, word(metadata.get("namespace")), body, line, excerpt)
