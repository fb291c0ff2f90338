"""An answer in other forms than a page, and what a page may say on demand."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from clusterwright.app.fitting import FitRequest
from clusterwright.files.catalogue import load_catalogue
from clusterwright.files.outputs import write_text
from clusterwright.plan.fitting.answers import ServingAnswer
from clusterwright.report.blocks import Block
from clusterwright.report.fits_customers import for_customers
from clusterwright.report.fits_more import alternative_blocks, alternative_values, bill_blocks, bill_values
from clusterwright.report.fits_values import serving_values
from clusterwright.report.tables_out import Cell, as_csv, serving_rows, table_of

if TYPE_CHECKING:
    from clusterwright.app.fitting import Answer
    from clusterwright.plan.fitting.alternatives import Alternative
    from clusterwright.plan.fitting.apart import Apart
    from clusterwright.plan.materials import Materials


@dataclass(frozen=True)
class More:
    """What is said beside the answer.

    Args:
        machine: that it is about, the best one.
        bill: whether the bill of materials is wanted, `materials` where it could be counted.
        elsewhere: the same work at published prices, None where nobody asked or a customer reads.
        apart: prefill and decode on workers of their own, of every machine; None where nobody asked.
    """

    machine: str = ""
    bill: bool = False
    materials: Materials | None = None
    elsewhere: tuple[Alternative, ...] | None = None
    apart: tuple[Apart, ...] | None = None

    @property
    def blocks(self) -> tuple[Block, ...]:
        """For a page."""
        found = list[Block]()
        if self.bill:
            found += bill_blocks(self.materials, self.machine)
        if self.elsewhere is not None:
            found += alternative_blocks(self.elsewhere, self.machine)
        if self.apart is not None:
            from clusterwright.report.fits_apart import apart_blocks

            found += apart_blocks(self.apart)
        return tuple(found)


NOTHING_MORE: Final = More()


def more_of(answer: Answer, request: FitRequest, *, bill: bool, elsewhere: bool, apart: bool = False) -> More:
    """What is asked for beside the answer, as far as this audience may see it.

    Args:
        bill, elsewhere: of the best machine. apart: prefill and decode on workers of their own, of every machine.
    """
    # Few ask for any of it; each brings much that no other answer needs.
    found, materials, split = None, None, None
    if apart and isinstance(answer, ServingAnswer):
        from clusterwright.plan.fitting.apart import apart_of

        split = tuple(apart_of(fit) for fit in answer.fits)
    if elsewhere and request.audience == "internal":
        from clusterwright.plan.fitting.alternatives import alternatives

        catalogue = load_catalogue(request.catalogues)
        found = alternatives(answer.first, catalogue, request.today, answer.decoder.name)
    if bill:
        from clusterwright.plan.fitting.bills import bill_of

        materials = bill_of(answer.first, answer.wants)
    return More(answer.first.machine.asked, bill, materials, found, split)


def values_of_fit(answer: Answer, more: More = NOTHING_MORE) -> dict[str, Any]:
    """The answer as plain values."""
    if isinstance(answer, ServingAnswer):
        values = serving_values(answer)
    else:
        from clusterwright.report.fits_training_values import training_values

        values = training_values(answer)
    if more.bill:
        values["bill"] = bill_values(more.materials)
    if more.elsewhere is not None:
        values["elsewhere"] = alternative_values(more.elsewhere)
    if more.apart is not None:
        from clusterwright.report.fits_apart import apart_values

        values["disaggregated"] = apart_values(more.apart)
    return values if answer.audience == "internal" else for_customers(values)


def csv_of_fit(answer: Answer) -> str:
    """The answer as CSV, one row per machine."""
    return as_csv(table_of(rows_of(answer)))


def rows_of(answer: Answer) -> list[dict[str, Cell]]:
    """The answer as flat rows, one per machine."""
    if isinstance(answer, ServingAnswer):
        return serving_rows(answer)
    from clusterwright.report.fits_training_values import training_rows

    return training_rows(answer)


def write_architecture(answer: Answer, path: Path, *, replace: bool = False) -> None:
    """Write the architecture file that says what the answer says.

    Raises:
        InvalidInput: nothing holds, or the file exists.
    """
    from clusterwright.plan.fitting.documents import architecture_text

    write_text(path, architecture_text(answer), replace=replace)
