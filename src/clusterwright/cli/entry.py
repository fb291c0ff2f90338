"""Entry point of `cw` and `clusterwright`: Ctrl-C is answered before anything else is imported.

Imports take most of the time of a short command, and a KeyboardInterrupt in the middle of one ends in a traceback or,
swallowed by a library, in nonsense. So SIGINT ends the process at once, with the code that a shell gives for it. The
commands that must clean up first (`up`, `prove`) set handlers of their own while there is something to clean up.
"""

# What `signal` wraps: that module, with its enums, takes as long to import as Python to start.
import _signal as signal  # type: ignore[import-not-found]
import gc
import os
import sys

#: 128 + SIGINT; the same code as `guarding.INTERRUPTED`, whose import would come too late.
INTERRUPTED = 130


def _leave(*_: object) -> None:
    os.write(2, b"error: interrupted\n")
    os._exit(INTERRUPTED)


# Not where whoever started us has it ignored: a shell does so for what it puts into the background.
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, _leave)


def main() -> None:
    """Run the command line and exit with its code."""
    gc.disable()  # importing makes no garbage; loading a command enables it again
    from clusterwright.cli.main import run

    code = run()
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except (OSError, ValueError):
        sys.exit(code)  # the interpreter says what could not be written
    os._exit(code)  # a signal while the interpreter takes itself down would hide the code


if __name__ == "__main__":
    main()
