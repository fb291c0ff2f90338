"""YAML as programs print it means to the quick parser what it means to the full one; the rest is left to that."""

from __future__ import annotations

from io import StringIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from clusterwright.readers.documents import Patience, load_yaml
from clusterwright.readers.plain_yaml import load_plain_yaml
from clusterwright.readers.refusing import Refused


def full(text: str) -> list[object] | str:
    yaml = YAML(typ="safe", pure=True)
    yaml.allow_duplicate_keys = False
    try:
        return list(yaml.load_all(StringIO(text)))
    except YAMLError as error:
        return str(error)


NODE = """\
apiVersion: v1
kind: Node
metadata:
  annotations:
    note: |
      two
        lines

    quoted: "a \\"b\\" \\u00e9"
    single: 'it''s'
    folded: a text that
      goes on
  labels: {}
  managedFields:
  - fieldsV1:
      f:metadata:
        .: {}
        k:{"type":"Ready"}:
          f:status: {}
  name: gpu-07 # a comment
spec:
  taints:
  - effect: NoSchedule
    key: nvidia.com/gpu
  - - nested
    - [1, 2.5, "x"]
  pods: [cpu, memory]
  unset:
  off: false
  none: ~
status:
  addresses:
  - 10.0.0.1
  - 8Gi
  - 11111111-2222-3333-4444-555555555555
  - -1
"""

WORTH = [
    "v: yes", "v: null", "v: 0x1F", "v: 1e3", "v: .inf", "v: 010", "v: 1_000", "v: 2026-01-01", "v: 1:30", "v: - a",
    "v: +1", "v: a: b", "v: a:", "v: 'a' b", "v: &a b", "v: *a", "v: !a b", "? a", "true: a", "1: a", "a: 1\na: 2",
    "a: b\n c: d", "a: b\n\n  c", "v: |\n  a", "v: |-\n  a\n\n", "v: |\n   a\n  b", "- a\nb: c", "a:\n- b\nc: d",
    "a: {b: c, d: 1}", "a: [b, 'c']", "---\na: b\n---\n", "a\tb: c", "a:\n\tb: c", "v: a #b", "v: a#b", "'a': b",
    '"a\\n": b', "v: \"a\n  b\"",
]  # fmt: skip


def assert_the_same(text: str) -> None:
    try:
        value = load_plain_yaml(text)
    except Refused:
        assert isinstance(full(text), str)
        return
    assert value is None or repr(value) == repr(full(text))


def test_a_key_that_stands_twice_is_refused_with_its_line():
    with pytest.raises(Refused, match="line 5: not YAML: found duplicate key"):
        load_plain_yaml("a: 1\n---\nb: 1\nc: 2\nb: 3\n")


def test_what_kubectl_prints_needs_no_full_parser():
    value = load_plain_yaml(NODE)
    assert value is not None
    assert repr(value) == repr(full(NODE))
    assert value[0]["metadata"]["annotations"]["note"] == "two\n  lines\n"


@pytest.mark.parametrize("text", WORTH)
def test_what_it_reads_means_the_same_to_the_full_parser(text):
    assert_the_same(text)


@pytest.mark.parametrize("text", ["v: 0x1F", "v: 1e3", "v: .inf", "v: *a", "a: b\n c: d", "v: >\n  a", "v: a: b"])
def test_what_is_unusual_or_wrong_is_left_to_the_full_parser(text):
    assert load_plain_yaml(text) is None


LINES = st.sampled_from(
    [*NODE.split("\n"), *(line for text in WORTH for line in text.split("\n")), "", " ", "...", "#"]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 6), LINES), max_size=9), st.sampled_from(["", "\n"]))
def test_mixed_lines_mean_the_same_to_the_full_parser(lines, end):
    text = "\n".join(" " * indent + line for indent, line in lines) + end
    assert_the_same(text)


@settings(max_examples=200, deadline=None)
@given(
    st.integers(0, 40), st.integers(0, 40), st.integers(0, 400), st.text(" :-'\"#|>[]{},&*!~.0123abe\t\\\n", max_size=3)
)
def test_cut_and_damaged_objects_mean_the_same_to_the_full_parser(first, count, at, junk):
    text = "\n".join(NODE.split("\n")[first : first + count])
    text = text[:at] + junk + text[at:]
    assert_the_same(text)


def test_texts_of_one_output_share_the_patience_for_unusual_yaml():
    patience = Patience()
    text = "v: >\n" + "  a\n" * 10_000
    assert load_yaml(text, patience)
    with pytest.raises(Refused, match="print it as JSON"):
        load_yaml(text, patience)
