"""Mutations: whatever happens to a file, it is read, planned and reviewed, or refused with located problems.

The mutated example is cut into its sections, which are read as separate files: only the mutated one is read anew, so
that thousands of mutations take seconds. Whole-file mutations (truncation, random bytes) are read whole. Every mutation
follows from its number alone.
"""

from __future__ import annotations

import datetime
import os
import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import pytest

from clusterwright.app.loading import load_catalogue
from clusterwright.lib.errors import InvalidInput
from clusterwright.model.documents import Document
from clusterwright.model.nodes import MappingNode
from clusterwright.model.parsing import parse_architecture, parse_trees, read_tree
from clusterwright.model.sources import Source, decode_source
from clusterwright.plan.planning import plan_architecture
from clusterwright.review.reviewing import review_document

EXAMPLE: Final = Path(__file__).parents[2] / "examples" / "two-workers" / "cluster.yaml"
TEXT: Final = EXAMPLE.read_text(encoding="utf-8")
TODAY: Final = datetime.date(2026, 11, 30)
#: Set for a search that takes many minutes: ten times as many mutations, and every valid one is planned and reviewed.
ALL: Final = bool(os.environ.get("ALL_MUTATIONS"))

Lines = list[str]
Mutation = Callable[[random.Random, Lines], Lines]


def cut(text: str) -> dict[str, Source]:
    """Section → its lines as a source of its own; `apiVersion` and `cluster` stay together."""
    sections = dict[str, Source]()
    for block in re.split(r"(?m)^(?=[a-z]\w*:)", text):
        name = block.partition(":")[0] if re.match(r"[a-z]", block) else "apiVersion"
        if name == "cluster" or name == "apiVersion":
            head = sections.get("head")
            sections["head"] = Source("head", (head.text if head else "") + block)
        else:
            sections[name] = Source(name, block)
    return sections


SECTIONS: Final = cut(TEXT)
TREES: Final = {name: read_tree(source) for name, source in SECTIONS.items()}


def check(name: str, lines: Sequence[str], what: str, used: bool) -> bool:
    """Read one mutated section among the others; True when the whole is valid, and then used where asked."""
    source = Source(name, "".join(lines))
    try:
        trees: list[MappingNode] = [read_tree(source) if n == name else tree for n, tree in TREES.items()]
        sources = [source if n == name else s for n, s in SECTIONS.items()]
        document = parse_trees(trees, sources)
    except InvalidInput as error:
        assert_located(error, what)
        return False
    if used or ALL:
        use(document)
    return True


def use(document: Document) -> None:
    """Plan and review; neither may raise, whatever the values."""
    catalogue = load_catalogue()
    plan = plan_architecture(document, catalogue)
    review = review_document(document, catalogue, plan, today=TODAY)
    for finding in review.findings:
        assert finding.place.line >= 1, finding
        assert finding.message
        assert finding.action


def assert_located(error: InvalidInput, what: str) -> None:
    assert error.problems, what
    for problem in error.problems:
        assert problem.place.file != "input", (what, problem)
        assert problem.place.line >= 1, (what, problem)
        assert problem.place.column >= 1, (what, problem)
        assert problem.message, what
        text = str(problem)
        assert "pydantic" not in text, text
        assert "type=" not in text, text
        assert "Input should" not in text, text
        assert len(text) < 2000, text


ANY_VALUE: Final = r"(?<=: )[^\s{\[#,}\]][^\n,}\]]*"
NUMBER: Final = r"(?<=: )(?:[$0-9][^\n,}\]]*|\"\S+\[[0-9-]+\]\")"


def _at_value(rng: random.Random, lines: Lines, change: Callable[[str], str], pattern: str = ANY_VALUE) -> Lines:
    """The lines with one scalar value, block or flow, changed."""
    spots = [(i, m) for i, line in enumerate(lines) for m in re.finditer(pattern, line)]
    if not spots:
        return lines
    i, match = rng.choice(spots)
    changed = lines[i][: match.start()] + change(match.group()) + lines[i][match.end() :]
    return [*lines[:i], changed, *lines[i + 1 :]]


def mistyped_key(rng: random.Random, lines: Lines) -> Lines:
    spots = [(i, m) for i, line in enumerate(lines) for m in re.finditer(r"[\w-]+(?=:)", line)]
    i, match = rng.choice(spots)
    word, at = match.group(), rng.randrange(len(match.group()))
    letter = rng.choice("aeinotsrx_-")
    typo = rng.choice(
        [word[:at] + word[at + 1 :], word[:at] + letter + word[at:], word.upper(), word + "s", word[::-1]]
    )
    return [*lines[:i], lines[i][: match.start()] + typo + lines[i][match.end() :], *lines[i + 1 :]]


def wrong_unit(rng: random.Random, lines: Lines) -> Lines:
    def change(value: str) -> str:
        number = re.match(r"[$€]?[\d.,]+", value)
        unit = rng.choice(UNITS)
        return f"{number.group() if number else 5} {unit}" if rng.random() < 0.8 else f"{value}{unit}"

    return _at_value(rng, lines, change, NUMBER)


UNITS: Final = [
    "GB", "Gb", "GiB", "GB/s", "Gb/s", "gb", "TB/s", "b", "B", "m", "s", "min", "%", "tokens", "req/s", "kW", "W",
    "node", "$/GPU-h", "$/Mtok", "$/GB-month", "furlong",
]  # fmt: skip

IMPOSSIBLE: Final = [
    "0", "-1", "1e308", "1e-308", "1e400", "-1e400", ".inf", "-.inf", ".nan", "0.0000001", "0x7fffffff", "1e9",
    "1000000000", "99999999999999999999", "-5%", "0%", "100%", "101%", "0 s", "1e24 s", "1e-24 s", "0 GB", "1 B",
    "1e24 B", "0 Gb/s", "1e24 b/s", "1e-24 b/s", "1e24 B/s", "1e-24 B/s", "0 req/s", "1e24 req/s", "1e-24 req/s",
    "0 tokens",
    "1 tokens", "1e24 tokens", "0 nodes", "99999 nodes", "1.5 nodes", "$0", "$0/GPU-h", "$1e24/GPU-h", "€5/GPU-h",
    "$0/Mtok", "$1e24/Mtok", "0 kW", "1e24 W", "n[1-200000]", "n[1-200001]", "2026-02-30", "0001-01-01", "9999-12-31",
]  # fmt: skip


def impossible_value(rng: random.Random, lines: Lines) -> Lines:
    return _at_value(rng, lines, lambda _: rng.choice(IMPOSSIBLE), NUMBER)


def swapped_type(rng: random.Random, lines: Lines) -> Lines:
    others = ["[a, b]", "{a: b}", "", "~", "true", "false", "7", "1.5", "''", "[]", "{}", "[[1]]", "2026-01-01", "*x"]
    return _at_value(rng, lines, lambda _: rng.choice(others))


def another_value(rng: random.Random, lines: Lines) -> Lines:
    return _at_value(rng, lines, lambda _: rng.choice(WORDS))


WORDS: Final = sorted({m.group() for m in re.finditer(r"(?<=: )[^\s{\[#][^\n,}\]]*", TEXT)})


def duplicated_block(rng: random.Random, lines: Lines) -> Lines:
    start = rng.randrange(len(lines))
    end = min(len(lines), start + rng.randrange(1, 12))
    at = rng.choice([end, rng.randrange(len(lines))])
    return [*lines[:at], *lines[start:end], *lines[at:]]


def moved_lines(rng: random.Random, lines: Lines) -> Lines:
    moved = list(lines)
    block = [moved.pop(rng.randrange(len(moved))) for _ in range(min(len(moved) - 1, rng.randrange(1, 4)))]
    at = rng.randrange(len(moved) + 1)
    return [*moved[:at], *block, *moved[at:]]


def deleted_lines(rng: random.Random, lines: Lines) -> Lines:
    start = rng.randrange(len(lines))
    return lines[:start] + lines[min(len(lines), start + rng.randrange(2, 12)) :]


def changed_indentation(rng: random.Random, lines: Lines) -> Lines:
    i = rng.randrange(len(lines))
    indent = rng.choice(["", " ", "  ", "   ", "\t", "    "])
    return [*lines[:i], indent + lines[i].lstrip(), *lines[i + 1 :]]


def changed_characters(rng: random.Random, lines: Lines) -> Lines:
    text = list("".join(lines))
    for _ in range(rng.randrange(1, 4)):
        text[rng.randrange(len(text))] = rng.choice("{}[]:,&*#?|-<>=!%@`'\"\\\n\t \0\x07é\u2028🚀a1.")
    return "".join(text).splitlines(keepends=True)


#: Mutation → (how many, one in so many valid ones is used).
MUTATIONS: Final[dict[Mutation, tuple[int, int]]] = {
    mistyped_key: (150, 12),
    wrong_unit: (200, 12),
    impossible_value: (400, 3),
    swapped_type: (150, 12),
    another_value: (120, 12),
    duplicated_block: (80, 12),
    moved_lines: (80, 12),
    deleted_lines: (120, 12),
    changed_indentation: (80, 12),
    changed_characters: (150, 12),
}


@pytest.mark.parametrize("mutation", list(MUTATIONS), ids=lambda m: m.__name__)
def test_a_mutated_section_is_used_or_refused(mutation: Mutation) -> None:
    names = [n for n in SECTIONS for _ in range(SECTIONS[n].text.count("\n"))]
    outcomes = set[bool]()
    count, every = MUTATIONS[mutation]
    for seed in range(count * 10 if ALL else count):
        rng = random.Random(f"{mutation.__name__} {seed}")
        name = rng.choice(names)
        lines = mutation(rng, SECTIONS[name].text.splitlines(keepends=True))
        outcomes.add(check(name, lines, f"{mutation.__name__} {seed} in {name}:\n{''.join(lines)}", seed % every == 0))
    assert False in outcomes, "no mutation was refused: the test mutates nothing"


def test_every_single_line_can_go() -> None:
    refused = 0
    for name, source in SECTIONS.items():
        lines = source.text.splitlines(keepends=True)
        for i, line in enumerate(lines):
            refused += not check(name, lines[:i] + lines[i + 1 :], f"{name} without {line}", i % 16 == 0)
    assert refused > 20


@pytest.mark.parametrize("seed", range(15))
def test_a_truncated_file_is_used_or_refused(seed: int) -> None:
    rng = random.Random(f"truncated {seed}")
    data = TEXT.encode()[: rng.randrange(len(TEXT))]
    check_whole(data)


@pytest.mark.parametrize("seed", range(15))
def test_random_bytes_in_a_file_are_used_or_refused(seed: int) -> None:
    rng = random.Random(f"bytes {seed}")
    data = bytearray(TEXT.encode())
    for _ in range(rng.randrange(1, 6)):
        data[rng.randrange(len(data))] = rng.randrange(256)
    check_whole(bytes(data))


@pytest.mark.parametrize("size", [0, 1, 7, 100, 10_000])
@pytest.mark.parametrize("kind", ["any", "printable"])
def test_noise_is_refused(size: int, kind: str) -> None:
    rng = random.Random(f"{kind} {size}")
    check_whole(bytes(rng.randrange(256) if kind == "any" else rng.randrange(32, 127) for _ in range(size)))


def check_whole(data: bytes) -> None:
    try:
        document = parse_architecture(decode_source("cluster.yaml", data))
    except InvalidInput as error:
        assert_located(error, repr(data))
        return
    use(document)


def test_the_sections_are_the_file() -> None:
    parts = parse_trees(list(TREES.values()), list(SECTIONS.values()))
    assert parts.digest == parse_architecture(Source("whole", TEXT)).digest
