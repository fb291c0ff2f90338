"""Report what one rank sees: node, devices, the other ranks, the stores. One line of JSON on standard output.

    python -P -m clusterwright.probes.reporter [--stores JSON] [--until FILE] [--wait S]

JSON maps the name of a store to its path on each node, or on every node under the name `*`: {"nvme": {"n1": "/x"}}.
With `--until` the rank holds its devices until that file exists, so that two jobs cannot be given one device after the
other and look as if they had one each.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any, Final

from clusterwright.probes.meeting import Meeting, MeetingFailed, Seat

#: A file of this name in a store says which store it is.
LABEL: Final = "STORE"
#: The key of a path that holds on every node.
EVERYWHERE: Final = "*"
#: Seconds between two looks for the file that releases the rank.
LOOK_S: Final = 0.05


def look_around(environment: dict[str, str]) -> dict[str, Any]:
    """What this rank alone can say about itself."""
    devices = environment.get("CUDA_VISIBLE_DEVICES", "")
    return {
        "job": environment.get("CLUSTERWRIGHT_JOB_NAME", ""),
        "node": environment.get("CLUSTERWRIGHT_NODE", ""),
        "devices": [d for d in devices.split(",") if d],
        "virtual": environment.get("CLUSTERWRIGHT_VIRTUAL") == "1",
        "rank": int(environment.get("RANK", -1)),
        "local_rank": int(environment.get("LOCAL_RANK", -1)),
        "world_size": int(environment.get("WORLD_SIZE", -1)),
        "attempt": environment.get("CLUSTERWRIGHT_ATTEMPT", ""),
        "pid": os.getpid(),
        "image": None,
        "image_note": "not applicable: this engine starts processes, not images",
    }


def look_at_store(path: Path, name: str, mark: str) -> dict[str, Any]:
    """Whether a store is there, is the one it should be, and takes a file that can be read back."""
    seen: dict[str, Any] = {"path": str(path), "visible": path.is_dir(), "label": "", "writable": False}
    try:
        seen["label"] = (path / LABEL).read_text(encoding="utf-8").strip()
    except OSError as error:
        seen["why"] = str(error.strerror)
    try:
        file = path / f"seen-by-{mark}"
        file.write_text(name, encoding="utf-8")
        seen["writable"] = file.read_text(encoding="utf-8") == name
    except OSError as error:
        seen["why"] = str(error.strerror)
    return seen


def look_for_marks(path: Path, marks: list[str]) -> list[str]:
    """Of the marks that ranks left in a store, those that are not visible here."""
    return [m for m in marks if not (path / f"seen-by-{m}").is_file()]


def report(stores: dict[str, dict[str, str]], wait_s: float) -> dict[str, Any]:
    """Everything this rank sees, with what the other ranks said when they met."""
    environment = dict(os.environ)
    seen = look_around(environment)
    mark = f"{environment.get('CLUSTERWRIGHT_JOB', '')}-{seen['rank']}"
    paths = {n: Path(p.get(seen["node"], p.get(EVERYWHERE, ""))) for n, p in stores.items()}
    seen["stores"] = {name: look_at_store(path, name, mark) for name, path in paths.items()}
    try:
        with Meeting(Seat.of_environment(environment), wait_s) as meeting:
            said = meeting.exchange({k: seen[k] for k in ("rank", "node", "devices", "pid")} | {"mark": mark})
    except MeetingFailed as error:
        return seen | {"members": [], "meeting": str(error)}
    for name in (n for n, p in stores.items() if EVERYWHERE in p):
        seen["stores"][name]["missing"] = look_for_marks(paths[name], [s["mark"] for s in said])
    return seen | {"members": said, "meeting": ""}


def main(argv: list[str]) -> int:
    """Entry point; exit code 1 when the ranks did not meet or were not released in time."""
    parser = argparse.ArgumentParser(prog="clusterwright.probes.reporter", description=__doc__)
    parser.add_argument("--stores", type=json.loads, default={}, metavar="JSON")
    parser.add_argument("--until", type=Path, metavar="FILE")
    parser.add_argument("--wait", type=float, default=60.0, metavar="S")
    arguments = parser.parse_args(argv)
    seen = report(arguments.stores, arguments.wait)
    sys.stdout.write(json.dumps(seen) + "\n")
    sys.stdout.flush()
    if seen["meeting"]:
        return 1
    return 0 if arguments.until is None or wait_for(arguments.until, arguments.wait) else 1


def wait_for(path: Path, wait_s: float) -> bool:
    """Whether a file appears in time."""
    deadline = time.monotonic() + wait_s
    while not path.exists():
        if time.monotonic() > deadline:
            return False
        time.sleep(LOOK_S)
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
