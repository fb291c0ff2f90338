"""Writing files: whole or not at all, never over what should stay; templates are the examples."""

from __future__ import annotations

from pathlib import Path

import pytest

from clusterwright.files.outputs import TEMPLATES, read_template, replacing, write_text
from clusterwright.lib.errors import InvalidInput, Unavailable

EXAMPLES = {"single-server": "single-server", "two-workers": "two-workers", "training": "training-1024"}


@pytest.mark.parametrize("template", list(TEMPLATES))
def test_each_template_is_its_example(template: str) -> None:
    example = Path(__file__).parents[3] / "examples" / EXAMPLES[template] / "cluster.yaml"
    assert read_template(template) == example.read_text(encoding="utf-8")


def test_a_new_file_is_written_with_the_directories_above_it(tmp_path: Path) -> None:
    write_text(tmp_path / "a" / "b" / "f.txt", "é\n")
    assert (tmp_path / "a" / "b" / "f.txt").read_bytes() == b"\xc3\xa9\n"


def test_an_existing_file_stays_unless_replaced(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_text("old", encoding="utf-8")
    file.chmod(0o640)
    with pytest.raises(InvalidInput, match="use --force"):
        write_text(file, "new")
    assert file.read_text(encoding="utf-8") == "old"
    write_text(file, "new", replace=True)
    assert file.read_text(encoding="utf-8") == "new"
    assert file.stat().st_mode & 0o777 == 0o640
    assert list(tmp_path.iterdir()) == [file]


def test_a_replaced_file_that_was_absent_is_an_ordinary_file(tmp_path: Path) -> None:
    write_text(tmp_path / "one", "x")
    write_text(tmp_path / "two", "x", replace=True)
    assert (tmp_path / "one").stat().st_mode == (tmp_path / "two").stat().st_mode


@pytest.mark.parametrize("replace", [False, True])
def test_a_directory_or_file_in_the_way_is_named(tmp_path: Path, replace: bool) -> None:
    with pytest.raises(InvalidInput, match="this is a directory"):
        write_text(tmp_path, "x", replace=replace)
    (tmp_path / "f").write_text("", encoding="utf-8")
    with pytest.raises(InvalidInput, match="a directory of that name is needed"):
        write_text(tmp_path / "f" / "g", "x", replace=replace)
    with pytest.raises(InvalidInput, match="a directory of that name is needed"):
        write_text(tmp_path / "f" / "g" / "h", "x", replace=replace)


def test_what_the_system_refuses_is_unavailable() -> None:
    with pytest.raises(Unavailable, match="cannot be written"):
        write_text(Path("/proc/none/f"), "x")


def test_a_text_written_in_pieces_is_there_when_it_is_whole(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_text("old", encoding="utf-8")
    with replacing(file) as stream:
        stream.write("a\n")
        stream.write("b\n")
        assert file.read_text(encoding="utf-8") == "old"
    assert file.read_text(encoding="utf-8") == "a\nb\n"
    assert list(tmp_path.iterdir()) == [file]


def test_a_text_that_is_broken_off_leaves_what_was_there(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_text("old", encoding="utf-8")
    with pytest.raises(UnicodeEncodeError), replacing(file) as stream:
        stream.writelines(["a\n", "\ud800"])
    assert file.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_a_device_is_written_to_and_a_directory_is_refused(tmp_path: Path) -> None:
    with replacing(Path("/dev/null")) as stream:
        stream.write("a\n")
    assert Path("/dev/null").is_char_device()
    with pytest.raises(InvalidInput, match="directory"), replacing(tmp_path):
        pass
    with pytest.raises(Unavailable, match="cannot be written"), replacing(tmp_path / "none" / "log"):
        pass
