"""The evidence store: only grows, notices every change, survives two writers and kill -9."""

import sqlite3
import subprocess
import sys
import time

import pytest

from clusterwright.lib.errors import InvalidInput
from clusterwright.store.evidence import EvidenceDirectory


@pytest.fixture
def store(tmp_path):
    opened = EvidenceDirectory(tmp_path / "evidence", create=True)
    yield opened
    opened.close()


def content(store, text=b"raw\n", **values):
    digest, size = store.keep([text])
    raw = [{"name": "a.log", "digest": digest, "bytes": size, "line_root": None, "line_secret": None}]
    return {"raw": raw, **values}


def test_records_come_back_in_order_and_verify(store):
    for n in range(3):
        assert not store.append(content(store, n=n), "2026-11-01T00:00:00Z").was_there
    assert [r.content["n"] for r in store.records()] == [0, 1, 2]
    assert store.find_faults() == []


def test_the_same_content_is_kept_once(store):
    first = store.append(content(store, n=1), "2026-11-01T00:00:00Z")
    again = store.append(content(store, n=1), "2026-12-01T00:00:00Z")
    assert (again.was_there, again.record) == (True, first.record)
    assert len(list(store.records())) == 1


def test_a_directory_without_evidence_is_refused_unless_it_may_be_made(tmp_path):
    with pytest.raises(InvalidInput, match="holds no evidence"):
        EvidenceDirectory(tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_rows_can_neither_be_changed_nor_removed(store, tmp_path):
    store.append(content(store, n=1), "2026-11-01T00:00:00Z")
    with sqlite3.connect(tmp_path / "evidence" / "index.sqlite") as connection:
        for statement in ("DELETE FROM records", "UPDATE records SET tool = 'x'"):
            with pytest.raises(sqlite3.IntegrityError, match="append-only"):
                connection.execute(statement)


def objects(tmp_path):
    return sorted(p for p in (tmp_path / "evidence" / "objects").rglob("*") if p.is_file())


def test_every_altered_or_missing_file_is_a_fault(store, tmp_path):
    for n in range(2):
        store.append(content(store, text=b"raw %d\n" % n, n=n), "2026-11-01T00:00:00Z")
    assert len(objects(tmp_path)) == 4
    for path in objects(tmp_path):
        before = path.read_bytes()
        path.chmod(0o644)
        path.write_bytes(before[:-2] + b"#\n")
        assert store.find_faults(), path
        path.unlink()
        assert store.find_faults(), path
        path.write_bytes(before)
    assert store.find_faults() == []


def test_an_index_that_was_edited_by_force_is_a_fault(store, tmp_path):
    for n in range(3):
        store.append(content(store, n=n), "2026-11-01T00:00:00Z")
    with sqlite3.connect(tmp_path / "evidence" / "index.sqlite") as connection:
        connection.execute("DROP TRIGGER records_keep")
        connection.execute("DELETE FROM records WHERE sequence = 2")
    assert "left out or reordered" in store.find_faults()[0]


WRITER = """
import sys
from pathlib import Path
from clusterwright.store.evidence import EvidenceDirectory
store = EvidenceDirectory(Path(sys.argv[1]), create=True)
for n in range(int(sys.argv[2]), int(sys.argv[3])):
    store.append({"n": n}, "2026-11-01T00:00:00Z")
"""


def start_writer(path, first, last):
    return subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(first), str(last)])


def test_two_writers_make_one_chain(tmp_path):
    writers = [start_writer(tmp_path / "e", 100 * i, 100 * i + 10) for i in range(2)]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    store = EvidenceDirectory(tmp_path / "e")
    assert len(list(store.records())) == 20
    assert store.find_faults() == []
    store.close()


def test_a_writer_killed_at_any_point_leaves_a_chain_that_verifies(tmp_path):
    writer = start_writer(tmp_path / "e", 0, 100_000)
    deadline = time.monotonic() + 60
    while len(objects_of(tmp_path / "e")) < 20 and time.monotonic() < deadline and writer.poll() is None:
        time.sleep(0.01)
    writer.kill()
    writer.wait(60)
    store = EvidenceDirectory(tmp_path / "e")
    assert len(list(store.records())) >= 15
    assert store.find_faults() == []
    store.append({"n": -1}, "2026-11-01T00:00:00Z")
    assert store.find_faults() == []
    store.close()


def objects_of(path):
    return [p for p in (path / "objects").rglob("*") if p.is_file()] if path.exists() else []
