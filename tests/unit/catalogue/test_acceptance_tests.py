"""The shipped acceptance tests: whole, real, and about things that exist."""

from __future__ import annotations

import pytest

from clusterwright.catalogue.acceptance_tests import RUN_TIME, SUITES, parse_tests
from clusterwright.files.suites import load_tests
from clusterwright.judging.acceptance_units import BINARIES
from clusterwright.lib.errors import InvalidInput
from clusterwright.model.acceptance import Conditions
from clusterwright.readers.reading import KINDS

TESTS = {t.name: t for t in load_tests()}
ONE = """\
tests:
  one:
    suite: inventory
    title: one
    argv: [true]
    reader: nvidia-smi-q
    runs: each-node
    stage: 1
    minutes: 1
    timing: assumed
    shows: nothing
    leaves_open: everything
    source: man true
"""


def test_every_suite_has_a_test():
    assert {t.suite for t in TESTS.values()} == set(SUITES)


@pytest.mark.parametrize("name", list(TESTS))
def test_every_reader_exists(name):
    assert TESTS[name].reader in KINDS


@pytest.mark.parametrize("name", list(TESTS))
def test_no_command_needs_a_shell(name):
    argv = TESTS[name].argv
    words = [w for word in argv for w in ((word,) if isinstance(word, str) else word)]
    assert words[0] not in ("sh", "bash")
    assert not [w for w in words if any(c in w for c in ";|&><`$\n")]


def test_the_four_levels_of_dcgm_are_there():
    levels = {t.dcgm_level: t.argv for t in TESTS.values() if t.dcgm_level}
    assert levels == {n: ("dcgmi", "diag", "-r", str(n), "-j") for n in (1, 2, 3, 4)}


def test_every_control_switches_off_something_that_its_test_leaves_on():
    controls = [t for t in TESTS.values() if t.control]
    assert {"NCCL_NVLS_ENABLE", "NCCL_P2P_DISABLE", "NCCL_IB_DISABLE"} <= {n for t in controls for n in t.environment}
    for test in controls:
        assert set(test.environment) - set(TESTS[test.control.of].environment)
        assert not test.proves


def test_every_declarable_operation_has_a_program():
    operations = Conditions.model_fields["operation"].annotation.__args__[0].__args__
    assert set(operations) == set(BINARIES)


def test_a_test_that_names_a_store_asks_for_it():
    stored = {t.name for t in TESTS.values() if "store" in t.placeholders and t.suite != "gpudirect"}
    assert stored == {t.name for t in TESTS.values() if t.writes_to == "store"}


def test_run_time_values_are_known_only_where_the_script_sets_them():
    used = {p for t in TESTS.values() for p in t.placeholders} & set(RUN_TIME)
    assert used == set(RUN_TIME)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("argv: [true]", "argv: ['{nonsense}']", "unknown placeholder {nonsense}"),
        ("suite: inventory", "suite: other", "unknown suite 'other'"),
        ("stage: 1", "stage: 0", "greater than or equal to 1"),
        ("stage: 1", "stage: 1\n    proves: [speed]", "'speed' is no metric"),
        ("stage: 1", "stage: 1\n    follows: two", "there is no test 'two'"),
        ("stage: 1", "stage: 1\n    colour: red", "Extra inputs"),
        ("    source: man true\n", "", "required"),
        ("tests:", "checks:", "unknown section 'checks'"),
    ],
)
def test_a_wrong_entry_is_named_with_its_place(old, new, said):
    with pytest.raises(InvalidInput) as caught:
        parse_tests(ONE.replace(old, new), "mine.yaml")
    assert said in str(caught.value)
    assert "mine.yaml" in str(caught.value)
