"""The list of architectures: every reader that it names exists, and only the one that is asked for is imported."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

from clusterwright.model.huggingface.families import FAMILIES, SAME_ARCHITECTURE


@pytest.mark.parametrize("architecture", FAMILIES)
def test_every_architecture_has_a_reader(architecture: str) -> None:
    assert callable(FAMILIES[architecture])


def test_an_unknown_architecture_has_none() -> None:
    assert "NobodyForCausalLM" not in FAMILIES
    assert len(FAMILIES) == len(set(FAMILIES)) > 60


def test_what_is_counted_as_another_names_one_that_is_counted() -> None:
    assert set(SAME_ARCHITECTURE.values()) <= set(FAMILIES)
    assert not set(SAME_ARCHITECTURE) & set(FAMILIES)


def test_a_reader_is_imported_when_it_is_looked_up() -> None:
    probe = (
        "import sys\nfrom clusterwright.model.huggingface.families import FAMILIES\n"
        "FAMILIES['LlamaForCausalLM']\n"
        "print([m for m in sys.modules if m.endswith(('hybrids', 'latents', 'compressed', 'gemmas', 'towers'))])"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert ast.literal_eval(done.stdout) == []
