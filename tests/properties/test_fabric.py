"""Fabric, chains, spares and tornados over many inputs."""

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from clusterwright.physics.ceilings import COLLECTIVES
from clusterwright.physics.collective_fits import FITS, find_terms
from clusterwright.physics.collectives import bus_bandwidth_gbytes_s, collective_us
from clusterwright.physics.failures import ettr, ettr_exact, spares
from clusterwright.physics.fat_trees import fat_tree
from clusterwright.physics.hierarchies import Fabric, copies_between, over_nodes_us
from clusterwright.physics.sensitivities import tornado
from clusterwright.physics.storage_chains import Link, follow_chain

MANY = settings(deadline=None, max_examples=150)
RATES = st.floats(1e6, 1e13)
LINKS = st.lists(RATES, min_size=1, max_size=7).map(
    lambda rates: tuple(
        Link(name, rate)
        for name, rate in zip(("media", "server", "network", "nic", "pcie", "memory", "loader"), rates, strict=False)
    )
)


@MANY
@given(st.sampled_from(sorted(FITS)), st.sampled_from(COLLECTIVES), st.integers(2, 16), st.floats(1, 2**36))
def test_a_collective_is_never_faster_than_its_bandwidth_and_more_bytes_take_longer(gpu, operation, ranks, size):
    terms = find_terms(gpu, operation, ranks)
    time = collective_us(operation, size, ranks, terms)
    assert bus_bandwidth_gbytes_s(size, time, ranks, operation) <= terms.bandwidth_gbytes_s * (1 + 1e-9)
    assert collective_us(operation, size * 1.01, ranks, terms) >= time


@MANY
@given(
    st.sampled_from(COLLECTIVES),
    st.integers(2, 8),
    st.integers(2, 500),
    st.floats(10, 400),
    st.floats(1, 8),
    st.integers(1, 64),
    st.floats(1, 2**34),
)
def test_over_nodes_terms_sum_and_faster_nics_never_hurt(operation, gpus, nodes, rate, squeeze, leaf, size):
    inside = find_terms("h100-sxm-80", operation, gpus)

    def time(nic, oversubscription):
        fabric = Fabric(gpus, nodes, nic, oversubscription=oversubscription, leaf_domains=leaf)
        found = over_nodes_us(operation, size, fabric, inside)
        assert found.time_us == math.fsum(value for _, value in found.terms)
        return found.time_us

    base = time(rate, squeeze)
    assert time(rate * 2, squeeze) <= base * (1 + 1e-12)
    assert time(rate, 1.0) <= base * (1 + 1e-12)


@MANY
@given(st.integers(1, 64), st.integers(1, 1000), st.integers(1, 1000))
def test_a_token_leaves_at_most_once_per_other_node_and_expert(top_k, nodes, most):
    copies = copies_between(top_k, nodes, most)
    assert 0 <= copies <= min(top_k, nodes - 1, most) + 1e-9


@MANY
@given(st.integers(1, 3000), st.sampled_from([1, 2, 4, 8]), st.sampled_from([32, 40, 64, 144]), st.booleans())
def test_no_switch_has_more_cables_than_ports(nodes, ports, radix, rails):
    try:
        tree = fat_tree(nodes, ports, radix, rails=rails)
    except ValueError:
        assert nodes * ports > radix * radix // 4
        return
    assert tree.node_cables == nodes * ports
    assert tree.node_cables + tree.leaf_cables <= tree.leaves * radix
    assert tree.leaf_cables + tree.core_cables <= tree.spines * radix
    assert tree.core_cables <= tree.cores * radix


@MANY
@given(LINKS, st.floats(1, 1e15), st.integers(0, 6), st.floats(1, 100))
def test_a_faster_link_never_slows_a_chain_and_the_binding_one_is_the_slowest(links, size, which, faster):
    chain = follow_chain(links, size)
    assert chain.rate_bytes_s == min(link.rate_bytes_s for link in links)
    index = which % len(links)
    changed = (*links[:index], Link(links[index].name, links[index].rate_bytes_s * faster), *links[index + 1 :])
    assert follow_chain(changed, size).time_s <= chain.time_s


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 2000), st.floats(20, 2000), st.floats(0.1, 10), st.sampled_from([0.9, 0.99, 0.999]))
def test_more_nodes_longer_repairs_and_higher_targets_never_need_fewer_spares(nodes, mtbf, repair, target):
    base = spares(nodes, mtbf, repair, target)
    assert spares(nodes + 50, mtbf, repair, target) >= base
    assert spares(nodes, mtbf, repair * 1.5, target) >= base
    assert spares(nodes, mtbf, repair, 0.9999) >= base


@MANY
@given(st.integers(1, 20000), st.floats(0.1, 20), st.floats(0, 3600), st.floats(60, 36000), st.floats(0, 600))
def test_productive_shares_are_shares_and_the_process_is_not_below_its_first_order(nodes, rate, restart, every, stall):
    first, exact = ettr(nodes, rate, restart, every, stall), ettr_exact(nodes, rate, restart, every, stall)
    assert 0 <= first <= 1
    assert 0 <= exact <= 1
    assert exact >= first - 0.5 * (stall / every) - 1e-9


@MANY
@given(st.dictionaries(st.text(min_size=1, max_size=5), st.tuples(st.floats(-9, 9), st.floats(-9, 9)), max_size=6))
def test_a_tornado_is_sorted_and_holds_what_moves_something(bands):
    found = tornado(lambda changed: sum(changed.values()), bands)
    widths = [s.width for s in found]
    assert widths == sorted(widths, reverse=True)
    assert {s.name for s in found} == {n for n, (low, high) in bands.items() if low != high}
