"""A service of the file as a question to the placement search: same pool, formats, lengths, targets and settings."""

from __future__ import annotations

from dataclasses import replace

from clusterwright.lib.quantities import Quantity
from clusterwright.model.hardware import Gpu
from clusterwright.model.workloads import Serve, Workload
from clusterwright.plan.collectives import fabric_rate, nic_rate
from clusterwright.plan.engines import read_engine
from clusterwright.plan.gathering import Sheet
from clusterwright.plan.models import Served
from clusterwright.plan.results.refusals import Unplanned
from clusterwright.plan.searching.questions import Goal, Lengths, Pool, ServingQuestion
from clusterwright.plan.service_costs import gpu_hour
from clusterwright.plan.services import quantile_of, target_of
from clusterwright.plan.sites import Site, networks_with


def read_question(
    sheet: Sheet, name: str, workload: Workload, serve: Serve, served: Served, site: Site, gpu: Gpu, goal: Goal
) -> ServingQuestion:
    """What the search is asked of a service on its pool."""
    engine = read_engine(serve.engine)
    first, step = (target_of(workload.target, what) for what in ("ttft", "tpot"))
    return ServingQuestion(
        served.decoder,
        searched_pool(sheet, site, gpu),
        Lengths(
            serve.input.value,
            serve.output.value,
            serve.in_p95.value if serve.in_p95 else None,
            serve.out_p95.value if serve.out_p95 else None,
            reused_share=_reused(serve),
            prompts=serve.lengths.prompts if serve.lengths else (),
        ),
        engine=engine.name,
        version=engine.version,
        kv_format=serve.kv_precision or "auto",
        rate=serve.rate.value,
        ttft_s=_seconds(first),
        tpot_s=_seconds(step),
        quantile=quantile_of(first[0]) if first else None,
        step_quantile=quantile_of(step[0]) if step else None,
        survive_nodes=int(workload.target.survive.value) if workload.target and workload.target.survive else 0,
        apart=serve.spread == "required",
        replicas=serve.replicas,
        spread=True,
        max_model_len=int(serve.max_model_len.value) if serve.max_model_len else served.decoder.max_context,
        memory_share=serve.memory_share.value if serve.memory_share else None,
        max_num_seqs=serve.max_num_seqs,
        max_num_batched_tokens=serve.max_num_batched_tokens,
        goal=goal,
    )


def _reused(serve: Serve) -> float:
    """Share of prompt tokens that need no prefill: as declared, else of a trace with the smallest cache it tells."""
    if serve.prefix_reuse is not None:
        return float(serve.prefix_reuse.value)
    return float(serve.lengths.reuse[0].share.value) if serve.lengths and serve.lengths.reuse else 0.0


def _seconds(target: tuple[str, object] | None) -> float | None:
    value = target[1] if target else None
    return value.value if isinstance(value, Quantity) else None


def searched_pool(sheet: Sheet, site: Site, gpu: Gpu) -> Pool:
    """The nodes that carry workloads, with the network that the file gives them and their price."""
    rate = nic_rate(sheet, site) if networks_with(sheet, "compute", site.name) else None
    nic = None if rate is None or isinstance(rate, Unplanned) else fabric_rate(sheet, site, rate)[0].value
    pool = Pool(gpu, site.gpus_per_node, site.domain_gpus, len(site.working), nic)
    price = gpu_hour(sheet, site)
    if price is None:
        return pool
    return replace(pool, price_per_gpu_h=price.value, currency=price.unit.partition("/")[0])
