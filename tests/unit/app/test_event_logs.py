"""The log of events of a simulation: whole, or marked as stopped, and never over an older one before it is."""

from pathlib import Path

from builders.simulations import kind, scenario
from clusterwright.app.replicating import Task, run_task
from clusterwright.simulate.jobs import SimJob

JOBS = scenario([SimJob(second, 5, kind(1)) for second in range(2000)])


def test_a_log_ends_with_the_last_event(tmp_path: Path):
    log = tmp_path / "log"
    run_task(Task(JOBS, 0, events=log), None)
    assert log.read_text(encoding="utf-8").splitlines()[-1].startswith("2004.000\tended\tjob 1999")
    assert list(tmp_path.iterdir()) == [log]


def test_the_log_of_a_stopped_simulation_says_so_in_its_last_line(tmp_path: Path):
    log = tmp_path / "log"
    log.write_text("older", encoding="utf-8")
    seen = []

    def stop(progress):
        seen.append(log.read_text(encoding="utf-8"))
        return True

    found = run_task(Task(JOBS, 0, events=log), stop)
    assert found.replication.partial
    assert seen == ["older"]
    assert log.read_text(encoding="utf-8").splitlines()[-1].endswith("\tstopped before the end")
    assert list(tmp_path.iterdir()) == [log]
