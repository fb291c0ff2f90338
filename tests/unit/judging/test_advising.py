"""What events and counters ask for, with the sources that differ."""

from __future__ import annotations

from clusterwright.judging.advising import advise, is_serious
from clusterwright.lib.quantities import parse_quantity
from clusterwright.model.observations import Observation, Run, Transcript

AT = {"node": "n1", "pci": "0000:1b:00.0"}


def advice(*observations):
    seen = tuple(Observation(n, v, tuple(s.items()), line) for line, (n, v, s) in enumerate(observations, 1))
    return advise(Transcript("kernel-log", (Run("kernel log", observations=seen),)))


def test_an_application_fault_asks_nothing_of_the_hardware():
    found = advice(("xid", 31.0, AT))
    assert [a.what for a in found] == ["Xid 31"]
    assert found[0].harmless
    assert not is_serious(found)


def test_a_lost_gpu_does_whatever_name_it_has():
    coded = advice(("xid", 79.0, AT))
    silent = advice(("lost_device", "fallen off the bus", AT))
    both = advice(("xid", 79.0, AT), ("lost_device", "Xid 79", AT))
    assert coded[0].do == silent[0].do == "restart the machine"
    assert is_serious(coded)
    assert [a.what for a in both] == ["Xid 79"]


def test_a_consequence_gives_way_to_the_cause_that_it_names():
    found = advice(("xid", 45.0, AT), ("xid_cause", 149.0, AT | {"xid": "45"}))
    assert {a.what for a in found} == {"Xid 45", "Xid 149, named as the cause,"}
    assert next(a for a in found if a.what == "Xid 45").do == "ignore"
    assert is_serious(found)


def test_the_action_that_the_driver_asks_for_decides():
    found = advice(("xid", 154.0, AT), ("recovery_action", "GPU Reset Required", AT))
    assert found[0].do == "reset the GPU"
    assert "GPU Reset Required" in found[0].why


def test_sources_that_differ_stand_beside_each_other():
    (found,) = advice(("xid", 63.0, AT))
    assert found.do == "ignore"
    assert found.others
    assert not found.harmless


def test_codes_of_other_devices_explain_nothing():
    found = advice(("xid", 48.0, AT), ("xid", 63.0, AT | {"pci": "0000:2b:00.0"}))
    assert next(a for a in found if a.what == "Xid 48").why.startswith("alone")


def test_a_fatal_sxid_is_serious_and_a_counted_one_is_not():
    fatal = advice(("sxid", 20034.0, AT), ("sxid_severity", "fatal", AT | {"sxid": "20034"}))
    counted = advice(("sxid", 12028.0, AT))
    assert is_serious(fatal)
    assert not is_serious(counted)


def test_repairs_ask_for_a_reset_and_failures_for_a_new_gpu():
    pending = advice(("remap_pending", True, {"gpu": "3"}), ("remap_failure", False, {"gpu": "3"}))
    failed = advice(("remap_pending", False, {"gpu": "3"}), ("remap_failure", True, {"gpu": "3"}))
    fine = advice(("remap_pending", False, {"gpu": "3"}), ("remap_failure", False, {"gpu": "3"}))
    assert [a.do for a in pending] == ["reset the GPU"]
    assert [a.do for a in failed] == ["replace the GPU"]
    assert fine == ()


def test_retired_pages_of_both_causes_add_up():
    found = advice(
        ("retired_pages", 40.0, {"gpu": "1", "cause": "single-bit"}),
        ("retired_pages", 20.0, {"gpu": "1", "cause": "double-bit"}),
        ("retired_pages_pending", False, {"gpu": "1"}),
    )
    assert [a.do for a in found] == ["replace the GPU"]


def test_heat_counts_against_the_margin_of_the_product():
    hot = advice(
        ("gpu", "NVIDIA H100 80GB HBM3", {"gpu": "0"}), ("temperature_margin", parse_quantity("-4 °C"), {"gpu": "0"})
    )
    warm = advice(
        ("gpu", "NVIDIA H100 80GB HBM3", {"gpu": "0"}), ("temperature_margin", parse_quantity("5 °C"), {"gpu": "0"})
    )
    assert [a.do for a in hot] == ["check the cooling"]
    assert warm == ()


def test_what_is_serious_comes_first():
    found = advice(("xid", 13.0, AT), ("xid", 79.0, AT))
    assert [a.what for a in found] == ["Xid 79", "Xid 13"]
