from __future__ import annotations

import pytest

from clusterwright.ledger.attempts import AttemptRecord, Ending
from clusterwright.ledger.lines import Account, Line
from clusterwright.ledger.usage import SLURM_GPUS, NotRecorded, Owner, Usage, charge_jobs
from clusterwright.model.jobs import Cause

from .builders import attempt

OWNERS = {
    "1": Owner("training", "nlp", "ada", "llama-3.3-70b"),
    "2": Owner("training", "nlp", "ben"),
    "3": Owner("serving", "web", "ada"),
}
PRICES = {"h100": 2.40, "b200": 5.00}


def account(job: str, flavor: str = "h100") -> Account:
    return Account(flavor, OWNERS[job].queue, OWNERS[job].team, "8", job)


def hours(gpus: int, begin: float, end: float, ending: Ending = Ending.COMPLETED, **facts: float) -> AttemptRecord:
    record = attempt(ending, gpus=gpus, admitted_s=begin * 3600, started_s=begin * 3600, ended_s=end * 3600)
    record.saved_s = facts.get("saved") and facts["saved"] * 3600
    record.cause = Cause.HARDWARE
    return record


def usage(**more: float) -> Usage:
    attempts = [
        (account("1"), hours(8, 0, 10, Ending.FAILED, saved=9.0)),
        (account("1"), hours(8, 11, 12)),
        (account("2"), hours(4, 0, 5, Ending.FAILED)),
        (account("3", "b200"), hours(2, 3, 5)),
    ]
    return charge_jobs(attempts, OWNERS, succeeded=["1", "3"], **more)


def test_usage_is_what_jobs_held_by_line() -> None:
    found = usage()
    assert found.gpu_ms() == (80 + 8 + 20 + 4) * 3_600_000
    assert found.lines.gpu_h(Line.PRODUCTIVE) == 72 + 8 + 4
    assert found.lines.gpu_h(Line.LOST) == 8
    assert found.lines.gpu_h(Line.FAILED) == 20


@pytest.mark.parametrize(
    ("field", "gpu_h"),
    [
        ("queue", {"training": 108, "serving": 4}),
        ("team", {"nlp": 108, "web": 4}),
        ("user", {"ada": 92, "ben": 20}),
        ("model", {"": 24, "llama-3.3-70b": 88}),
    ],
)
def test_usage_is_grouped_by_owner(field: str, gpu_h: dict[str, int]) -> None:
    assert {name: part.gpu_ms() for name, part in usage().by(field).items()} == {
        name: h * 3_600_000 for name, h in gpu_h.items()
    }


def test_only_owners_own_jobs() -> None:
    with pytest.raises(ValueError, match="'flavor' owns no jobs; fields: queue, team, user, model"):
        usage().by("flavor")


def test_a_result_costs_every_line_it_caused() -> None:
    ada = usage().by("user")["ada"]
    assert ada.cost(PRICES) == pytest.approx(88 * 2.40 + 4 * 5.00)
    assert ada.cost_per_success(PRICES) == pytest.approx((88 * 2.40 + 4 * 5.00) / 2)


def test_failed_jobs_are_part_of_what_a_success_of_their_queue_costs() -> None:
    assert usage().by("queue")["training"].cost_per_success(PRICES) == pytest.approx(108 * 2.40)


def test_without_a_success_there_is_no_cost_of_one() -> None:
    assert usage().by("user")["ben"].cost_per_success(PRICES) is None


def test_a_missing_price_is_named_and_never_zero() -> None:
    found = usage().cost({"h100": 2.40})
    assert isinstance(found, NotRecorded)
    assert found.what == "price of b200"


def test_an_interval_counts_what_is_within_it() -> None:
    parts = [usage(until_s=4 * 3600.0), usage(since_s=4 * 3600.0, until_s=9.5 * 3600), usage(since_s=9.5 * 3600)]
    assert [p.lines.gpu_h(Line.PRODUCTIVE) for p in parts] == [32 + 2, 40 + 2, 8]
    assert [p.lines.gpu_h(Line.LOST) for p in parts] == [0, 4, 4]


def test_usage_is_not_recorded_where_the_site_keeps_no_gpu_accounting() -> None:
    found = charge_jobs([(account("1"), None), (account("2"), hours(4, 0, 5))], OWNERS)
    total = found.gpu_ms()
    assert isinstance(total, NotRecorded)
    assert total.add == "AccountingStorageTRES=gres/gpu in slurm.conf" == SLURM_GPUS.add
    assert total.at_least_gpu_ms == 20 * 3_600_000
    assert isinstance(found.cost(PRICES), NotRecorded)
    assert isinstance(found.cost_per_success(PRICES), NotRecorded)
    assert found.by("user")["ben"].gpu_ms() == 20 * 3_600_000


def test_every_job_has_an_owner() -> None:
    with pytest.raises(ValueError, match="job '9' has no owner"):
        charge_jobs([(Account("h100", job="9"), None)], OWNERS)
