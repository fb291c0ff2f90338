"""Hosts from paths, and times as tools print them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from clusterwright.judging.placing_outputs import hosts_in_path, read_moment

HOSTS = ("gpu-1", "gpu-2", "gpu-10", "gpu-1-2")


@pytest.mark.parametrize(
    ("path", "hosts"),
    [
        ("out/gpu-1/nvidia-smi.txt", ("gpu-1",)),
        ("out/gpu-10.log", ("gpu-10",)),
        ("out/nccl_gpu-2_gpu-1.log", ("gpu-1", "gpu-2")),
        ("out/gpu-1-2.txt", ("gpu-1-2",)),
        ("gpu-1/a/b/c.txt", ()),
        ("out/gpu-12/x.txt", ()),
        ("C:\\out\\gpu-2\\x.txt", ("gpu-2",)),
        ("out/x.txt", ()),
    ],
)
def test_a_path_names_the_hosts_that_stand_alone_in_its_last_parts(path, hosts):
    assert hosts_in_path(path, HOSTS) == hosts


@pytest.mark.parametrize(
    ("text", "moment", "zoned"),
    [
        ("2026-11-30T12:00:00Z", datetime(2026, 11, 30, 12, tzinfo=UTC), True),
        ("2026-11-30T12:00:00+02:00", datetime(2026, 11, 30, 10, tzinfo=UTC), True),
        ("2026-11-30 12:00:00,5", datetime(2026, 11, 29, 22, 0, 0, 500000, tzinfo=UTC), False),
        ("2026-11-30", datetime(2026, 11, 29, 10, tzinfo=UTC), False),
        ("Fri Aug 30 11:11:22 2024", datetime(2024, 8, 29, 21, 11, 22, tzinfo=UTC), False),
        ("Feb 25 2025 13:59:45", datetime(2025, 2, 24, 23, 59, 45, tzinfo=UTC), False),
    ],
)
def test_a_time_without_zone_is_taken_at_its_oldest(text, moment, zoned):
    assert read_moment(text) == (moment, zoned)


@pytest.mark.parametrize(
    "text", ["", "yesterday", "05/03/2024 09:32:15", "206.76 s after boot", "0001-01-01", "Okt 06"]
)
def test_what_cannot_be_told_is_no_time(text):
    assert read_moment(text) is None
