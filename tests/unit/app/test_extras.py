"""Without the extra of the engine nothing waits for it: the missing extra is named at once."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from clusterwright.app.extras import missing_extra
from clusterwright.app.running import start_cluster
from clusterwright.lib.errors import Unavailable
from clusterwright.model.jobs import NodeSpec


def test_a_module_of_an_extra_names_the_extra() -> None:
    assert "clusterwright[local]" in str(missing_extra("sqlalchemy.orm"))
    assert missing_extra("json") is None


def test_the_engine_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Hidden:
        @staticmethod
        def find_spec(name: str, path: object = None, target: object = None) -> None:
            return None

    monkeypatch.setattr(sys, "meta_path", [Hidden()])
    monkeypatch.delitem(sys.modules, "sqlalchemy", raising=False)
    with pytest.raises(Unavailable, match=r"clusterwright\[local\]"):
        start_cluster(tmp_path, [NodeSpec("n1", 8)])
    assert not list(tmp_path.iterdir())
