"""Cost of a GPU-hour and of a unit of work; any currency, hours, kW.

Source: annuity formula (capital recovery factor); a year has 8,760 h.
"""

from __future__ import annotations

from typing import Final

HOURS_PER_YEAR: Final = 8760.0
HOURS_PER_MONTH: Final = 730.0


def capital_recovery(interest: float, years: float) -> float:
    """Yearly payment per unit of capital, i/(1 − (1 + i)^−n); 1/n without interest."""
    return interest / (1 - (1 + interest) ** -years) if interest else 1 / years


def gpu_hour(
    capital: float,
    interest: float,
    years: float,
    power_kw: float,
    pue: float,
    energy_per_kwh: float,
    other_per_year: float,
    useful_share: float,
) -> float:
    """Money per useful GPU-hour of an owned GPU.

    Args:
        capital: purchase price of one GPU with its share of node and network.
        power_kw: of one GPU with its share of the node; 0 when colocation (in `other_per_year`) includes power.
        other_per_year: colocation, network, storage, staff, maintenance per GPU and year.
        useful_share: of all hours.
    """
    yearly = capital * capital_recovery(interest, years) + power_kw * pue * HOURS_PER_YEAR * energy_per_kwh
    return (yearly + other_per_year) / (HOURS_PER_YEAR * useful_share)


def per_million_tokens(gpu_hour_price: float, tokens_per_s: float, utilisation: float) -> float:
    """Money per 10⁶ tokens of one GPU that makes `tokens_per_s` during `utilisation` of the paid time."""
    return gpu_hour_price / (tokens_per_s * 3600 * utilisation / 1e6)
