"""Local times on the days on which clocks are changed, read one by one and hour by hour."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from clusterwright.traces.stamps import Clock, read_stamp, seconds_of

ZONES = ("UTC", "America/Los_Angeles", "Europe/Berlin", "Australia/Lord_Howe", "Asia/Kolkata")
#: Days with a change of the clock in one of the zones, and one without.
DAYS = ("2025-03-09", "2025-11-02", "2025-03-30", "2025-10-26", "2025-04-06", "2025-10-05", "2025-07-01")


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("day", DAYS)
def test_a_clock_that_remembers_hours_reads_as_one_that_does_not(zone, day):
    clock = Clock(ZoneInfo(zone))
    begin = datetime.fromisoformat(day)
    for minutes in range(0, 1440, 7):
        stamp = begin + timedelta(minutes=minutes, seconds=minutes % 60)
        expected = seconds_of(stamp, clock.zone)
        assert clock.read(f"{stamp:%Y-%m-%d %H:%M:%S}") == expected
        assert clock.seconds(stamp) == expected


@pytest.mark.parametrize(
    ("text", "zone", "utc", "remark"),
    [
        ("2017-11-05 01:30:00", "America/Los_Angeles", "2017-11-05 08:30:00", "time-twice"),
        ("2017-11-05 02:00:00", "America/Los_Angeles", "2017-11-05 10:00:00", ""),
        ("2017-03-12 02:30:00", "America/Los_Angeles", "2017-03-12 10:30:00", "time-not-there"),
        ("2025-10-05 02:15:00", "Australia/Lord_Howe", "2025-10-04 15:45:00", "time-not-there"),
        ("2025-10-05 02:45:00", "Australia/Lord_Howe", "2025-10-04 15:45:00", ""),
        ("2025-07-01T12:00:00+02:00", "America/Los_Angeles", "2025-07-01 10:00:00", ""),
        ("2025-07-01T12:00:00.25Z", "America/Los_Angeles", "2025-07-01 12:00:00.25", ""),
    ],
)
def test_times_around_a_change_of_the_clock(text, zone, utc, remark):
    expected = datetime.fromisoformat(utc).replace(tzinfo=UTC).timestamp()
    assert Clock(ZoneInfo(zone)).read(text) == (expected, remark)


@pytest.mark.parametrize("text", ["", "now", "2025-02-30 00:00:00", "2025-01-01 24:00:01", "2025-01-01 00:60:00", "²"])
def test_what_is_no_time_is_none(text):
    assert Clock(ZoneInfo("UTC")).read(text) is None
    assert read_stamp(text) is None
