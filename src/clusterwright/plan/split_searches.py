"""Layouts of prefill and decode workers that a file leaves open: those that carry the load with the fewest GPUs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from clusterwright.lib.figures import Figure
from clusterwright.model.workloads import Serve, Workload
from clusterwright.plan.engines import file_layout, read_engine
from clusterwright.plan.gathering import Sheet
from clusterwright.plan.models import PlannedModel, served_in
from clusterwright.plan.results import Layout, Unplanned
from clusterwright.plan.searching.calibrated import calibrated
from clusterwright.plan.searching.disaggregated import split_service
from clusterwright.plan.searching.questions import Lengths, ServingQuestion
from clusterwright.plan.searching.reasons import Reason
from clusterwright.plan.searching.serving import search_serving
from clusterwright.plan.services import quantile_of, read_targets
from clusterwright.plan.sites import Site
from clusterwright.plan.training_steps import pool_of


def searched_halves(
    sheet: Sheet, name: str, workload: Workload, serve: Serve, site: Site, model: PlannedModel, nic: Figure
) -> tuple[Layout, Layout] | Unplanned:
    """(prefill, decode) layouts, or that no pair of them serves the load."""
    subject = f"workloads.{name}.memory"
    if site.gpu is None:
        return Unplanned(subject, "the GPU is unknown")
    question = _question(sheet, name, workload, serve, site, model, nic)
    constants, _ = calibrated(question, sheet.catalogue.calibrations())
    try:
        search = search_serving(question, constants)
    except KeyError as format_:  # the GPU has no unit for it
        return Unplanned(subject, f"the catalogue gives no rate of {site.gpu.name}: {format_}")
    judged = search.judged
    if serve.speculation is not None:  # engines that draft over stages are few, see `plan/speculation.py`
        judged = replace(judged, reason=np.where(judged.sizes["pp"] > 1, int(Reason.LAYERS), judged.reason))
    found = split_service(question, constants, judged)
    if found is None:
        reason = "no prefill and decode workers of this pool serve the load within the targets"
        sheet.misfit(subject, f"workloads.{name}.serve.disaggregated", reason)
        return Unplanned(subject, reason)
    return file_layout(found.prefill), file_layout(found.decode)


def _question(
    sheet: Sheet, name: str, workload: Workload, serve: Serve, site: Site, model: PlannedModel, nic: Figure
) -> ServingQuestion:
    engine = read_engine(serve.engine)
    first, step = read_targets(sheet, name, workload.target)
    served = served_in(sheet, f"workloads.{name}.serve.precision", model, serve.precision)
    assert site.gpu is not None
    return ServingQuestion(
        served.decoder,
        pool_of(site, site.gpu, nic.value),
        Lengths(
            serve.input.value,
            serve.output.value,
            serve.in_p95.value if serve.in_p95 else None,
            serve.out_p95.value if serve.out_p95 else None,
            serve.prefix_reuse.value if serve.prefix_reuse else 0.0,
            serve.lengths.prompts if serve.lengths else (),
        ),
        engine=engine.name,
        version=engine.planned,
        kv_format=serve.kv_precision or "auto",
        rate=serve.rate.value,
        ttft_s=first[1].value if first else None,
        tpot_s=step[1].value if step else None,
        quantile=quantile_of(first[0]) if first else 0.95,
        step_quantile=quantile_of(step[0]) if step else 0.95,
        survive_nodes=int(workload.target.survive.value) if workload.target and workload.target.survive else 0,
        max_model_len=int(serve.max_model_len.value) if serve.max_model_len else None,
        memory_share=serve.memory_share.value if serve.memory_share else None,
        max_num_seqs=serve.max_num_seqs,
        max_num_batched_tokens=serve.max_num_batched_tokens,
    )
