"""Loading: several files, flags, and the problems of all of them at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from clusterwright.app.documents import write_first_file
from clusterwright.app.loading import load_catalogue, load_document
from clusterwright.files.outputs import TEMPLATES
from clusterwright.lib.errors import InvalidInput

HEAD = "apiVersion: clusterwright/v1alpha1\ncluster: c\n"


def test_files_and_overrides_become_one_document(tmp_path: Path) -> None:
    one, two = tmp_path / "one.yaml", tmp_path / "two.yaml"
    one.write_text(HEAD, encoding="utf-8")
    two.write_text("pools: {gpu: {nodes: n1}}\n", encoding="utf-8")
    document = load_document([one, two], ["pools.gpu.spares=1"])
    assert document.architecture.pools["gpu"].spares == 1
    assert document.places.of("pools").file == str(two)


def test_a_file_named_twice_is_read_once(tmp_path: Path) -> None:
    file = tmp_path / "one.yaml"
    file.write_text(HEAD, encoding="utf-8")
    assert load_document([file, str(file)]).architecture.cluster.name == "c"


def test_every_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as caught:
        load_document([tmp_path / "a", tmp_path / "b"])
    assert [p.place.file for p in caught.value.problems] == [str(tmp_path / "a"), str(tmp_path / "b")]


def test_standard_input_is_read_once_only() -> None:
    with pytest.raises(InvalidInput, match="only once"):
        load_document(["-", "-"])


def test_no_file_is_an_error() -> None:
    with pytest.raises(InvalidInput, match="no architecture file"):
        load_document([])


@pytest.mark.parametrize("template", list(TEMPLATES))
def test_every_template_is_a_valid_first_file(tmp_path: Path, template: str) -> None:
    path = write_first_file(tmp_path / "new", template)
    document = load_document([tmp_path / "new"])
    assert document.places.of("").file == str(path)


def test_an_unknown_template_names_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="did you mean 'training'"):
        write_first_file(tmp_path, "trainig")
    assert list(tmp_path.iterdir()) == []


def test_every_pool_of_every_template_is_in_the_catalogue() -> None:
    catalogue = load_catalogue()
    for template in TEMPLATES:
        name = {"training": "training-1024"}.get(template, template)
        architecture = load_document([Path(__file__).parents[3] / "examples" / name]).architecture
        for pool in architecture.pools.values():
            assert pool.shape is not None
            assert catalogue.shape(pool.shape)
        for workload in architecture.workloads.values():
            assert catalogue.model(workload.model)
            assert all(catalogue.gpu(gpu) for gpu in workload.gpus)
