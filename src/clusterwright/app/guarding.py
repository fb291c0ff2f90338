"""The last line of defence: what escapes a command becomes a message and an exit code.

The only broad `except` that ends an error; the traceback of a bug is kept, on standard error. (One thread of the engine
catches broadly, too, to raise the error again where it is awaited.)
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from typing import Final

from clusterwright.app.extras import missing_extra
from clusterwright.lib.errors import ClusterwrightError, Interrupted

#: EX_SOFTWARE of BSD sysexits.h: a bug of ours, never to be taken for "a requirement fails" (1).
BUG: Final = 70
INTERRUPTED: Final = 130
INVALID: Final = 2


def guard(command: Callable[[], object], show: Callable[[ClusterwrightError], None]) -> int:
    """Run a command and return its exit code; `show` prints the errors that a user can act on."""
    try:
        result = command()
    except KeyboardInterrupt:
        show(Interrupted("interrupted"))
        return INTERRUPTED
    except Interrupted as error:
        show(error)
        return INTERRUPTED
    except ClusterwrightError as error:
        show(error)
        return INVALID
    except ModuleNotFoundError as error:
        extra = missing_extra(error.name or "")
        if extra is None:
            return _report_bug()
        show(extra)
        return INVALID
    except BrokenPipeError:
        # The reader of our output went away (`cw plan FILE | head`): leave quietly, as other tools do.
        sys.stdout = None  # nothing may be flushed into the closed pipe at exit
        return 141
    except Exception:  # noqa: BLE001  # the one place; see the module's docstring
        return _report_bug()
    return result if isinstance(result, int) else 0


def _report_bug() -> int:
    traceback.print_exc()
    print(  # noqa: T201  # there is no console to trust at this point
        "clusterwright: this is a bug in clusterwright, not in your input; nothing was judged", file=sys.stderr
    )
    return BUG
