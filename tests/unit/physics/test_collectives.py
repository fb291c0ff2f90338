"""Collectives inside a domain and over several: the three terms, their rank counts, and what binds between nodes."""

import math

import numpy as np
import pytest

from clusterwright.physics.ceilings import COLLECTIVES
from clusterwright.physics.collective_fits import FITS, IN_SWITCH, find_spread, find_terms, most_ranks
from clusterwright.physics.collective_laws import Law, Protocol
from clusterwright.physics.collectives import (
    CollectiveTerms,
    bus_bandwidth_gbytes_s,
    bus_factor,
    collective_us,
)
from clusterwright.physics.hierarchies import (
    Fabric,
    copies_between,
    expert_exchange_us,
    hierarchical_all_reduce_us,
    over_nodes_us,
    share_of_leaf,
)

#: Published fit of all-reduce on 8 H100.
H100 = CollectiveTerms(15.3, 517, 0.0103)


def test_all_reduce_of_a_gibibyte_on_eight_h100():
    time_us = collective_us("all-reduce", 2**30, 8, H100)
    assert time_us == pytest.approx(3987.333015087041, rel=1e-12)
    assert bus_bandwidth_gbytes_s(2**30, time_us, 8) == pytest.approx(471.2543910654479, rel=1e-12)


def test_one_rank_reduces_nothing():
    assert collective_us("all-reduce", 2**30, 1, H100) == 0


def test_hierarchical_all_reduce_over_sixteen_nodes():
    """360 GB/s inside a node, 45 GB/s per NIC, 164 µs of steps, nothing overlapping."""
    got = hierarchical_all_reduce_us(2**30, 8, 16, 360, 45, 164)
    assert got == pytest.approx(10975.983644444445, rel=1e-12)


@pytest.mark.parametrize(
    ("operation", "ranks", "factor"),
    [("all-reduce", 8, 1.75), ("all-gather", 8, 0.875), ("reduce-scatter", 2, 0.5), ("all-to-all", 4, 0.75)],
)
def test_bus_factors_are_those_of_nccl_tests(operation, ranks, factor):
    assert bus_factor(operation, ranks) == factor


@pytest.mark.parametrize(
    ("gpu", "ranks", "published"),
    [
        ("h100-sxm-80", 8, (15.3, 517, 0.0103)),
        ("h200-sxm-141", 8, (15.8, 546, 0.0108)),
        ("a100-sxm-80", 8, (20.9, 240, 0.0126)),
        ("b200-sxm-180", 8, (25.1, 865, 0.0096)),
        ("gb200-186", 4, (15.8, 713, 0.0051)),
    ],
)
def test_all_reduce_agrees_with_another_fit_to_the_same_kind_of_runs(gpu, ranks, published):
    """Fitted by others with three terms for all sizes: within 12 %, but where the protocol changes."""
    ours = find_terms(gpu, "all-reduce", ranks)
    for size in (512, 2**12, 2**27, 2**29):
        time = collective_us("all-reduce", size, ranks, ours)
        assert time == pytest.approx(collective_us("all-reduce", size, ranks, CollectiveTerms(*published)), rel=0.12)


@pytest.mark.parametrize(
    ("gpu", "operation", "ranks", "size", "measured_us"),
    [
        ("h100-sxm-80", "all-reduce", 2, 512, 6.2),
        ("h100-sxm-80", "all-reduce", 8, 2**29, 2112.0),
        ("h100-sxm-80", "all-gather", 4, 2**29, 1268.3),
        ("h100-sxm-80", "reduce-scatter", 8, 2**26, 200.2),
        ("h100-sxm-80", "all-to-all", 8, 2**29, 1480.7),
        ("b200-sxm-180", "all-to-all", 8, 2**29, 834.2),
        ("gb200-186", "all-gather", 2, 2**29, 614.5),
    ],
)
def test_terms_give_measured_latencies(gpu, operation, ranks, size, measured_us):
    """Single latencies of nccl-tests runs shipped in aiconfigurator-core (Apache-2.0)."""
    assert collective_us(operation, size, ranks, find_terms(gpu, operation, ranks)) == pytest.approx(
        measured_us, rel=0.10
    )


@pytest.mark.parametrize("gpu", FITS)
@pytest.mark.parametrize("operation", COLLECTIVES)
def test_more_bytes_and_more_ranks_never_take_less_time(gpu, operation):
    for ranks in (2, 3, 4, 6, 8):
        terms = find_terms(gpu, operation, ranks)
        times = [collective_us(operation, 2.0**k, ranks, terms) for k in range(8, 31)]
        assert times == sorted(times)
    small = [find_terms(gpu, operation, n).empty_us for n in (2, 3, 4)]
    assert small == sorted(small)


LAW = Law(Protocol(4, 1, 0.004, 0.002, eight_bit=0.001), Protocol(10, 2, 0.002, 0, memory=0.001), 2**20)


def test_a_law_counts_hops_the_link_and_what_goes_through_memory():
    """All-reduce over 4: 6 steps, f = 1.5; 64 MB take 10 + 2·6 + 64,000·(1.5·0.002 + 0.001) µs."""
    time = collective_us("all-reduce", 64e6, 4, LAW.terms("all-reduce", 4))
    assert time == pytest.approx(10 + 12 + 64e3 * (1.5 * 0.002 + 0.001), rel=1e-12)


def test_short_messages_take_the_other_protocol_until_the_part_of_a_rank_is_long():
    """1,024 kB over 4: 4 + 6 + 1,024·1.5·0.004 + 0.002·√(S/4) µs; adding up 8-bit numbers takes 1.5 ns per kB more."""
    terms = LAW.terms("all-reduce", 4)
    assert terms.short_below_bytes == 4 * 2**20
    short = collective_us("all-reduce", 1.024e6, 4, terms)
    assert short == pytest.approx(10 + 1024 * 1.5 * 0.004 + 0.002 * math.sqrt(1.024e6 / 4), rel=1e-12)
    sums = collective_us("all-reduce", 1.024e6, 4, LAW.terms("all-reduce", 4, eight_bit=True))
    assert sums - short == pytest.approx(1024 * 1.5 * 0.001, rel=1e-9)
    assert Law(LAW.short, LAW.long, 2**20, per_rank=False).terms("all-reduce", 4).short_below_bytes == 2**20


def test_gpus_beyond_a_bridge_and_beyond_a_socket_share_the_link():
    pcie = Protocol(5, 0, 0.05, 0, bridge=0.02, socket=0.1)
    rates = [1 / pcie.terms("all-gather", n, False).bandwidth_gbytes_s for n in (2, 4, 8)]
    assert rates == pytest.approx([0.05, 0.05 + 2 * 0.02, 0.05 + 6 * 0.02 + 4 * 0.1])


def test_a_long_message_never_takes_less_than_the_longest_short_one():
    slow_short = Law(Protocol(4, 1, 0.1, 0), Protocol(5, 0, 0.002, 0), 2**20)
    terms = slow_short.terms("all-gather", 2)
    sizes = 2.0 ** np.arange(8, 34, 0.5)
    times = collective_us("all-gather", sizes, 2, terms)
    assert (np.diff(times) >= 0).all()
    assert times[sizes == 2.0**21] == pytest.approx(5 + 2**21 / 1e3 * 0.1 * 0.5)
    assert [collective_us("all-gather", float(s), 2, terms) for s in sizes] == pytest.approx(list(times))


def test_rank_counts_between_measured_ones_follow_the_law():
    terms = [find_terms("h100-sxm-80", "all-gather", n) for n in (2, 3, 4, 6, 8)]
    assert [t.bandwidth_gbytes_s for t in terms] == sorted(t.bandwidth_gbytes_s for t in terms)
    assert [t.empty_us for t in terms] == sorted(t.empty_us for t in terms)


def test_a_gpu_that_nobody_measured_has_no_terms():
    assert find_terms("mi300x", "all-reduce", 8) is None
    assert find_spread("mi300x") is None
    assert most_ranks("mi300x") == 0
    assert (most_ranks("gb200-186"), most_ranks("h100-sxm-80")) == (4, 8)
    assert find_terms("a100-sxm-40", "all-reduce", 8) == find_terms("a100-sxm-80", "all-reduce", 8)


def test_over_nodes_the_terms_sum_to_the_time_and_the_slower_part_binds():
    slow_nics = over_nodes_us("all-reduce", 2**30, Fabric(8, 16, 50), H100)
    assert slow_nics.binding == "between"
    assert slow_nics.algorithm == "tree"  # 40 µs against 81 µs of a ring
    assert slow_nics.time_us == math.fsum(v for _, v in slow_nics.terms)
    fast_nics = over_nodes_us("all-reduce", 2**30, Fabric(8, 2, 100), H100)
    assert (fast_nics.binding, fast_nics.algorithm) == ("inside", "ring")


def test_one_domain_is_no_business_of_a_network():
    with pytest.raises(ValueError, match="one domain"):
        over_nodes_us("all-reduce", 1, Fabric(8, 1, 50), H100)


def test_an_oversubscribed_leaf_slows_an_all_to_all_and_a_ring_only_where_few_nodes_share_it():
    def time(operation, squeeze, domains):
        fabric = Fabric(8, 32, 50, oversubscription=squeeze, leaf_domains=domains)
        return over_nodes_us(operation, 2**30, fabric, H100).time_us

    assert time("all-to-all", 4, 8) > 1.5 * time("all-to-all", 1, 8)
    assert time("all-to-all", 4, 32) == time("all-to-all", 1, 32)  # nothing leaves the leaf
    assert time("all-gather", 4, 8) == time("all-gather", 1, 8)
    assert time("all-gather", 4, 1) > 2 * time("all-gather", 1, 1)


def test_reduction_in_the_network_shortens_the_way():
    plain = over_nodes_us("all-reduce", 1024, Fabric(8, 64, 50), H100)
    lifted = over_nodes_us("all-reduce", 1024, Fabric(8, 64, 50, in_network=True), H100)
    assert lifted.algorithm == "in-network"
    assert lifted.time_us < plain.time_us


def test_rails_let_more_nodes_share_a_leaf():
    assert share_of_leaf(32, 8, rails=True) == 32
    assert share_of_leaf(32, 8, rails=False) == 4


def test_tokens_go_once_to_each_node_that_holds_one_of_their_experts():
    assert copies_between(8, 2) == pytest.approx((1 - 0.5**8) * 1)
    assert copies_between(1, 16) == pytest.approx(15 / 16)
    assert copies_between(8, 16, most_domains=4) == pytest.approx(4 * 15 / 16)


def test_expert_exchange_is_bound_by_the_network_over_nodes_and_by_the_domain_inside():
    """4,096 tokens of 7,168 bytes in fp8, 8 experts of at most 4 nodes: 110 MB per GPU over a 50 GB/s NIC."""
    over = expert_exchange_us(4096, 7168, 1, 8, Fabric(8, 8, 50), 160, 20, most_domains=4)
    assert over == pytest.approx(20 + 4096 * 7168 * 3.5 / (50e3 * 0.85), rel=1e-12)
    inside = expert_exchange_us(4096, 7168, 1, 8, Fabric(8, 1, 50), 160, 20)
    assert inside == pytest.approx(20 + 4096 * 7168 * 8 * 7 / 8 / 160e3, rel=1e-12)


@pytest.mark.parametrize(("gpu", "ring"), [("h200-sxm-141", 367), ("b200-sxm-180", 682)])
def test_without_the_switch_adding_up_eight_gpus_reach_what_was_published(gpu, ring):
    """nccl-tests with NCCL_NVLS_ENABLE=0, 16 GiB, GB/s; not fitted."""
    terms = find_terms(gpu, "all-reduce", 8, switch_adds=False)
    time = collective_us("all-reduce", 16 * 2**30, 8, terms)
    assert bus_bandwidth_gbytes_s(16 * 2**30, time, 8) == pytest.approx(ring, rel=0.07)
    assert find_terms(gpu, "all-reduce", 4, switch_adds=False) == find_terms(gpu, "all-reduce", 4)
    assert find_terms(gpu, "all-gather", 8, switch_adds=False) == find_terms(gpu, "all-gather", 8)


@pytest.mark.parametrize("gpu", IN_SWITCH)
def test_no_switch_adds_up_numbers_of_eight_bit(gpu):
    ring = find_terms(gpu, "all-reduce", 8, eight_bit=True)
    size = 2.0**29
    assert collective_us("all-reduce", size, 8, ring) > collective_us(
        "all-reduce", size, 8, find_terms(gpu, "all-reduce", 8)
    )
    assert ring == find_terms(gpu, "all-reduce", 8, switch_adds=False, eight_bit=True)
    assert find_terms(gpu, "all-gather", 8, eight_bit=True) == find_terms(gpu, "all-gather", 8)


def test_many_sizes_are_timed_at_once():
    sizes = np.array([[512.0, 2.0**20], [2.0**26, 2.0**30]])
    times = collective_us("all-to-all", sizes, 8, H100)
    assert times.shape == sizes.shape
    for size, time in zip(sizes.flat, times.flat, strict=True):
        assert time == pytest.approx(collective_us("all-to-all", float(size), 8, H100), rel=1e-15)
    assert not collective_us("all-to-all", sizes, 1, H100).any()
