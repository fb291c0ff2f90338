"""How fast the planner answers: `cw fit` with its start-up, then the placement search and the array forms.

    python bench/planner_speed.py              a minute
    python bench/planner_speed.py --repeat 5   searches: the best of five

Times are CPU seconds. `cw fit` is a fresh process each, user + system, median of seven after one warm-up, which leaves
its bytecode behind as an installation does; exits 1 when an answer takes over 0.5 s. The searches are those of
`search.py`: at most 2 s each, a million evaluations a second.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Final

from search import arrays, searches
from startup import measure

CW: Final = str(Path(sys.executable).parent / "cw")
FIT_S: Final = 0.5
#: Questions that people ask: a small model, a large one on several GPUs, and one with a price and a node to lose.
QUESTIONS: Final = (
    ("meta-llama/Llama-3.1-8B-Instruct", "h100"),
    ("deepseek-ai/DeepSeek-V3", "8xh200,8xb200", "--rate", "20", "--in", "2000", "--out", "300", "--tpot", "50ms"),
    ("meta-llama/Llama-3.3-70B-Instruct", "h100,h200", "--rate", "10", "--survive", "1", "--price", "$2.40"),
)


def fits() -> bool:
    """One line per question; whether all are answered in time."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    print(f"{'cw fit':72} {'CPU s':>6}  at most {FIT_S} s")
    kept = True
    for question in QUESTIONS:
        seconds = measure([CW, "fit", *question], allowed=(0, 1))
        kept &= seconds <= FIT_S
        print(f"{' '.join(question):72} {seconds:6.2f}  {'holds' if seconds <= FIT_S else 'MISSED'}", flush=True)
    return kept


def main() -> int:
    """Print every table, say whether all floors hold."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeat", type=int, default=3, help="searches of which the fastest counts")
    repeat = parser.parse_args().repeat
    kept = fits()
    print()
    searches(repeat)
    print()
    arrays(repeat)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
