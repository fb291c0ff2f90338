"""The word that was most likely meant."""

from __future__ import annotations

from clusterwright.lib.spelling import did_you_mean, nearest


def test_case_dashes_and_underscores_do_not_count() -> None:
    assert nearest("FabricManager", ["fabric_manager", "driver"]) == "fabric_manager"
    assert nearest("out-of-bnad", ["in-band", "out-of-band"]) == "out-of-band"


def test_nothing_close_suggests_nothing() -> None:
    assert nearest("zzz", ["driver"]) is None
    assert did_you_mean("zzz", ["driver"]) == ""
    assert did_you_mean("drivr", ["driver"]) == "did you mean 'driver'?"


def test_a_huge_word_is_answered_quickly() -> None:
    assert nearest("x" * 10_000_000, ["driver"]) is None
