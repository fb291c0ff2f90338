"""Options that `cw simulate` and `cw what-if` share, as types of their parameters."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

from typer import Argument, Option


class Form(StrEnum):
    """Forms of the result."""

    text = "text"
    json = "json"
    html = "html"


Files = Annotated[
    list[str] | None,
    Argument(metavar="[FILE]...", help="Architecture files, merged in order; - reads standard input."),
]
Nodes = Annotated[
    str, Option(metavar="NxG", help="In place of a file: N equal nodes with G GPUs, such as 16x8; needs --trace.")
]
Trace = Annotated[
    list[str] | None,
    Option(metavar="FILE", help="A job trace, such as a dump of sacct; as `cw trace inspect` reads it."),
]
Kind = Annotated[str, Option(metavar="KIND", help="Kind of the trace; found out if absent.")]
Mapping = Annotated[
    str, Option("--map", metavar="FIELD=COLUMN[:UNIT],...", help="Columns of a CSV trace of anybody's.")
]
Zone = Annotated[str, Option(metavar="ZONE", help="Time zone of the trace's local times.")]
Since = Annotated[
    str,
    Option(
        metavar="WHEN",
        help="Begin of the part of the trace: a date, or a time since its first submission such as '2 d'. What ran "
        "and waited then is in the cluster.",
    ),
]
Until = Annotated[str, Option(metavar="WHEN", help="End of the part of the trace, in the same way.")]
Days = Annotated[float | None, Option(metavar="N", help="Days that count; else the trace's window, or 30.")]
WarmUp = Annotated[
    str,
    Option(
        "--warm-up",
        metavar="TIME",
        help="Time before anything counts, in which the cluster fills; else 0, with --draw until it is 99 % full.",
    ),
]
Draw = Annotated[
    bool, Option("--draw", help="Draw jobs from distributions fitted to the trace, others with every seed.")
]
Seeds = Annotated[int, Option(metavar="K", help="Futures to simulate: seeds S to S+K-1.")]
Seed = Annotated[int, Option(metavar="S", help="First seed; the same seed gives the same events, byte for byte.")]
Processes = Annotated[
    int | None, Option("--jobs", metavar="J", help="Processes at the same time; else one per processor.")
]
Failures = Annotated[
    str, Option(metavar="NAME", help="Failure rates of the catalogue: llama3-405b, rsc-1, rsc-2; or none.")
]
Checkpoint = Annotated[
    str, Option(metavar="TIME", help="How often jobs of the trace save their work, such as 1h; else never.")
]
Speeds = Annotated[
    list[str] | None,
    Option(
        "--speed",
        metavar="NAME=FACTOR",
        help="How fast jobs run on a pool or GPU, 1 for those not named; or catalogue[=GPU]: ratios of peaks, against "
        "the GPU where jobs were measured.",
    ),
]
GpusOnly = Annotated[bool, Option("--gpus-only", help="Leave CPU cores and memory of jobs out of account.")]
Queues = Annotated[
    list[str] | None,
    Option("--queue", metavar="OLD=NEW", help="Queue, account or QOS of the trace → declared queue; *=NEW."),
]
Overrides = Annotated[
    list[str] | None,
    Option("--set", metavar="PATH=VALUE", help="Write over a value of the files; pools.X.nodes takes a number."),
]
Catalogues = Annotated[
    list[str] | None, Option("--catalogue", metavar="FILE", help="A catalogue of your own, over the shipped.")
]
Tolerance = Annotated[
    float, Option(metavar="SHARE", help="How far replayed waits may be from real ones, a share of these.")
]
Output = Annotated[Form, Option("--format", help="Text for people, everything as JSON, or one page of HTML.")]
Out = Annotated[Path | None, Option("--output", metavar="PATH", help="File to write; else standard output.")]
Force = Annotated[bool, Option("--force", help="Replace files that exist.")]
