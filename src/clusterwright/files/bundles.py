"""A bundle of evidence on disk: a directory or one tar file with the same members.

    manifest.json       what belongs to the bundle, each member with its size and digest; the head of the chain
    signature.json      Ed25519 over manifest.json
    records.jsonl       the chain, one record per line
    raw/HEX             a raw output, named by its digest
    lines/HEX.jsonl     a raw output of which lines are withheld, named by the root of its lines

A tar file is read in place, never unpacked; only regular members with these names are accepted, each once.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from clusterwright.lib.errors import InvalidInput, Place, Problem, Unavailable

MANIFEST: Final = "manifest.json"
SIGNATURE: Final = "signature.json"
RECORDS: Final = "records.jsonl"
_MEMBER: Final = re.compile(r"manifest\.json|signature\.json|records\.jsonl|raw/[0-9a-f]{64}|lines/[0-9a-f]{64}\.jsonl")
_PIECE: Final = 1024 * 1024


#: GNU tar, whose sizes have no bound.
_FORM: Final = tarfile.GNU_FORMAT


def _header(name: str, size: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size, info.mode = size, 0o644
    return info


class BundleWriter:
    """A bundle that is being written; it takes its place when `finish` is called, or not at all.

    Args:
        path: of the new bundle; a name that ends in `.tar` becomes one file.

    Raises:
        InvalidInput: when something is there already.
        Unavailable: when it cannot be written.
    """

    def __init__(self, path: Path) -> None:
        if path.exists() or path.is_symlink():
            raise InvalidInput(Problem(Place(str(path)), "", "is there already", "choose another name"))
        self._path = path
        self.members: dict[str, tuple[str, int]] = {}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._folder = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
        except OSError as error:
            raise self._unavailable(error) from None

    def add(self, name: str, chunks: Iterable[bytes]) -> None:
        """Write one member; its digest and size are kept in `members`."""
        target = self._folder / name
        digest, size = hashlib.sha256(), 0
        try:
            target.parent.mkdir(exist_ok=True)
            with target.open("xb") as stream:
                for chunk in chunks:
                    digest.update(chunk)
                    size += len(chunk)
                    stream.write(chunk)
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as error:
            raise self._unavailable(error) from None
        self.members[name] = f"sha256:{digest.hexdigest()}", size

    def finish(self) -> None:
        """Put the bundle in its place."""
        try:
            if self._path.suffix == ".tar":
                packed = self._folder.with_suffix(".packing")
                try:
                    self._pack(packed)
                    os.rename(packed, self._path)
                finally:
                    packed.unlink(missing_ok=True)
                self.discard()
            else:
                os.chmod(self._folder, 0o755)
                os.rename(self._folder, self._path)
        except OSError as error:
            raise self._unavailable(error) from None

    def discard(self) -> None:
        """Remove what was written so far."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _pack(self, target: Path) -> None:
        with tarfile.open(target, "x:", format=_FORM) as archive:
            for name in sorted(self.members):
                info = _header(name, self.members[name][1])
                with (self._folder / name).open("rb") as stream:
                    archive.addfile(info, stream)

    def _unavailable(self, error: OSError) -> Unavailable:
        return Unavailable(f"{self._path}: the bundle cannot be written: {error.strerror or error}")


class BundleReader:
    """The members of a bundle.

    Raises:
        InvalidInput: when it is no bundle, or holds what no bundle holds.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._archive: tarfile.TarFile | None = None
        self._infos: dict[str, tarfile.TarInfo] = {}
        try:
            self.names = self._names_in_directory() if path.is_dir() else self._names_in_tar()
            self._check_names()
        except BaseException:
            self.close()
            raise

    def stream(self, name: str) -> Iterator[bytes]:
        """The bytes of a member, in pieces; InvalidInput when it is not there or cannot be read."""
        if name not in self.names:
            raise self._fault(f"{name} is missing")
        try:
            with contextlib.ExitStack() as stack:
                if self._archive is not None:
                    stream = self._archive.extractfile(self._infos[name])
                    assert stream is not None  # only regular members are listed
                    stack.enter_context(stream)
                    while piece := stream.read(_PIECE):
                        yield piece
                else:
                    with (self._path / name).open("rb") as file:
                        while piece := file.read(_PIECE):
                            yield piece
        except (OSError, tarfile.TarError) as error:
            raise self._fault(f"{name} cannot be read: {error}") from None

    def read(self, name: str, most: int = 64 * 1024 * 1024) -> bytes:
        """A whole member of at most `most` bytes."""
        held = bytearray()
        for piece in self.stream(name):
            held += piece
            if len(held) > most:
                raise self._fault(f"{name} is larger than {most // 2**20} MiB")
        return bytes(held)

    def size(self, name: str) -> int:
        """Bytes of a member."""
        return self._infos[name].size if self._archive is not None else (self._path / name).stat().st_size

    def close(self) -> None:
        """Release the file."""
        if self._archive is not None:
            self._archive.close()

    def _check_names(self) -> None:
        strange = sorted(name for name in self.names if not _MEMBER.fullmatch(name))
        if strange:
            raise self._fault(f"holds {strange[0][:80]!r}, which belongs to no bundle")
        if MANIFEST not in self.names:
            raise self._fault(f"has no {MANIFEST}: it is no bundle, or was cut")

    def _names_in_directory(self) -> set[str]:
        names = set()
        for folder, folders, files in os.walk(self._path):
            for name in [*files, *folders]:
                path = Path(folder) / name
                if path.is_symlink():
                    raise self._fault(f"holds a link, {name!r}")
            for name in files:
                if not (Path(folder) / name).is_file():
                    raise self._fault(f"holds {name!r}, which is no regular file")
                names.add((Path(folder) / name).relative_to(self._path).as_posix())
        return names

    def _names_in_tar(self) -> set[str]:
        try:
            self._archive = tarfile.open(self._path, "r:")  # noqa: SIM115 — closed by close()
            for info in self._archive:
                if not info.isreg() or info.name in self._infos:
                    raise self._fault(f"holds {info.name[:80]!r} twice, or as something other than a file")
                self._infos[info.name] = info
        except (OSError, tarfile.TarError, EOFError, ValueError) as error:
            raise self._fault(f"is no bundle: {error}") from None
        self._check_form()
        return set(self._infos)

    def _check_form(self) -> None:
        """Refuse a tar file of which a byte outside the members differs from what the writer wrote."""
        end = 0
        with self._path.open("rb") as stream:
            for name, info in self._infos.items():
                stream.seek(end)
                if info.offset != end or stream.read(tarfile.BLOCKSIZE) != _header(name, info.size).tobuf(_FORM):
                    raise self._fault(f"the header of {name} was altered")
                stream.seek(info.offset_data + info.size)
                end = info.offset_data + -(-info.size // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE
                if stream.read(end - info.offset_data - info.size).strip(b"\0"):
                    raise self._fault(f"something stands behind {name}")
            stream.seek(end)
            rest = stream.read(2 * tarfile.RECORDSIZE + 1)
        whole = -(-(end + 2 * tarfile.BLOCKSIZE) // tarfile.RECORDSIZE) * tarfile.RECORDSIZE
        if rest.strip(b"\0") or end + len(rest) != whole:
            raise self._fault("its end was altered or cut")

    def _fault(self, message: str) -> InvalidInput:
        return InvalidInput(Problem(Place(str(self._path)), "", message))
