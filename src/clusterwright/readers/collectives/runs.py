"""Record of one run → run: observations, conditions, notices, what is missing."""

from __future__ import annotations

from collections import Counter
from typing import Final

from clusterwright.model.observations import Labels, Lack, NoValue, Observation, Run, Value, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.collectives.checks import check_average, check_correctness, check_rows, check_speed
from clusterwright.readers.collectives.counting import Participants, participants
from clusterwright.readers.collectives.ranks import UNNAMED
from clusterwright.readers.collectives.records import Record
from clusterwright.readers.collectives.rows import Half
from clusterwright.readers.values import read_number, read_quantity, unreadable

_CONDITIONS: Final = (
    ("iterations", "iters"), ("warmup_iterations", "warmup iters"), ("aggregated_iterations", "agg iters"),
    ("graph", "graph"), ("threads", "nThread"), ("gpus_per_thread", "nGpus"),
)  # fmt: skip
_new: Final = tuple.__new__


def finish(record: Record) -> Run:
    """The run that a record describes."""
    who = participants(record)
    tool = f"{record.program}_perf" if record.program else f"{record.library}-tests"
    run = RunBuilder(tool, record.versions.get(f"{record.library}-tests", ""))
    _add_conditions(run, record, who)
    _add_gpus(run, record)
    _add_rows(run, record)
    _add_sums(run, record)
    check_correctness(run, record)
    check_rows(run, record)
    check_speed(run, record, who)
    _add_faults(run, record)
    _add_missing(run, record, who)
    check_average(run, record)
    return run.build()


def _add_conditions(run: RunBuilder, record: Record, who: Participants) -> None:
    if who.operation:
        run.condition("operation", who.operation)
        run.condition("operation_by", who.operation_by)
    elif record.rows:
        run.notice("operation-unknown", "the program is not named and the columns fit several operations")
    members = who.members
    if members.ranks is not None:
        run.condition("ranks", float(members.ranks))
        run.condition("ranks_by", members.known_by + (", which breaks off" if record.cut_rank else ""))
    if members.groups > 1:
        run.condition("groups", float(members.groups))
    if members.listed:
        run.condition("ranks_listed", float(members.listed))
        run.condition("nodes", ",".join(members.nodes))
    if members.all_nodes and not record.cut_rank:
        run.condition("node_count", float(len(members.nodes)))
    if who.disagreement:
        run.notice("rank-count-disagrees", f"the number of ranks is {who.disagreement}")
    for name, key in _CONDITIONS:
        if key in record.parameters:
            run.condition(name, read_number(record.parameters[key]))
    for name, key in (("min_bytes", "minBytes"), ("max_bytes", "maxBytes")):
        if key in record.parameters:
            run.condition(name, read_quantity(record.parameters[key], "B"))
    if "step" in record.parameters:
        run.condition("step", record.parameters["step"])
    _add_versions(run, record)
    for name, text in (("transport", record.transport), ("command", record.command), ("started", record.started)):
        if text:
            run.condition(name, text)
    if record.ended:
        run.condition("ended", record.ended)


def _add_versions(run: RunBuilder, record: Record) -> None:
    for name, printed in record.versions.items():
        library, plus, cuda = printed.partition("+")
        if name == "nccl" and plus:
            run.condition("nccl", library)
            version = cuda.removeprefix("cuda")
            run.condition("cuda", version if version[:1].isdigit() else unreadable(cuda, "a placeholder of the build"))
        elif name == "host":
            run.condition("node", printed)
        else:
            run.condition(name, printed)


def _add_gpus(run: RunBuilder, record: Record) -> None:
    """One observation a rank; condition `gpu` is the product when all whole lines name the same one."""
    names: dict[str, None] = {}
    for rank in record.ranks:
        unnamed = rank.product in UNNAMED
        value: Value = NoValue(Lack.ABSENT, rank.product, _unnamed(rank.product)) if unnamed else rank.product
        subject = [("node", rank.node), ("index", rank.device), ("rank", str(rank.rank))]
        if rank.pci:
            subject.append(("pci", rank.pci))
        if record.cut_rank and rank.line == record.cut_rank:
            continue
        names[rank.product] = None
        run.observe("gpu", value, tuple(subject), rank.line)
    products = [name for name in names if name not in UNNAMED]
    if len(products) > 1:
        run.notice("mixed-gpus", f"the ranks use different GPUs: {', '.join(products[:5])}")
    if products:
        run.condition("gpu", ", ".join(products))
    elif names:
        run.condition("gpu", NoValue(Lack.ABSENT, next(iter(names)), _unnamed(next(iter(names)))))
    places = Counter((rank.node, rank.pci) for rank in record.ranks if rank.pci)
    shared = [place for place, count in places.items() if count > 1]
    if shared:
        run.notice("gpu-shared", f"{len(shared)} GPUs carry more than one rank, first {shared[0][1]} on {shared[0][0]}")


def _unnamed(product: str) -> str:
    return "the driver knows no name for it" if product else "the list names no product"


def _add_rows(run: RunBuilder, record: Record) -> None:
    repeats: Counter[tuple[object, ...]] = Counter()
    for row in record.rows:
        key = (row.size, row.type, row.redop, row.root)
        repeats[key] += 1
        labels = [("size", str(row.size))]
        if row.count is not None:
            labels.append(("count", str(row.count)))
        labels += [(n, text) for n, text in (("type", row.type), ("redop", row.redop), ("root", row.root)) if text]
        again = (("repeat", str(repeats[key])),) if repeats[key] > 1 else ()
        out_of_place = row.halves.get("out")
        compared = out_of_place is not None and isinstance(out_of_place.values.get("wrong"), float)
        for place, half in row.halves.items():
            subject = (*labels, ("place", place), *again)
            run.extend(_observe_half(half, subject, row.line, others_compared=compared and place == "in"))


def _observe_half(half: Half, subject: Labels, line: int, *, others_compared: bool) -> list[Observation]:
    """One place of a row.

    Args:
        others_compared: whether the other place was compared; what all-to-all leaves in place never is.
    """
    found: list[tuple[str, Value]] = []
    for name, value in half.values.items():
        if name == "error":
            found.append(("max_error", value))
            if isinstance(value, NoValue):
                found.append(("wrong", value))
        elif name != "wrong" or isinstance(value, float) or not others_compared:
            found.append((_NAMES.get(name, name), value))
    if "wrong" not in half.values and "error" not in half.values:
        found.append(("wrong", NoValue(Lack.ABSENT, "", "the table has no such column")))
    return [_new(Observation, (name, value, subject, line)) for name, value in found]


#: Statistics over single iterations, by their column.
_NAMES: Final = {
    "i_min": "iteration_min",
    "i_max": "iteration_max",
    "i_p99": "iteration_p99",
    "i_cv%": "iteration_variation",
}


def _add_sums(run: RunBuilder, record: Record) -> None:
    if record.average is not None:
        line, text, said = record.average
        run.condition("average_busbw", read_quantity(text, "GB/s"))
        if said == "FAILED":
            run.notice("average-too-low", f"the tool's own limit failed: average {text} GB/s", Weight.ERROR, line)
    if record.bounds is not None:
        line, text, said = record.bounds
        checked = any(
            isinstance(h.values.get(k), float)
            for r in record.rows
            for h in r.halves.values()
            for k in ("wrong", "error")
        )
        off = record.parameters.get("validation") == "0" or (record.rows and not checked)
        run.condition("out_of_bounds", NoValue(Lack.ABSENT, text, "nothing was compared") if off else read_number(text))
        if said == "FAILED" and not off:
            run.notice("test-failed", f"the tool says FAILED with {text} values out of bounds", Weight.ERROR, line)


def _add_faults(run: RunBuilder, record: Record) -> None:
    for line, text in record.failures[:5]:
        run.notice("test-failed", text, Weight.ERROR, line)
    if len(record.failures) > 5:
        run.notice("test-failed", f"and {len(record.failures) - 5} more lines of failure", Weight.ERROR)
    for line, text in record.warnings[:5]:
        run.notice("nccl-warning", text, line=line)
    if len(record.warnings) > 5:
        run.notice("nccl-warning", f"and {len(record.warnings) - 5} more warnings")
    for line, text, why in record.rejected:
        run.reject(line, text, why)
    run.rejected = record.rejections
    if record.torn:
        run.notice(
            "rows-torn",
            f"NCCL's log was written into {len(record.torn)} rows; run with NCCL_DEBUG_FILE so that it goes elsewhere",
            line=record.torn[0],
        )
    if record.zero_rows:
        run.notice(
            "size-zero-rows",
            f"{record.zero_rows} rows of size 0 were left out (sizes too small for this number of ranks);"
            " they count in the printed average",
            Weight.INFO,
            record.first_zero,
        )


def _add_missing(run: RunBuilder, record: Record, who: Participants) -> None:
    members = who.members
    for line in record.elisions[:5]:
        run.missing(f"lines that somebody left out (line {line})")
    if record.cut_rank:
        run.missing("rest of the rank list, which breaks off")
    elif members.ranks is not None and members.listed and members.listed < members.ranks:
        run.missing(f"{members.ranks - members.listed} of {members.ranks} lines of the rank list")
    if record.layout is None:
        run.missing("header of the table" if record.rows or record.rejections else "the table")
    elif not record.rows:
        run.missing("every row of the table")
    if record.rejections and record.rows:
        run.missing(f"{record.rejections} rows that are cut or torn")
    if record.rows_left_out:
        run.missing(f"{record.rows_left_out:,} rows beyond the first {len(record.rows):,}")
    _add_missing_sizes(run, record)
    if record.bounds is None and record.footer:
        run.missing("line 'Out of bounds values'")
    if record.average is None and record.footer:
        run.missing("line 'Avg bus bandwidth'")


def _add_missing_sizes(run: RunBuilder, record: Record) -> None:
    """Sizes that the parameters announce and no row has. An operation that splits rounds its sizes down."""
    low, high = record.parameters.get("minBytes", ""), record.parameters.get("maxBytes", "")
    step, _, kind = record.parameters.get("step", "").partition("(")
    if not record.rows or not all(t.isdecimal() and len(t) < 19 for t in (low, high, step)):
        return
    smallest, largest = min(row.size for row in record.rows), max(row.size for row in record.rows)
    factor = max(int(step), 2) if kind.startswith("factor") else 0
    after = largest * factor if factor else largest + int(step)
    if after <= int(high):
        run.missing(f"sizes above {largest:,} B; the run goes to {int(high):,} B")
    if not record.zero_rows and factor and smallest > int(low) * factor and smallest > 1 << 20:
        run.missing(f"sizes below {smallest:,} B; the run begins at {int(low):,} B")
