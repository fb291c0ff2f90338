"""CPU time to answer `--help` and to review a file, beside named peers on the same machine in the same run.

Peers are installed from the package index into `.peers/` (dstack, skypilot), each in an environment of its own. Times
are user + system seconds of the whole process tree, median of RUNS runs after one warm-up; CPU time, not wall time,
so that another load on the machine disturbs it less.

    make bench                      everything
    python bench/startup.py --no-peers
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PEERS = {"dstack": ("dstack", "dstack"), "sky": ("skypilot", "sky")}
RUNS = 7


def cpu_seconds(argv: list[str], allowed: tuple[int, ...]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=ROOT, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in allowed:
        raise SystemExit(f"{argv} ended with {done.returncode}: {done.stderr.decode(errors='replace')[-500:]}")
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def measure(argv: list[str], allowed: tuple[int, ...] = (0,)) -> float:
    cpu_seconds(argv, allowed)
    return statistics.median(cpu_seconds(argv, allowed) for _ in range(RUNS))


def peer(name: str) -> list[str] | None:
    package, program = PEERS[name]
    home = ROOT / ".peers" / name
    if not (home / "bin" / program).exists():
        print(f"installing {package} …", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", home], check=True)
        done = subprocess.run([home / "bin" / "pip", "install", "--quiet", package], check=False)
        if done.returncode or not (home / "bin" / program).exists():
            print(f"{package} could not be installed: not measured", file=sys.stderr)
            return None
    return [str(home / "bin" / program), "--help"]


def main() -> None:
    cw = str(Path(sys.executable).parent / "cw")
    rows = [
        ("cw --help", measure([cw, "--help"]), 0.4),
        (
            "cw review examples/two-workers",
            measure([cw, "review", "examples/two-workers/cluster.yaml"], (0, 1, 3)),
            1.0,
        ),
    ]
    if "--no-peers" not in sys.argv:
        for name in PEERS:
            argv = peer(name)
            if argv is not None:
                rows.append((f"{name} --help", measure(argv), None))
    base = rows[0][1]
    print(f"{'command':<36} {'CPU s':>7} {'× cw --help':>12}  target")
    for label, seconds, target in rows:
        goal = "" if target is None else f"{target:g} s: {'held' if seconds <= target else 'MISSED'}"
        print(f"{label:<36} {seconds:>7.2f} {seconds / base:>12.1f}  {goal}")
    if "--json" in sys.argv:
        print(json.dumps([{"command": label, "cpu_s": seconds} for label, seconds, _ in rows]))
    if any(target is not None and seconds > target for _, seconds, target in rows):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
