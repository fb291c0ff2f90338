"""How fast the planner answers: `cw fit` with its start-up, then the placement search and the array forms.

    python bench/planner_speed.py              a minute
    python bench/planner_speed.py --repeat 5   searches: the best of five

Times are CPU seconds, user + system. `cw` is a fresh process each time, after one warm-up that leaves its bytecode
behind as an installation does. The best of ten counts, since another load on the machine only ever adds; the median
stands beside it. Exits 1 when a command takes longer than its floor. The searches are those of `search.py`: at most
2 s each, a million evaluations a second.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from pathlib import Path
from typing import Final

from search import arrays, searches
from startup import cpu_seconds

CW: Final = str(Path(sys.executable).parent / "cw")
FIT_S: Final = 0.5
HELP_S: Final = 0.15
RUNS: Final = 10
#: Questions that people ask: a small model as it comes; a large one with targets and a node to lose, on two kinds of
#: GPU; a very large one with a load, on one kind of GPU and on two; a price of one's own. Then help, which imports no
#: command.
COMMANDS: Final = (
    ("fit llama-3.1-8b h100", FIT_S),
    ("fit meta-llama/Llama-3.3-70B-Instruct h100,h200 --rate 50 --ttft 1s --tpot 50ms --survive 1", FIT_S),
    ("fit deepseek-v3 h200 --rate 20", FIT_S),
    ("fit deepseek-v3 8xh200,8xb200 --rate 20 --in 2000 --out 300 --tpot 50ms", FIT_S),
    ("fit meta-llama/Llama-3.3-70B-Instruct h100,h200 --rate 10 --survive 1 --price $2.40", FIT_S),
    ("--help", HELP_S),
)


def commands() -> bool:
    """One line per command; whether all are answered in time."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    print(f"{'cw':92} {'best':>5} {'median':>6}  CPU s, at most")
    kept = True
    for words, most in COMMANDS:
        argv = [CW, *words.split()]
        cpu_seconds(argv, (0, 1))
        times = [cpu_seconds(argv, (0, 1)) for _ in range(RUNS)]
        kept &= min(times) <= most
        said = "holds" if min(times) <= most else "MISSED"
        print(f"{words:92} {min(times):5.2f} {statistics.median(times):6.2f}  {most} {said}", flush=True)
    return kept


def main() -> int:
    """Print every table, say whether all floors hold."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeat", type=int, default=3, help="searches of which the fastest counts")
    repeat = parser.parse_args().repeat
    kept = commands()
    print()
    searches(repeat)
    print()
    arrays(repeat)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
