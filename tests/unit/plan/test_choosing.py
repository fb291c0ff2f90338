import pytest

from builders.plans import planned, value
from clusterwright.lib.figures import Origin, derive, leaf
from clusterwright.plan.choosing import PRECEDENCE, Kind, Measured, choose


def a(origin, number=1.0, unit="GB/s", name="x"):
    return leaf(name, number, unit, origin, "somewhere")


def measured(number, nodes, unit="GB/s"):
    return Measured(a(Origin.MEASURED, number, unit, "evidence"), nodes)


def test_a_declared_price_beats_the_catalogue_and_any_bill():
    chosen = choose(Kind.PRICE, [a(Origin.CATALOGUE, 3), a(Origin.DECLARED, 2)], measured=measured(9, 99))
    assert chosen.value == 2


def test_a_measured_rate_in_scope_beats_what_is_declared():
    chosen = choose(Kind.RATE, [a(Origin.DECLARED, 20)], measured=measured(12, 2), name="store.read", nodes=2)
    assert (chosen.value, chosen.name, chosen.origin) == (12, "store.read", Origin.MEASURED)


def test_a_measurement_on_fewer_nodes_never_stands_for_more():
    assert choose(Kind.RATE, [a(Origin.DECLARED, 20)], measured=measured(12, 1), nodes=2).value == 20


def test_a_measurement_without_scope_never_replaces_a_rate():
    bare = a(Origin.MEASURED, 12)
    assert choose(Kind.RATE, [a(Origin.DECLARED, 20)], measured=bare).value == 20
    assert choose(Kind.SIZE, [a(Origin.DECLARED, 20)], measured=bare).value == 12


def test_rehearsed_figures_never_replace_anything():
    rehearsed = Measured(a(Origin.REHEARSED, 12), 100)
    for kind in Kind:
        assert Origin.REHEARSED not in PRECEDENCE[kind]
        assert choose(kind, [a(Origin.DECLARED, 20)], measured=rehearsed).value == 20


def test_a_target_is_only_ever_declared():
    assert choose(Kind.TARGET, [a(Origin.DECLARED, 1)], measured=measured(5, 100)).value == 1
    assert choose(Kind.TARGET, [a(Origin.CATALOGUE, 1)], measured=measured(5, 100)) is None


def test_an_estimate_of_ours_stands_behind_everything_stated():
    estimate = derive("y", "GB/s", "a formula", lambda v: 2 * v, a(Origin.MEASURED, 9))
    assert choose(Kind.RATE, [estimate, a(Origin.DECLARED, 2)]).value == 2
    assert choose(Kind.RATE, [None, estimate]) is estimate


def test_a_measurement_in_another_unit_is_refused():
    with pytest.raises(ValueError, match="is in GiB/s, the plan needs GB/s"):
        choose(Kind.RATE, [a(Origin.DECLARED, 2)], measured=measured(2, 9, "GiB/s"))


def test_a_measured_store_changes_the_plan_and_shows_in_it():
    slow = {"storage.stores.object.read": measured(1.0, 2)}
    plan = planned(measured=slow)
    assert value(plan, "storage.stores.object.read") == 1.0
    payload = plan.workload("chat").payload
    assert payload.binding.kind == "source"
    assert payload.binding.rate.origin is Origin.MEASURED
    assert payload.meets_rate is False
    assert value(planned(measured={"storage.stores.object.read": measured(1.0, 1)}), "storage.stores.object.read") == 20


def test_a_measured_replica_rate_replaces_the_estimate():
    name = "workloads.chat.service.replica_rate"
    plan = planned(measured={name: measured(4.0, 2, "req/s")})
    assert value(plan, name) == 4.0
    assert plan.workload("chat").service.replicas_for_load == 2
    assert "workloads.chat.service.losses" in {m.subject for m in plan.misfits}
