"""Which hosts an output is about, from where it lies: `gpu-001/nvidia-smi.txt`, `nccl_gpu-001_gpu-002.log`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from typing import Final

from clusterwright.judging.derivations.facts import Facts, short_name
from clusterwright.model.observations import Transcript

#: Parts of a path that are looked at, from its end.
_PARTS: Final = 3
#: The farthest time zone east: a time without zone cannot be older than there.
_EASTMOST: Final = timezone(timedelta(hours=14))


def hosts_in_path(path: str, hosts: Sequence[str]) -> tuple[str, ...]:
    """The known hosts that the last parts of a path name, in the order of the hosts."""
    end = "/".join(path.replace("\\", "/").split("/")[-_PARTS:])
    return tuple(host for host in hosts if host in end and _names(end, host))


def place(path: str, transcript: Transcript, hosts: Sequence[str]) -> tuple[str, ...]:
    """The known hosts that a path says an output was taken on; () where the output itself names other known ones."""
    said = hosts_in_path(path, hosts)
    if not said:
        return ()
    by_name = {short_name(host): host for host in hosts}
    names = (name for run in transcript.runs for name in Facts(transcript.kind, run).node_names())
    printed = {by_name[short] for name in names if (short := short_name(name)) in by_name}
    return said if printed <= set(said) else ()


def _names(text: str, host: str) -> bool:
    """Whether the name stands alone: `gpu-1` does not stand in `gpu-10` or `gpu-1-2`."""
    return re.search(rf"(?<![A-Za-z0-9-]){re.escape(host)}(?![A-Za-z0-9]|-[A-Za-z0-9])", text) is not None


def read_moment(text: str) -> tuple[datetime, bool] | None:
    """(aware time, whether the zone was printed) of a time as tools print it; None when it cannot be told.

    A time without zone is taken at its oldest, so that evidence never counts as fresher than it is.
    """
    moment = _parse(text.strip())
    if moment is None:
        return None
    if moment.tzinfo is not None:
        return moment.astimezone(UTC), True
    try:
        return moment.replace(tzinfo=_EASTMOST).astimezone(UTC), False
    except OverflowError:
        return None


def _parse(text: str) -> datetime | None:
    """ISO 8601 and the form of C's ctime; a day and month that could be exchanged are not read."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        pass
    for form in ("%a %b %d %H:%M:%S %Y", "%b %d %Y %H:%M:%S", "%Y%m%d-%H%M%S"):
        try:
            return datetime.strptime(text, form)
        except ValueError:
            continue
    return None
