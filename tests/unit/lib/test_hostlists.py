"""Host lists, compared with ClusterShell's NodeSet, which reads the same syntax."""

from __future__ import annotations

import pytest
from ClusterShell.NodeSet import NodeSet
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterwright.lib.hostlists import MAX_HOSTS, HostlistError, expand, fold


@st.composite
def ranges(draw: st.DrawFn) -> str:
    width = draw(st.integers(1, 4))
    low = draw(st.integers(0, 150))
    high = low + draw(st.integers(0, 25))
    step = draw(st.integers(1, 4))
    first, last = str(low).zfill(width), str(high).zfill(width)
    return draw(st.sampled_from([first, f"{first}-{last}", f"{first}-{last}/{step}"]))


@st.composite
def hostlists(draw: st.DrawFn) -> str:
    parts = []
    for _ in range(draw(st.integers(1, 4))):
        inside = ",".join(draw(st.lists(ranges(), min_size=1, max_size=4)))
        prefix = draw(st.sampled_from(["n", "gpu-", "rack1-n", "a.b", "x9y"]))
        parts.append(f"{prefix}[{inside}]{draw(st.sampled_from(['', '-ib', '.local', 'b[1-3]']))}")
    return ",".join(parts)


@settings(max_examples=300, deadline=None)
@given(hostlists())
def test_expands_to_the_same_hosts_as_clustershell(text: str) -> None:
    hosts = expand(text)
    assert len(set(hosts)) == len(hosts)
    assert set(hosts) == set(NodeSet(text))


@settings(max_examples=300, deadline=None)
@given(hostlists())
def test_folding_loses_nothing_for_us_and_for_clustershell(text: str) -> None:
    hosts = expand(text)
    folded = fold(hosts)
    assert set(expand(folded)) == set(hosts)
    assert set(NodeSet(folded)) == set(hosts)


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("gpu-[001-003]", ("gpu-001", "gpu-002", "gpu-003")),
        ("n[8-11]", ("n8", "n9", "n10", "n11")),
        ("n[2,1,2]", ("n2", "n1")),
        ("cp1, cp2", ("cp1", "cp2")),
        ("r[1-2]n[1-2]", ("r1n1", "r1n2", "r2n1", "r2n2")),
        ("lab1", ("lab1",)),
    ],
)
def test_keeps_written_order_and_padding(text: str, hosts: tuple[str, ...]) -> None:
    assert expand(text) == hosts


@pytest.mark.parametrize(
    ("hosts", "text"),
    [
        (("gpu-001", "gpu-002", "gpu-003", "gpu-007"), "gpu-[001-003,007]"),
        (("n9", "n10"), "n[9-10]"),
        (("n009", "n010"), "n[009-010]"),
        (("n1", "n01"), "n1,n01"),
        (("login",), "login"),
        (("a1", "b1", "a2"), "a[1-2],b1"),
    ],
)
def test_folds_to_the_short_form(hosts: tuple[str, ...], text: str) -> None:
    assert fold(hosts) == text


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty name"),
        ("gpu-[1-2", "unbalanced"),
        ("gpu-1]", "unbalanced"),
        ("gpu-[[1-2]]", "unbalanced"),
        ("gpu-[5-1]", "backwards"),
        ("gpu-[a-b]", "not a number or a range"),
        ("gpu-[1-2/0]", "names more than"),
        ("gpu-[]", "not a number or a range"),
        ("gpu_1 gpu_2", "not a host name"),
        ("-gpu", "not a host name"),
        ("$(reboot)", "not a host name"),
        ("a\nb", "not a host name"),
        ("n[0-999999999]", "names more than"),
        ("n[0-999]x[0-999]", "names more than"),
        (",".join(["n[0-150000]"] * 3), "more than"),
        ("n[" + ",".join(["0-150000"] * 3) + "]", "names more than"),
        ("n[" + "9" * 5000 + "]", "not a number or a range"),
        ("n[１-３]", "not a number or a range"),
        ("n" * 300, "not a host name"),
        ("a,,b", "empty name"),
    ],
)
def test_refuses_and_quotes_the_part(text: str, says: str) -> None:
    with pytest.raises(HostlistError) as caught:
        expand(text)
    assert says in str(caught.value)
    assert len(str(caught.value)) < 300


def test_the_largest_list_is_read() -> None:
    assert len(expand(f"n[1-{MAX_HOSTS}]")) == MAX_HOSTS


@given(st.text(alphabet="n0123456789[]-,/ .x", max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        hosts = expand(text)
    except HostlistError:
        return
    assert hosts
    assert set(expand(fold(hosts))) == set(hosts)
