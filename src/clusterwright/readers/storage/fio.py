"""fio in every form it prints: JSON, normal, terse."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from clusterwright.model.observations import Run
from clusterwright.readers.cleaning import Source
from clusterwright.readers.readers import Head, Reader
from clusterwright.readers.storage import fio_json, fio_terse, fio_text
from clusterwright.readers.storage.spreads import compare_runs

_JSON: Final = re.compile(r'"fio version"\s*:')
_VERSION: Final = re.compile(r"^[ \t]*fio-\d{1,3}\.\d{1,4}\S{0,60}[ \t]*$", re.MULTILINE)
_TERSE: Final = re.compile(r"^\d;fio-\d{1,3}\.\d{1,4}[^;\n]*;", re.MULTILINE)


def recognise(head: Head) -> int:
    """Sure by the version key, line or field of fio."""
    if _JSON.search(head.text) or _TERSE.search(head.text):
        return 100
    if fio_text.RESULT.search(head.text):
        return 98
    return 95 if _VERSION.search(head.text) and ("rw=" in head.text or "Starting " in head.text) else 0


def read(source: Source) -> Sequence[Run]:
    """The runs of the file, compared where a job was run several times."""
    if _JSON.search(source.head):
        runs = fio_json.read_documents(source.text(prefixes=True))
    elif _TERSE.search(source.head):
        runs = fio_terse.read_rows(source.lines())
    else:
        runs = fio_text.read_lines(source.lines())
    return compare_runs(runs, "read_iops", "write_iops")


FIO: Final = Reader("fio", "fio: JSON, normal and terse output of versions 2 and 3", recognise, read)
