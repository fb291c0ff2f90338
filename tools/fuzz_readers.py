"""Fuzz every reader under coverage guidance (atheris): nothing but a transcript may come out, in bounded time.

usage: python tools/fuzz_readers.py [--seconds N] [--jobs N] [KIND…]
Seeds are the fixtures of the tests. What fails is kept in .fuzz/KIND/ and printed; exit code 1 then.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT / ".fuzz"
FIXTURES = ROOT / "tests" / "fixtures" / "readers"
#: Longest input and longest time for one; a linear reader needs milliseconds for this much.
LONGEST, SLOWEST_S = 16384, 5


def fuzz_one(kind: str) -> None:
    """Fuzz one reader in this process, with the arguments of libFuzzer that follow on the command line."""
    import atheris  # type: ignore[import-not-found]

    with atheris.instrument_imports(include=["clusterwright"]):
        from clusterwright.readers.reading import read_output
        from clusterwright.report.transcripts import render_transcript, transcript_values

    def one(data: bytes) -> None:
        transcript = read_output([data], kind=kind)
        transcript_values(transcript)
        render_transcript("file", transcript)

    atheris.Setup(sys.argv[:1] + sys.argv[3:], one)
    atheris.Fuzz()


def run_one(kind: str, seconds: int) -> tuple[str, int, str]:
    """(kind, exit code, last lines) of fuzzing one reader in a process of its own."""
    home = WORK / kind
    corpus = home / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    seeds = [str(p) for p in FIXTURES.glob("*") if p.is_dir()]
    command = [
        sys.executable, __file__, "--one", kind, str(corpus), *seeds, f"-max_total_time={seconds}",
        f"-max_len={LONGEST}", f"-timeout={SLOWEST_S}", f"-artifact_prefix={home}/", "-rss_limit_mb=2048",
        "-close_fd_mask=1",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    return kind, done.returncode, "\n".join(done.stderr.splitlines()[-25:])


def main() -> None:
    """Fuzz the named readers, or all, and print one line for each."""
    if sys.argv[1:2] == ["--one"]:
        fuzz_one(sys.argv[2])
        return
    from clusterwright.readers.reading import KINDS

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", choices=[[], *KINDS])
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    failed = 0
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for kind, code, said in pool.map(lambda k: run_one(k, arguments.seconds), arguments.kinds or KINDS):
            runs = next((line for line in reversed(said.splitlines()) if line.startswith("Done")), "")
            print(f"{kind:<28} {'ok' if code == 0 else 'FAILED'}  {runs}", flush=True)
            if code:
                failed += 1
                print(said, flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
