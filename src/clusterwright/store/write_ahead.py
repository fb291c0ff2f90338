"""How an SQLite connection is set up: a write-ahead log whose commits survive kill -9 and loss of power."""

from __future__ import annotations

import sqlite3
import time
from typing import Any, Final

_PAUSE_S: Final = 0.01


def configure(connection: Any, wait_s: float) -> None:
    """Let `connection` write ahead with synchronous=FULL, and wait up to `wait_s` seconds for another writer.

    Two connections that both turn a new file's journal into a write-ahead log would wait for each other, so SQLite
    tells one of them SQLITE_BUSY at once, without its busy handler ('Write-Ahead Logging', 'Sometimes queries return
    SQLITE_BUSY in WAL mode'; sqlite3_busy_handler: 'not guaranteed to be invoked'). That one tries again here.

    Raises:
        sqlite3.OperationalError: when the file cannot be used, or is still locked after `wait_s`.
    """
    connection.execute(f"PRAGMA busy_timeout={round(wait_s * 1000)}")
    until = time.monotonic() + wait_s
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            break
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(_PAUSE_S)
    connection.execute("PRAGMA synchronous=FULL")
