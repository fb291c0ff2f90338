from pathlib import Path

from builders.corpus import read_file, values
from clusterwright.model.observations import NoValue, Outcome
from clusterwright.readers.reading import read_output

FIXTURES = Path(__file__).parents[2] / "fixtures" / "readers" / "junit"


def read(text):
    return read_output([text.encode()], kind="junit")


def codes(run):
    return [notice.code for notice in run.notices]


def test_failures_errors_and_skips_are_told_apart():
    transcript = read_file(FIXTURES / "report.xml")
    assert transcript.kind == "junit"
    (run,) = transcript.runs
    assert values(run, "test") == ["pass", "fail", "skip", "pass", "error"]
    assert values(run, "test_message", test="fabric.nccl.all_gather") == ["busbw 120 GB/s below 300"]
    assert run.condition("tests_failed") == 2.0
    assert values(run, "suite_node", suite="fabric") == ["gpu-01"]
    assert "totals-contradict" not in codes(run)


def test_thousands_separators_in_times_are_read():
    (run,) = read_file(FIXTURES / "report.xml").runs
    assert values(run, "test_duration", test="fabric.nccl.all_gather")[0].to("s") == 1012.5


def test_a_suite_without_tests_is_no_pass():
    (run,) = read('<testsuite name="s" tests="0"/>').runs
    assert "no-tests" in codes(run)
    (run,) = read('<testsuites><testsuite><testcase name="a"><skipped/></testcase></testsuite></testsuites>').runs
    assert "all-skipped" in codes(run)


def test_tests_that_did_not_run_are_no_pass():
    text = (
        '<testsuite name="s"><testcase name="a" status="notrun"/><testcase name="b" status="run" result="suppressed"/>'
        '<testcase name="c" status="failed"/><testcase name="d" status="weird"/><testcase name="e"/></testsuite>'
    )
    (run,) = read(text).runs
    assert values(run, "test") == ["not run", "not run", "fail", "other", "pass"]


def test_stated_totals_that_contradict_the_rows_are_said():
    text = '<testsuite name="s" tests="4" failures="0"><testcase name="a"><failure/></testcase></testsuite>'
    (run,) = read(text).runs
    assert codes(run).count("totals-contradict") == 2
    assert not run.complete


def test_nested_suites_are_all_read_and_counted_once():
    text = (
        '<testsuites><testsuite name="o" tests="2"><testcase name="a"/><testsuite '
        'name="i" tests="1"><testcase name="b"/>'
        "</testsuite></testsuite></testsuites>"
    )
    (run,) = read(text).runs
    assert [dict(o.subject)["suite"] for o in run.observations if o.name == "test"] == ["o", "i"]
    assert "totals-contradict" not in codes(run)


def test_a_rerun_that_passed_is_flaky():
    (run,) = read('<testsuite><testcase name="a"><flakyFailure message="x"/></testcase></testsuite>').runs
    assert values(run, "test") == ["pass"]
    assert "flaky" in codes(run)


def test_times_that_are_none_are_no_zero():
    (run,) = read('<testsuite><testcase name="a" time="NaN"/><testcase name="b" time=""/></testsuite>').runs
    assert all(isinstance(value, NoValue) for value in values(run, "test_duration"))


def test_other_xml_and_torn_xml_are_refused():
    assert "neither testsuites" in str(read("<html/>").refusal)
    torn = read_output([(FIXTURES / "report.xml").read_bytes()[:600]])
    assert torn.outcome is Outcome.REFUSED
    entity = '<!DOCTYPE a [<!ENTITY x "y">]><testsuite name="&x;"/>'
    assert read(entity).outcome is Outcome.REFUSED
