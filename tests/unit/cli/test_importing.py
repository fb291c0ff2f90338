"""Quick imports leave the process as it was."""

from __future__ import annotations

import gc
import os

import pytest

from clusterwright.cli.importing import quick_imports


@pytest.mark.parametrize("before", [None, "3"])
def test_environment_and_collector_are_as_before(before: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    if before is not None:
        monkeypatch.setenv("OPENBLAS_NUM_THREADS", before)
    with quick_imports():
        assert os.environ["OPENBLAS_NUM_THREADS"] == (before or "1")
        assert not gc.isenabled()
    assert os.environ.get("OPENBLAS_NUM_THREADS") == before
    assert gc.isenabled()


def test_they_end_where_an_import_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    with pytest.raises(ImportError), quick_imports():
        raise ImportError("none")
    assert "OPENBLAS_NUM_THREADS" not in os.environ
    assert gc.isenabled()
