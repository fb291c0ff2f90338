"""Failures, checkpoints, lost time, spares.

Sources: Young, "A first order approximation to the optimum checkpoint interval", CACM 17(9), 1974; Daly, "A higher
order estimate of the optimum checkpoint interval for restart dumps", FGCS 22(3), 2006, equations 17 and 37 (first and
higher order); Kokolis et al., "Revisiting Reliability in Large-Scale Machine Learning Research Clusters",
arXiv:2410.21680, section 3 (rates r_f of RSC-1 and RSC-2; ETTR); Llama 3, arXiv:2407.21783, table 5.
"""

from __future__ import annotations

import math
from typing import Final

from clusterwright.lib.scales import DAY_S

#: Node failures per 1,000 node-days that stop a job, nodes of 8 GPUs.
RSC1_PER_1000_NODE_DAYS: Final = 6.50
RATE_SOURCE: Final = "node failures of Meta's RSC-1 (RSC-2: 2.34, Llama 3: 3.79), arXiv:2410.21680, 2024-10"
#: 1,024-GPU jobs failed after 7.9 h where the rate gives 28.8 h: how far the formula may be off for mid-size jobs.
MTTF_BAND: Final = (1 / 3.6, 1.0)


def mttf_h(nodes: float, per_1000_node_days: float) -> float:
    """Hours between failures of a job on `nodes` nodes, 1/(N·r); infinite when nothing fails."""
    rate = nodes * per_1000_node_days / 1000
    return 24 / rate if rate else math.inf


def ettr(nodes: float, per_1000_node_days: float, restart_s: float, interval_s: float, stall_s: float) -> float:
    """Expected share of wall time that is productive, (1 − N·r·(u0 + Δt/2)) ÷ (1 + w/Δt), not below 0.

    Args:
        restart_s: u0, from the failure until work goes on.
        interval_s: Δt between checkpoints.
        stall_s: w, for which a checkpoint stops the work.
    """
    failures_per_s = nodes * per_1000_node_days / 1000 / DAY_S
    return max(0.0, 1 - failures_per_s * (restart_s + interval_s / 2)) / (1 + stall_s / interval_s)


def ettr_exact(nodes: float, per_1000_node_days: float, restart_s: float, interval_s: float, stall_s: float) -> float:
    """Share of wall time that is productive in the long run, Δt ÷ (M·e^(u0/M)·(e^((Δt + w)/M) − 1)).

    It is the process itself (renewal-reward): failures without memory at any time, the restart included; after each the
    whole restart again; work counts once the stall after it is over. `ettr` is close to it while Δt and u0 are small
    beside M. It charges u0 + Δt/2 for every failure, although one that follows soon, or during a restart, takes less:
    on 2,000 nodes of RSC-1 with Δt = 60 min, more than half of M, it gives .682 where the process gives .718.

    Source: the complete cost function of Daly (FGCS 22(3), 2006), M·e^(R/M)·(e^((τ + δ)/M) − 1) for each τ of work.
    """
    failures_per_s = nodes * per_1000_node_days / 1000 / DAY_S
    if not failures_per_s:
        return interval_s / (interval_s + stall_s)
    try:
        cost = math.exp(restart_s * failures_per_s) * math.expm1((interval_s + stall_s) * failures_per_s)
    except OverflowError:
        return 0.0
    return interval_s * failures_per_s / cost


def young_s(stall_s: float, mttf_s: float) -> float:
    """Young's interval √(2wM), s."""
    return math.sqrt(2 * stall_s * mttf_s)


def daly_s(stall_s: float, mttf_s: float) -> float:
    """Daly's first-order interval √(2wM) − w, s; M when the stall is at least 2M."""
    return young_s(stall_s, mttf_s) - stall_s if stall_s < mttf_s / 2 else mttf_s


def daly_higher_s(stall_s: float, mttf_s: float) -> float:
    """Daly's higher-order interval √(2wM)·(1 + √(w/2M)/3 + (w/2M)/9) − w, s; M when the stall is at least 2M."""
    if stall_s >= 2 * mttf_s:
        return mttf_s
    part = stall_s / (2 * mttf_s)
    return young_s(stall_s, mttf_s) * (1 + math.sqrt(part) / 3 + part / 9) - stall_s


def waste(interval_s: float, stall_s: float, mttf_s: float, restart_s: float) -> float:
    """Share of time lost to stalls, repeated work and restarts: w/τ + τ/2M + R/M (first order)."""
    return stall_s / interval_s + interval_s / (2 * mttf_s) + restart_s / mttf_s


#: Most spares that are counted; beyond, a node is rather down than up and the answer says nothing.
SPARES_MOST: Final = 100_000


def spares(nodes: int, mtbf_days: float, repair_days: float, target: float) -> int:
    """Smallest k so that at most k of nodes + k are down with probability `target`; SPARES_MOST + 1 beyond SPARES_MOST.

    Independent failures only: a failure domain that takes several nodes needs a simulation.

    Raises:
        ValueError: if the target is not below 1.
    """
    if not target < 1:
        raise ValueError("no number of spares is always enough")
    down = repair_days / (mtbf_days + repair_days)
    low, high = -1, 1
    while _binomial_cdf(high, nodes + high, down) < target:  # the probability grows with k
        low, high = high, high * 2
        if low > SPARES_MOST:
            return SPARES_MOST + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _binomial_cdf(middle, nodes + middle, down) < target else (low, middle)
    return high


def spared_share(nodes: int, kept: int, mtbf_days: float, repair_days: float) -> float:
    """Probability that at most `kept` of nodes + kept are down: the share of time in which no node is missing."""
    return _binomial_cdf(kept, nodes + kept, repair_days / (mtbf_days + repair_days))


def _binomial_cdf(k: int, n: int, p: float) -> float:
    if p <= 0:
        return 1.0
    log_p, log_q = math.log(p), math.log1p(-p)
    return math.fsum(
        math.exp(math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) + i * log_p + (n - i) * log_q)
        for i in range(k + 1)
    )
