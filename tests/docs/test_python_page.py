"""docs/python.md: every example runs, in order, and prints what the page says it prints."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

from clusterwright import plan
from clusterwright.plan import api

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")


def test_every_example_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    scope: dict[str, object] = {}
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert len(blocks) > 10
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    for block in blocks:
        if block.startswith(">>>"):
            example = doctest.DocTestParser().get_doctest(block, scope, "python.md", "docs/python.md", 0)
            runner.run(example, clear_globs=False)
            scope = example.globs
        else:
            exec(block, scope)
    assert runner.summarize(verbose=False).failed == 0


def test_functions_on_the_page_are_public() -> None:
    named = set(re.findall(r"\bplan\.([A-Za-z_]+)\(", PAGE))
    assert named <= set(api.__all__)
    functions = {name for name in api.__all__ if name[0].islower()}
    assert {"search_serving", "engine_memory", "kv_bytes_per_token"} <= named & functions


def test_unknown_names_of_the_package_say_where_to_look() -> None:
    with pytest.raises(AttributeError, match=r"clusterwright\.plan\.api"):
        _ = plan.nothing_of_that_name


def test_every_public_name_is_there_and_no_module_hides_it() -> None:
    modules = {path.stem for path in Path(api.__file__).parent.iterdir()}
    assert not modules & set(api.__all__)
    assert all(getattr(plan, name) is getattr(api, name) for name in api.__all__)
