"""Replications of a simulation, each from its own seed, in as many processes as asked for: the results are the same.

A signal asks for a stop: every process ends its simulation where it is and hands over what it has, marked partial.
Processes that were started here are gone when `replicate` returns or raises.
"""

from __future__ import annotations

import multiprocessing
import signal
import traceback
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from types import FrameType
from typing import Any, Final, Self, TextIO

import numpy as np
from numpy.typing import NDArray

from clusterwright.app.collecting import rare_collections
from clusterwright.app.picturing import Painter
from clusterwright.app.simulated_figures import sum_up
from clusterwright.files.outputs import replacing
from clusterwright.ledger.lines import to_ms
from clusterwright.lib.errors import Unavailable
from clusterwright.report.replications import Picture, Replication
from clusterwright.simulate.happenings import Event, Happening, render_event
from clusterwright.simulate.loop import Progress, Simulation
from clusterwright.simulate.scenarios import Scenario

_NUMBERS: Final = (signal.SIGINT, signal.SIGTERM)
#: Seconds between two looks at signals while processes work, and until one that was asked to stop is killed.
_LOOK_S: Final = 0.2
_PATIENCE_S: Final = 30.0


@dataclass(frozen=True, eq=False)
class Task:
    """One replication.

    Args:
        real_wait_ms: as `sum_up`.
        domains: of every node, to paint a picture; None paints none.
        end_s: when the simulation is expected to end, for the picture.
        events: file for the log of events; its last line says so where the simulation was stopped before its end.
    """

    scenario: Scenario
    seed: int
    real_wait_ms: NDArray[np.int64] | None = None
    domains: tuple[str, ...] | None = None
    end_s: float = 0.0
    events: Path | None = None


@dataclass(frozen=True)
class Result:
    """A replication, and its picture where one was asked for."""

    replication: Replication
    picture: Picture | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """How far everything is.

    Args:
        done: replications that ended, of `all_`.
        now_s: simulated time of those that run, on average.
    """

    done: int
    all_: int
    now_s: float


#: Told how far it is, a few times a second at most.
Show = Callable[[Standing], None]


class Request:
    """SIGINT or SIGTERM as a flag, so that what was simulated so far is kept; `name` is the signal, "" for none."""

    def __init__(self) -> None:
        self.name = ""
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._note) for number in _NUMBERS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, _: FrameType | None) -> None:
        self.name = signal.Signals(number).name


def replicate(
    tasks: Iterable[Task], count: int, processes: int, request: Request, show: Show | None = None
) -> list[Result]:
    """Run every task; fewer results, or partial ones, come back when a stop was requested.

    Args:
        tasks: made one by one, as they are needed.
        count: how many there are.
        processes: at the same time; 1 uses this process.

    Returns:
        Results in the order of the tasks.
    """
    if processes == 1 or count == 1:
        return _run_here(tasks, count, request, show)
    with _Crew(min(processes, count)) as crew:
        return crew.run(tasks, count, request, show)


def run_task(task: Task, watch: Callable[[Progress], bool] | None) -> Result:
    """Simulate one replication; its log of events takes its place when all of it is written."""
    if task.events is None:
        return _simulate(task, watch, None)
    with replacing(task.events) as log:
        return _simulate(task, watch, log)


def _simulate(task: Task, watch: Callable[[Progress], bool] | None, log: TextIO | None) -> Result:
    failures = Counter[str]()
    scenario = _fresh(task.scenario)
    counted_ms = to_ms(scenario.counted_from_s)
    painter = None if task.domains is None else Painter(scenario, task.domains, task.end_s)

    def observe(event: Event) -> None:
        if event.what is Happening.FAILED and event.at_ms >= counted_ms:
            failures[event.detail.rpartition(" (")[0]] += 1
        if painter is not None:
            painter.watch(event, simulation.state)
        if log is not None:
            log.write(render_event(event) + "\n")

    simulation = Simulation(scenario, task.seed, observe=observe)
    with rare_collections():
        outcome = simulation.run(watch)
    if log is not None and outcome.partial:
        log.write(render_event(Event(to_ms(outcome.ended_s), Happening.STOPPED)) + "\n")
    picture = None if painter is None else painter.finish(outcome.ended_s)
    return Result(sum_up(outcome, failures, task.real_wait_ms), picture)


def _fresh(scenario: Scenario) -> Scenario:
    """The scenario with new demands: what they remember of their hash is worth nothing in another process."""
    jobs = scenario.jobs
    kinds = tuple(replace(kind, demand=replace(kind.demand)) for kind in jobs.kinds)
    return replace(scenario, jobs=replace(jobs, kinds=kinds))


def _run_here(tasks: Iterable[Task], count: int, request: Request, show: Show | None) -> list[Result]:
    results: list[Result] = []

    def watch(progress: Progress) -> bool:
        if show is not None:
            show(Standing(len(results), count, progress.now_s))
        return bool(request.name)

    for task in tasks:
        if request.name:
            break
        results.append(run_task(task, watch))
    return results


class _Crew:
    """Processes that simulate, each with a pipe to this one."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._processes: dict[Connection, SpawnProcess] = {}
        self._now_s: dict[Connection, float] = {}

    def __enter__(self) -> Self:
        context = multiprocessing.get_context("spawn")
        # A Ctrl-C goes to the whole group; the processes learn of it from here, so that each ends in order.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _NUMBERS)
        try:
            for _ in range(self._size):
                ours, theirs = context.Pipe()
                process = context.Process(target=_work, args=(theirs,), daemon=True)
                process.start()
                theirs.close()
                self._processes[ours] = process
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return self

    def __exit__(self, *_: object) -> None:
        for pipe, process in self._processes.items():
            pipe.close()  # a process that waits for a task ends by itself
            process.join(0.0 if pipe in self._now_s else _PATIENCE_S)
            if process.is_alive():
                process.kill()
                process.join()
            process.close()

    def run(self, tasks: Iterable[Task], count: int, request: Request, show: Show | None) -> list[Result]:
        """Hand out tasks, collect results; see `replicate`."""
        left = iter(tasks)
        number_of: dict[Connection, int] = {}
        results: dict[int, Result] = {}
        given = 0
        idle = list(self._processes)
        stopped_looks = 0
        while True:
            while idle and not request.name and (task := next(left, None)) is not None:
                pipe = idle.pop(0)
                pipe.send(task)
                number_of[pipe], self._now_s[pipe] = given, 0.0
                given += 1
            if not number_of:
                return [results[number] for number in sorted(results)]
            ready = set(wait(list(number_of), _LOOK_S))
            for pipe in [p for p in number_of if p in ready]:
                said = self._hear(pipe)
                if isinstance(said, Result):
                    results[number_of.pop(pipe)] = said
                    self._now_s.pop(pipe)
                    idle.append(pipe)
                else:
                    self._now_s[pipe] = said
            if request.name:
                stopped_looks += 1
                if stopped_looks == 1:
                    for pipe in number_of:
                        pipe.send(None)
                if stopped_looks * _LOOK_S > _PATIENCE_S:
                    return [results[number] for number in sorted(results)]
            elif show is not None:
                running = list(self._now_s.values())
                show(Standing(len(results), count, sum(running) / len(running) if running else 0.0))

    def _hear(self, pipe: Connection) -> Result | float:
        try:
            said = pipe.recv()
        except EOFError:
            process = self._processes[pipe]
            process.join()
            raise Unavailable(
                f"a process of the simulation ended with code {process.exitcode}; if memory ran out: --jobs 1"
            ) from None
        if isinstance(said, str):
            raise RuntimeError(said)
        assert isinstance(said, Result | float)
        return said


def _work(pipe: Connection) -> None:
    """What a process does: simulate what comes through the pipe, until it is closed."""
    for number in _NUMBERS:
        signal.signal(number, signal.SIG_IGN)

    def watch(progress: Progress) -> bool:
        pipe.send(progress.now_s)
        return pipe.poll() and pipe.recv() is None

    try:
        while (task := pipe.recv()) is not None:
            pipe.send(run_task(task, watch))
    except (EOFError, BrokenPipeError):
        return
    except Exception:  # noqa: BLE001  # handed over as text, to be raised where it is awaited
        pipe.send(traceback.format_exc())
