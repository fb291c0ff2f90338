"""What is suggested for an unknown key."""

from __future__ import annotations

import pytest

from clusterwright.model.architecture import Architecture
from clusterwright.model.suggestions import _SYNONYMS, explain_unknown_key, keys_of, meant_key, sections, type_at


@pytest.mark.parametrize(
    ("key", "path", "says"),
    [
        ("workload", (), "did you mean 'workloads'?"),
        ("fabricManager", ("software", "profiles", "p"), "did you mean 'fabric_manager'?"),
        ("tensor_parallel_size", ("workloads", "w", "serve", "parallel"), "did you mean 'tp'?"),
        ("tensorParallelSize", ("workloads", "w", "serve", "parallel"), "did you mean 'tp'?"),
        ("qps", ("workloads", "w", "serve"), "did you mean 'rate'?"),
        ("nominalQuota", ("scheduling", "queues", "q"), "did you mean 'guarantee'?"),
        ("checkpoint", ("workloads", "w"), "'checkpoint' belongs in workloads.<name>.train"),
        ("gpudirect_rdma", ("fabric", "networks", "n"), "'gpudirect_rdma' belongs in fabric"),
        ("rule", (), "'rule' belongs in waivers.<number>"),
        ("hf_token", ("workloads", "w"), "secrets are references only: say in access.secrets where they live"),
        ("zzz", ("scheduling", "retries"), "valid here: limit, backoff"),
    ],
)
def test_the_suggestion_fits_the_place(key: str, path: tuple[str, ...], says: str) -> None:
    assert explain_unknown_key(key, path) == says


def test_a_place_outside_the_format_suggests_no_key() -> None:
    assert type_at(("nowhere", "x")) is None
    assert type_at(("software", "kubernetes", "x")) is None
    assert meant_key("x", ("nowhere",)) is None


def test_every_section_knows_its_own_keys() -> None:
    for path, section in sections(Architecture):
        concrete = tuple(part for part in path.split(".") if part)
        assert type_at(concrete) is section
        for key in keys_of(section):
            assert meant_key(key, concrete) == key


def test_every_synonym_names_a_key_of_some_section() -> None:
    known = {key for _, section in sections(Architecture) for key in keys_of(section)}
    assert {word for words in _SYNONYMS.values() for word in words} <= known
