"""Layouts of prefill and decode workers that a file leaves open: those that carry the load with the fewest GPUs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from clusterwright.model.workloads import Serve, Workload
from clusterwright.physics.serving.constants import Constants
from clusterwright.plan.engines import file_layout
from clusterwright.plan.gathering import Sheet
from clusterwright.plan.models import PlannedModel, served_in
from clusterwright.plan.results.layouts import Layout
from clusterwright.plan.results.refusals import Unplanned
from clusterwright.plan.searching.calibrated import calibrated
from clusterwright.plan.searching.disaggregated import split_service
from clusterwright.plan.searching.questions import ServingQuestion
from clusterwright.plan.searching.reasons import Reason
from clusterwright.plan.searching.serving import search_serving
from clusterwright.plan.serving_questions import read_question
from clusterwright.plan.sites import Site


def searched_halves(
    sheet: Sheet, name: str, workload: Workload, serve: Serve, site: Site, model: PlannedModel
) -> tuple[Layout, Layout] | Unplanned:
    """(prefill, decode) layouts, or that no pair of them serves the load."""
    subject = f"workloads.{name}.memory"
    if site.gpu is None:
        return Unplanned(subject, "the GPU is unknown")
    served = served_in(sheet, f"workloads.{name}.serve.precision", model, serve.precision)
    question = read_question(sheet, name, workload, serve, served, site, site.gpu, "cost")
    constants, _ = calibrated(question, sheet.catalogue.calibrations())
    with np.errstate(all="ignore"):  # what no worker can do is infinite
        return _searched(sheet, name, serve, site.gpu.name, question, constants)


def _searched(
    sheet: Sheet, name: str, serve: Serve, gpu: str, question: ServingQuestion, constants: Constants
) -> tuple[Layout, Layout] | Unplanned:
    subject = f"workloads.{name}.memory"
    try:
        search = search_serving(question, constants)
    except KeyError as format_:  # the GPU has no unit for it
        return Unplanned(subject, f"the catalogue gives no rate of {gpu}: {format_}")
    judged = search.judged
    if serve.speculation is not None:  # engines that draft over stages are few, see `plan/speculation.py`
        judged = replace(judged, reason=np.where(judged.sizes["pp"] > 1, int(Reason.LAYERS), judged.reason))
    found = split_service(question, constants, judged)
    if found is None:
        reason = "no prefill and decode workers of this pool serve the load within the targets"
        sheet.misfit(subject, f"workloads.{name}.serve.disaggregated", reason)
        return Unplanned(subject, reason)
    return file_layout(found.prefill), file_layout(found.decode)
