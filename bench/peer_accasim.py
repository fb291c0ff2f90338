"""Run one workload through AccaSim, in AccaSim's own environment; starts of jobs and CPU seconds as JSON.

python bench/peer_accasim.py WORKLOAD.swf NODES GPUS POLICY       POLICY is fifo or easy

AccaSim 1.1.3 names what newer Pythons moved: `collections.Mapping` is given back to it before it is loaded.
"""

from __future__ import annotations

import collections
import collections.abc
import json
import logging
import sys
import tempfile
import time
from pathlib import Path

collections.Mapping = collections.abc.Mapping

from accasim.base.allocator_class import BestFit  # noqa: E402  # needs the line above
from accasim.base.event_class import EventManager  # noqa: E402
from accasim.base.scheduler_class import EASYBackfilling, FirstInFirstOut  # noqa: E402
from accasim.base.simulator_class import Simulator  # noqa: E402
from accasim.utils.reader_class import Tweaker  # noqa: E402

POLICIES = {"fifo": FirstInFirstOut, "easy": EASYBackfilling}


class WholeTasks(Tweaker):
    """A job of p processors is equal tasks of at most one node; AccaSim's own reading spreads single processors."""

    def __init__(self, node_gpus: int) -> None:
        super().__init__()
        self.node_gpus = node_gpus

    def tweak_function(self, job: dict[str, object]) -> dict[str, object]:
        gpus = int(job["total_processors"])
        tasks = -(-gpus // self.node_gpus)
        job["core"], job["requested_nodes"], job["requested_resources"] = gpus, tasks, {"core": gpus // tasks}
        job["queue"] = job.pop("queue_number")
        job.pop("mem", None)
        return job


def main(workload: str, nodes: str, gpus: str, policy: str) -> None:
    starts: dict[str, int] = {}
    finish = EventManager.finish_event

    def listen(manager: EventManager, event: object) -> None:
        finish(manager, event)
        starts[event.id] = event.start_time

    EventManager.finish_event = listen
    with tempfile.TemporaryDirectory() as folder:
        system = Path(folder) / "system.json"
        system.write_text(json.dumps({"groups": {"g": {"core": int(gpus)}}, "resources": {"g": int(nodes)}}))
        simulator = Simulator(
            workload,
            str(system),
            POLICIES[policy](BestFit()),
            tweak_function=WholeTasks(int(gpus)),
            scheduling_output=False,
            statistics_output=False,
            show_statistics=False,
            RESULTS_FOLDER_PATH=folder,
            LOG_LEVEL="WARNING",
        )
        logging.getLogger("accasim").setLevel(logging.WARNING)
        begin = time.process_time()
        simulator.start_simulation()
        cpu_s = time.process_time() - begin
    print(json.dumps({"cpu_s": cpu_s, "starts": starts}))


if __name__ == "__main__":
    main(*sys.argv[1:])
