"""YAML: what is read, with which places, and what is refused where."""

from __future__ import annotations

import time

import pytest

from clusterwright.lib.errors import InvalidInput, Problem
from clusterwright.model.nodes import MAX_DEPTH, MAX_NODES, MappingNode, ScalarNode, SequenceNode, read_nodes
from clusterwright.model.scalars import resolve_scalar
from clusterwright.model.sources import MAX_BYTES, Source, decode_source


def problems_of(text: str) -> tuple[Problem, ...]:
    with pytest.raises(InvalidInput) as caught:
        read_nodes(Source("f.yaml", text))
    return caught.value.problems


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("off", "off"),
        ("yes", "yes"),
        ("2026-12-01", "2026-12-01"),
        ("12:30:45", "12:30:45"),
        ("0x1F", 31),
        ("0o17", 15),
        ("017", 17),
        ("-5", -5),
        ("+5", 5),
        ("1.30", 1.3),
        (".5", 0.5),
        ("1e3", 1000.0),
        (".inf", float("inf")),
        ("1.36.2", "1.36.2"),
        ("1_000", "1_000"),
        ("--5", "--5"),
        (".", "."),
        ("-", "-"),
    ],
)
def test_plain_scalars_follow_the_core_schema_of_yaml_1_2(text: str, value: object) -> None:
    found = resolve_scalar(text)
    assert found == value
    assert isinstance(found, type(value))


@pytest.mark.parametrize("text", ["1.30", "007", "0x1F", "1e3", "+5"])
def test_numbers_keep_their_text(text: str) -> None:
    assert resolve_scalar(text).raw == text  # type: ignore[union-attr]


def test_a_number_of_many_digits_stays_text() -> None:
    assert resolve_scalar("9" * 5000) == "9" * 5000


def test_every_key_and_value_knows_its_place() -> None:
    node = read_nodes(Source("f.yaml", "a:\n  b: [1, x]\n  c: |\n    text\n"))
    assert isinstance(node, MappingNode)
    place, a = node.entries["a"]
    assert (place.line, place.column) == (1, 1)
    assert isinstance(a, MappingNode)
    b = a.entries["b"][1]
    assert isinstance(b, SequenceNode)
    assert [(n.place.line, n.place.column) for n in b.items] == [(2, 7), (2, 10)]
    c = a.entries["c"][1]
    assert isinstance(c, ScalarNode)
    assert c.value == "text\n"
    assert str(c.place) == "f.yaml:3:6"


def test_quoted_scalars_are_text() -> None:
    node = read_nodes(Source("f", "a: '1.30'\nb: \"true\"\nc: !!str 5\nd: ! 6\n"))
    assert isinstance(node, MappingNode)
    assert [n.value for _, n in node.entries.values() if isinstance(n, ScalarNode)] == ["1.30", "true", "5", "6"]


def test_anchors_and_merge_keys() -> None:
    text = "base: &b {x: 1, y: 2}\nmore: &m {z: 3, y: 9}\none: {<<: *b, y: 5}\ntwo: {<<: [*b, *m]}\nthree: *b\n"
    node = read_nodes(Source("f", text))
    assert isinstance(node, MappingNode)

    def plain(key: str) -> dict[str, object]:
        inner = node.entries[key][1]  # type: ignore[union-attr]
        assert isinstance(inner, MappingNode)
        return {k: n.value for k, (_, n) in inner.entries.items() if isinstance(n, ScalarNode)}

    assert plain("one") == {"y": 5, "x": 1}
    assert plain("two") == {"x": 1, "y": 2, "z": 3}
    assert plain("three") == {"x": 1, "y": 2}
    assert node.entries["three"][1].place.line == 5


def test_none_for_a_text_without_a_document() -> None:
    assert read_nodes(Source("f", "# only a comment\n")) is None


@pytest.mark.parametrize(
    ("text", "place", "says"),
    [
        ("a: 1\nb: 2\na: 3\n", (3, 1), "the key 'a' stands here twice"),
        ("a:\n\tb: 1\n", (2, 1), "a tab stands where YAML wants spaces"),
        ("a: b: c\n", (1, 5), "a ':' that cannot stand here"),
        ("a: 1\nnokey\nb: 2\n", (2, 1), "this line has no ':'"),
        ("a: 'x\n", (1, 4), "no closing quote"),
        ('a: "\\q"\n', (1, 6), "unknown escape"),
        ("a:\n  b: 1\n c: 2\n", (3, 2), "indentation"),
        ("a: [1, 2\n", (1, 4), "',' or ']'"),
        ("a: {b: 1\n", (1, 4), "',' or '}'"),
        ("a: @x\n", (1, 4), "cannot start a value"),
        ("a: !secret x\n", (1, 4), "tag !secret"),
        ("a: !!python/object:os.system x\n", (1, 4), "tag"),
        ("a: 1\n---\nb: 2\n", (2, 1), "second document"),
        ("%YAML 1.1\n---\na: off\n", (2, 1), "%YAML 1.1"),
        ("a: *nowhere\n", (1, 4), "no anchor before it"),
        ("a: &x [1, *x]\n", (1, 11), "stands inside &x"),
        ("a: &x 1\nb: &x 2\n", (2, 4), "defined twice"),
        ("? [1, 2]\n: 3\n", (1, 3), "a key must be text"),
        ("{{ name }}: 1\n", (1, 2), "a key must be text"),
        ("? \n: 3\n", (1, 2), "a key is empty"),
        ("a: {<<: 5}\n", None, ""),
        ("a: {<<: [1]}\n", (1, 10), "<< wants a mapping"),
        ("a: \x00\n", (1, 4), "NUL byte"),
        ("a: \x07\n", (1, 4), "U+0007"),
        ("a: \ud800\n", (1, 4), "U+D800"),
    ],
)
def test_each_fault_is_located(text: str, place: tuple[int, int] | None, says: str) -> None:
    if place is None:
        node = read_nodes(Source("f.yaml", text))
        assert isinstance(node, MappingNode)
        assert "<<" in node.entries["a"][1].entries  # type: ignore[union-attr]
        return
    problem = problems_of(text)[0]
    assert says in problem.message
    assert (problem.place.file, problem.place.line, problem.place.column) == ("f.yaml", *place)


def test_all_faults_that_leave_the_text_readable_are_reported() -> None:
    found = problems_of("a: 1\na: 2\nb: !x 3\nb: 4\n")
    assert [p.place.line for p in found] == [2, 3, 4]


@pytest.mark.parametrize("text", ["[" * 5000, "{a: " * 5000, "- " * 5000, "? " * 5000])
def test_deep_nesting_is_refused_at_once(text: str) -> None:
    assert f"deeper than {MAX_DEPTH}" in problems_of(text)[0].message


def test_a_chain_of_anchors_cannot_nest_deeper() -> None:
    text = "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}]\n" for i in range(1, 100))
    assert f"deeper than {MAX_DEPTH}" in problems_of(text)[0].message


def test_the_billion_laughs_are_refused_quickly() -> None:
    text = 'a: &a ["lol","lol","lol","lol","lol","lol","lol","lol","lol"]\n'
    for one, two in zip("abcdefgh", "bcdefghi", strict=True):
        text += f"{two}: &{two} [{','.join([f'*{one}'] * 9)}]\n"
    started = time.process_time()
    assert f"more than {MAX_NODES:,} values" in problems_of(text)[0].message
    assert time.process_time() - started < 2


def test_merge_keys_cannot_explode() -> None:
    text = "a: &a {" + ", ".join(f"k{i}: 1" for i in range(200)) + "}\n"
    text += "b:\n" + "".join(f"  x{i}: {{<<: *a}}\n" for i in range(600))
    assert f"more than {MAX_NODES:,} values" in problems_of(text)[0].message


@pytest.mark.parametrize(
    ("data", "place", "says"),
    [
        (b"a: 1\nb: \xff\n", (2, 4), "byte 0xff is not UTF-8"),
        (b"\xff\xfea\x00", (1, 1), "UTF-16"),
        (b"x" * (MAX_BYTES + 1), (0, 0), "larger than 8 MiB"),
    ],
)
def test_bytes_that_are_no_text_are_refused(data: bytes, place: tuple[int, int], says: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        decode_source("f", data)
    (problem,) = caught.value.problems
    assert says in problem.message
    assert (problem.place.line, problem.place.column) == place


def test_a_text_that_is_too_large_in_bytes_is_refused_unread() -> None:
    started = time.process_time()
    assert "larger than 8 MiB" in problems_of("é" * (MAX_BYTES // 2 + 1))[0].message
    assert time.process_time() - started < 1


def test_a_byte_order_mark_is_no_content() -> None:
    node = read_nodes(decode_source("f", b"\xef\xbb\xbfa: 1\n"))
    assert isinstance(node, MappingNode)
    assert node.entries["a"][0].column == 1


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_are_counted_for_every_line_end(end: str) -> None:
    source = Source("f", end.join(["a: 1", "b: 2", "c: 3", ""]))
    node = read_nodes(source)
    assert isinstance(node, MappingNode)
    assert node.entries["c"][0].line == 3
    assert source.lines[2] == "c: 3"
    assert source.place_at(source.text.index("c")).line == 3
