"""The way of bytes as a chain of limits."""

import math

import pytest

from clusterwright.physics.storage_chains import (
    LOADER_BYTES_S,
    MEMORY_BYTES_S,
    NODE_CLASSES,
    Link,
    follow_chain,
    host_memory_bytes_s,
    node_class,
)


def test_the_slowest_link_binds():
    links = (Link("media", 40e9), Link("network", 50e9), Link("pcie", 400e9), Link("loader", 25e9))
    chain = follow_chain(links, 100e9)
    assert (chain.binding, chain.rate_bytes_s, chain.time_s) == ("loader", 25e9, 4)


def test_a_chain_without_links_takes_no_time_and_one_without_rate_never_ends():
    assert follow_chain((), 1e9).binding is None
    assert follow_chain((Link("server", 0.0),), 1e9).time_s == math.inf


@pytest.mark.parametrize(
    ("loader", "disk", "seconds"),
    [
        ("safetensors", 1e9, 47.99),
        ("safetensors", 4e9, 47),
        ("runai-streamer", 1e9, 14.34),
    ],
)
def test_15_gb_are_loaded_in_the_published_time(loader, disk, seconds):
    """GP3 (1 GB/s) and IO2 (4 GB/s) disks; Run:ai, 2024-10: the default loader gains nothing from the faster disk."""
    chain = follow_chain((Link("media", disk), Link("loader", LOADER_BYTES_S[loader])), 15e9)
    assert chain.time_s == pytest.approx(seconds, rel=0.05)


def test_host_memory_is_crossed_twice_but_by_gpudirect_storage():
    socket = MEMORY_BYTES_S["Intel Xeon Platinum 8480C"]
    assert socket == 307.2e9
    assert host_memory_bytes_s(2, socket, direct=False) == 307.2e9
    assert host_memory_bytes_s(2, socket, direct=True) == math.inf


@pytest.mark.parametrize(
    ("rate", "way", "name"),
    [(4e9, "read", "good"), (39e9, "read", "better"), (40e9, "read", "best"), (3.9e9, "read", "below good"),
     (2e9, "write", "good"), (20e9, "write", "best")],
)  # fmt: skip
def test_classes_of_the_reference_node(rate, way, name):
    assert node_class(rate, way) == name
    assert [(c.read_bytes_s, c.write_bytes_s) for c in NODE_CLASSES] == [(4e9, 2e9), (8e9, 4e9), (40e9, 20e9)]
