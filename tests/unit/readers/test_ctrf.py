import json
from pathlib import Path

from builders.corpus import read_file, values
from clusterwright.model.observations import NoValue, Outcome, Weight
from clusterwright.readers.reading import read_output

FIXTURES = Path(__file__).parents[2] / "fixtures" / "readers" / "ctrf"


def report(rows, **summary):
    return json.dumps({"results": {"tool": {"name": "t"}, "summary": summary, "tests": rows}})


def read(text):
    return read_output([text.encode()], kind="ctrf")


def codes(run):
    return [notice.code for notice in run.notices]


def test_outcomes_durations_and_messages_are_read():
    transcript = read_file(FIXTURES / "report.json")
    assert transcript.kind == "ctrf"
    (run,) = transcript.runs
    assert (run.tool, run.version) == ("node-acceptance", "2.1")
    assert values(run, "test") == ["pass", "fail", "skip", "pass"]
    assert values(run, "test_duration", test="dcgm level 2")[0].to("s") == 61
    assert values(run, "test_message", test="all-reduce") == ["busbw 210 GB/s below 350"]
    assert run.condition("started") == "2025-06-01T10:00:00+00:00"
    assert {"failed", "skipped", "flaky"} <= set(codes(run))


def test_a_skipped_test_is_no_passed_one():
    (run,) = read_file(FIXTURES / "report.json").runs
    assert run.condition("tests_passed") == 2.0
    assert run.condition("tests_skipped") == 1.0


def test_no_tests_and_only_skipped_ones_are_errors():
    (run,) = read(report([], tests=0, passed=0)).runs
    assert [n.weight for n in run.notices if n.code == "no-tests"] == [Weight.ERROR]
    (run,) = read(report([{"name": "a", "status": "skipped", "duration": 0}])).runs
    assert [n.weight for n in run.notices if n.code == "all-skipped"] == [Weight.ERROR]


def test_totals_that_contradict_the_rows_lose():
    (run,) = read(report([{"name": "a", "status": "failed"}], tests=3, passed=3, failed=0)).runs
    assert codes(run).count("totals-contradict") == 3
    assert run.condition("tests_passed") == 0.0
    assert not run.complete


def test_an_unknown_status_is_rejected_and_never_passes():
    (run,) = read(
        report([{"name": "a", "status": "success"}, {"status": "passed"}, 3, {"name": "b", "status": "passed"}])
    ).runs
    assert run.rejected == 3
    assert values(run, "test") == ["pass"]


def test_durations_that_are_none_are_no_zero():
    (run,) = read(
        report(
            [{"name": "a", "status": "passed", "duration": "N/A"}, {"name": "b", "status": "passed", "duration": -1}]
        )
    ).runs
    assert all(isinstance(value, NoValue) for value in values(run, "test_duration"))


def test_a_time_that_is_no_time_is_unreadable():
    (run,) = read(report([], start=1e30, stop=0)).runs
    assert isinstance(run.condition("started"), NoValue)
    assert run.condition("ended") is None


def test_one_test_with_two_outcomes_is_said():
    (run,) = read(report([{"name": "a", "status": "passed"}, {"name": "a", "status": "failed"}])).runs
    assert "outcomes-differ" in codes(run)


def test_a_report_without_results_is_refused():
    for text in ('{"results": []}', "[]", '{"results": {"tests": ['):
        assert read(text).outcome is Outcome.REFUSED
