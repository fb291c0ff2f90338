"""What a service's replicas cost at the price of their pool: per hour, and per million output tokens of its load."""

from __future__ import annotations

from collections.abc import Callable

from clusterwright.lib.figures import Figure
from clusterwright.model.workloads import Serve
from clusterwright.physics.money import HOURS_PER_MONTH
from clusterwright.plan.gathering import Sheet
from clusterwright.plan.results.layouts import Layout
from clusterwright.plan.sites import Site


def gpu_hour(sheet: Sheet, site: Site) -> Figure | None:
    """Money per GPU-hour as the file prices the pool; None without a price."""
    price, path = site.pool.price, f"{site.path}.price"
    if price is None or not site.gpus:
        return None
    powers = {symbol for symbol, _ in price.powers}
    if "GPU" in powers:
        return sheet.declared(path, price, "money/GPU-h")
    gpus = sheet.planned(
        f"{site.path}.gpus_per_node", site.gpus_per_node, "GPUs", f"GPUs of a node of pool {site.name}"
    )
    if "node" in powers:
        node = sheet.declared(path, price, "money/node-h")
        return _each(sheet, site, node, "price of a node ÷ its GPUs", lambda p, g: p / g, node, gpus)
    month = sheet.declared(path, price, "money/month")
    nodes = len(site.nodes)
    formula = f"price of the pool ÷ {nodes} nodes ÷ GPUs of each ÷ {HOURS_PER_MONTH:g} h"
    return _each(sheet, site, month, formula, lambda p, g: p / (nodes * g * HOURS_PER_MONTH), month, gpus)


def _each(
    sheet: Sheet, site: Site, price: Figure, formula: str, function: Callable[..., float], *inputs: Figure
) -> Figure:
    sign = price.unit.partition("/")[0]
    return sheet.derive(f"{site.path}.price_per_gpu", f"{sign}/GPU-h", formula, function, *inputs)


def service_costs(
    sheet: Sheet, name: str, serve: Serve, site: Site, layout: Layout, replicas: int
) -> tuple[Figure, Figure] | None:
    """(money per hour, money per million output tokens at the declared rate); None without a price.

    Replicas pay for what they leave over of their nodes, shared evenly.
    """
    price = gpu_hour(sheet, site)
    if price is None or not replicas:
        return None
    node, prefix = site.gpus_per_node, f"workloads.{name}.service"
    each = node / (node // layout.gpus) if layout.gpus <= node else -(-layout.gpus // node) * node
    charged = sheet.planned(
        f"{prefix}.charged_gpus", replicas * each, "GPUs",
        f"{replicas} × {layout.gpus} GPUs, with what they leave over of their nodes",
    )  # fmt: skip
    hour = sheet.derive(
        f"{prefix}.cost_per_h", price.unit.replace("GPU-h", "h"), "GPUs × price", lambda g, p: g * p, charged, price
    )
    sign = price.unit.partition("/")[0]
    tokens = sheet.derive(
        f"{prefix}.cost_per_mtok_output", f"{sign}/Mtok output", "money per hour ÷ (declared rate × output tokens)",
        lambda h, r, o: h / (r * o * 3600) * 1e6,
        hour,
        sheet.declared(f"workloads.{name}.serve.rate", serve.rate, "req/s"),
        sheet.declared(f"workloads.{name}.serve.out", serve.output, "tokens"),
    )  # fmt: skip
    return hour, tokens
