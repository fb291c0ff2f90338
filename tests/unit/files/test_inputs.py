"""Reading input files: paths, directories, pipes, standard input, and why something cannot be read."""

from __future__ import annotations

import io
import os
import sys
import threading
from pathlib import Path

import pytest

from clusterwright.files.inputs import read_source
from clusterwright.lib.errors import InvalidInput, Problem
from clusterwright.model.sources import MAX_BYTES


def problem_of(path: str) -> Problem:
    with pytest.raises(InvalidInput) as caught:
        read_source(path)
    (problem,) = caught.value.problems
    return problem


def test_reads_a_file_and_names_it_as_given(tmp_path: Path) -> None:
    file = tmp_path / "my cluster; $(x)\n.yaml"
    file.write_text("a: é\n", encoding="utf-8")
    source = read_source(str(file))
    assert source.text == "a: é\n"
    assert source.name == str(file)


def test_a_directory_means_its_cluster_file(tmp_path: Path) -> None:
    assert "without a cluster.yaml" in problem_of(str(tmp_path)).message
    (tmp_path / "cluster.yaml").write_text("a: 1\n", encoding="utf-8")
    assert read_source(str(tmp_path)).name == str(tmp_path / "cluster.yaml")


def test_a_dash_means_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a: 1\n")))
    source = read_source("-")
    assert (source.name, source.text) == ("standard input", "a: 1\n")


def test_a_closed_standard_input_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert str(problem_of("-")).startswith("standard input: there is none")


def test_a_standard_input_that_fails_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with (tmp_path / "written").open("wb") as closed:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(closed))
        assert "cannot be read" in problem_of("-").message


def test_a_pipe_is_read(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("a: 1\n",))
    writer.start()
    try:
        assert read_source(str(pipe)).text == "a: 1\n"
    finally:
        writer.join(timeout=10)


def test_a_missing_file_names_its_neighbour(tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text("", encoding="utf-8")
    problem = problem_of(str(tmp_path / "clutser.yaml"))
    assert problem.message == "no such file"
    assert problem.hint == "did you mean 'cluster.yaml'?"
    assert problem.place.file == str(tmp_path / "clutser.yaml")


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    assert problem_of(str(tmp_path / "no" / "x.yaml")).hint == f"there is no directory {tmp_path / 'no'}"


def test_a_file_that_is_too_large_is_read_no_further(tmp_path: Path) -> None:
    file = tmp_path / "big.yaml"
    with file.open("wb") as stream:
        stream.truncate(MAX_BYTES + 1)
    assert "larger than 8 MiB" in problem_of(str(file)).message


def test_an_endless_file_is_refused() -> None:
    assert "larger than 8 MiB" in problem_of("/dev/zero").message


@pytest.mark.parametrize("path", ["a\0b", "x" * 5000])
def test_what_is_no_path_is_refused(path: str) -> None:
    assert problem_of(path).message


def test_a_file_in_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("", encoding="utf-8")
    assert "cannot be read" in problem_of(str(tmp_path / "f" / "x.yaml")).message


def test_a_link_to_itself_is_refused(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    assert problem_of(str(tmp_path / "loop")).message


@pytest.mark.parametrize("kind", ["file", "directory"])
def test_a_file_without_permission_says_so(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "closed" / "cluster.yaml"
    file.parent.mkdir()
    file.write_text("a: 1\n", encoding="utf-8")
    target = file if kind == "file" else file.parent
    target.chmod(0)
    try:
        if os.access(target, os.R_OK):
            # Root reads everything: the refusal of the system is played instead.
            def refuse(*_: object, **__: object) -> object:
                raise PermissionError(13, "Permission denied")

            monkeypatch.setattr(Path, "open", refuse)
        assert problem_of(str(file)).message == "you may not read this file"
    finally:
        target.chmod(0o700)
