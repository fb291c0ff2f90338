"""Counters of InfiniBand and RDMA ports, by their own names; saturated ones have no value.

Observations: every counter as a plain number (subject device or lid or guid, port, node), port_xmit_bytes and
port_rcv_bytes beside the counters of data, which count words of four bytes; from sysfs the state of ports as in
ib-state. Counters run since they were last cleared: one reading says neither that a fault is present nor that none is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from clusterwright.model.observations import NoValue, Run, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Line, Source
from clusterwright.readers.fabric.adapters import describe_adapters
from clusterwright.readers.fabric.counter_sources import (
    MOST_PORTS,
    Counters,
    Listing,
    collect_errors,
    collect_ibdiagnet,
    collect_perfquery,
    collect_rdma,
    collect_statistics,
    collect_sysfs,
    score_counters,
)
from clusterwright.readers.fabric.counter_widths import is_data, is_error, plain, read_counter
from clusterwright.readers.fabric.looking import holds
from clusterwright.readers.readers import Head, Reader
from clusterwright.readers.refusing import Refused
from clusterwright.readers.values import quantity

#: What collects the counters of a tool, and words of which its output holds one.
_COLLECTORS: Final = (
    (collect_perfquery, ("counters: Lid",)),
    (collect_sysfs, ("infiniband/",)),
    (collect_errors, (" port ", "## Summary:")),
    (collect_statistics, ("NIC statistics", "x_")),
    (collect_rdma, ("link ",)),
    (collect_ibdiagnet, ("Port=",)),
)
_SELECTORS: Final = frozenset({"portselect", "counterselect", "counterselect2"})
_MOST_LINES: Final = 2_000_000
_SHOWN: Final = 6
#: Counters of ethtool -S that a careful person looks at (mlx5, bnxt, ice).
_WATCHED: Final = (
    "rx_crc_errors_phy", "rx_symbol_err_phy", "link_down_events_phy", "rx_out_of_buffer", "rx_discards_phy",
    "tx_discards_phy", "rx_pcs_symbol_err_phy", "rx_corrected_bits_phy", "tx_errors_phy", "rx_crc_errors",
)  # fmt: skip


def recognise_counters(head: Head) -> int:
    """How sure it is that a tool for port counters printed this."""
    return score_counters(head.text)


def read_counters(source: Source) -> Sequence[Run]:
    """One run for each tool whose listing is in the output."""
    lines: list[Line] = []
    for line in source.lines():
        if len(lines) >= _MOST_LINES:
            raise Refused(f"more than {_MOST_LINES:,} lines; split it")
        lines.append(line)
    listings = [collect(lines) for collect, words in _COLLECTORS if holds(lines, *words)]
    runs = [_finish(listing) for listing in listings if listing.ports or listing.summary]
    if not runs:
        raise Refused("no counters of a port in it", 1, source.head)
    return runs


def _finish(listing: Listing) -> Run:
    run = RunBuilder(listing.tool)
    if len(listing.ports) > MOST_PORTS:
        run.missing(f"{len(listing.ports) - MOST_PORTS:,} ports beyond the first {MOST_PORTS:,}")
    if listing.adapters:
        describe_adapters(run, listing.adapters, "")
    empty = [port for port in listing.ports if not port.values]
    for port in listing.ports[:MOST_PORTS]:
        _describe(run, port, listing.tool)
    for port in empty[:5]:
        run.missing(f"counters of {_place(port)}")
    for line, text in listing.cut[:200]:
        run.reject(line, text, "a counter without a value")
    _say_cumulative(run, listing)
    _check_whole(run, listing)
    return run.build()


def _describe(run: RunBuilder, port: Counters, tool: str) -> None:
    errors, full = [], []
    for name, (text, line) in port.values.items():
        if plain(name) in _SELECTORS:
            continue
        value = read_counter(name, text, extended=port.extended)
        run.observe(name, value, port.subject, line)
        if isinstance(value, NoValue):
            if "saturated" in value.why:
                full.append(f"{name} at least {text}")
        elif is_data(name):
            bytes_name = "port_xmit_bytes" if "xmit" in name.lower() else "port_rcv_bytes"
            run.observe(bytes_name, quantity(4 * value, "B"), port.subject, line)
        elif value > 0 and (name in _WATCHED if tool == "ethtool -S" else is_error(name)):
            errors.append(f"{name} {value:.0f}")
    if full:
        run.notice(
            "counter-saturated",
            f"{_place(port)}: {_join(full)}: it has stopped; clear it and read again, no proof of a present fault",
            line=port.line,
        )
    if errors:
        run.notice("errors-counted", f"{_place(port)}: {_join(errors)}", line=port.line)
    for name in port.twice:
        run.notice("counter-twice", f"{_place(port)}: {name} stands twice with different values; the first is kept")


def _place(port: Counters) -> str:
    return " ".join(f"{key} {value}" if key in ("lid", "port") else value for key, value in port.subject) or "a port"


def _join(parts: Sequence[str]) -> str:
    rest = len(parts) - _SHOWN
    return ", ".join(parts[:_SHOWN]) + (f" and {rest} more" if rest > 0 else "")


def _say_cumulative(run: RunBuilder, listing: Listing) -> None:
    if any(port.values for port in listing.ports):
        run.notice(
            "cumulative",
            "counters run since they were last cleared: one reading dates nothing, a second one shows growth",
            Weight.INFO,
        )


def _check_whole(run: RunBuilder, listing: Listing) -> None:
    """A listing that ends early: blocks with fewer counters than others, no summary."""
    if listing.tool == "ibqueryerrors":
        if listing.summary is None:
            run.missing("summary at the end")
        else:
            run.condition("summary", listing.summary[1])
    if listing.tool != "perfquery":
        return
    main = [port for port in listing.ports if port.part == "Port"]
    most = max((len(port.values) for port in main), default=0)
    for port in main:
        if port.values and not any(is_error(name) for name in port.values):
            run.missing(f"error counters of {_place(port)}")
        elif 0 < len(port.values) < most - 3:
            run.missing(f"{most - len(port.values)} counters of {_place(port)} that other ports have")


READER: Final = Reader(
    "ib-counters", "port counters: perfquery, sysfs, ibqueryerrors, ethtool -S", recognise_counters, read_counters
)
