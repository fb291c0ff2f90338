"""Bundles: a bundle altered by one byte, shortened, reordered or signed anew is refused; redaction keeps the rest."""

import json
import random
import shutil
import tarfile

import pytest

from builders.benchmarks import benchmark
from clusterwright.app.bundling import export_bundle
from clusterwright.app.verifying import open_records, verify_bundle
from clusterwright.files.signing import create_key, load_public_key, public_pem
from clusterwright.lib.errors import InvalidInput
from clusterwright.lib.lines import commit_lines
from clusterwright.model.evidence_values import evidence_values
from clusterwright.store.evidence import EvidenceDirectory

RAW = b"# host gpu-001.example.com\nSerial Number : 1652922013478\n all good \xff\n 8589934592 380.1 0\n"
SECRET = "ab" * 16
WHEN = "2026-11-02T00:00:00+00:00"


@pytest.fixture
def place(tmp_path):
    for name in ("mine", "other"):
        create_key(tmp_path / f"{name}.key")
        (tmp_path / f"{name}.pub").write_text(public_pem(load_public_key(tmp_path / f"{name}.key")))
    store = EvidenceDirectory(tmp_path / "evidence", create=True)
    for n in range(3):
        text = RAW + b"run %d\n" % n
        digest, size = store.keep([text])
        raw = {"name": "gpu-001.log", "digest": digest, "bytes": size, "line_secret": SECRET}
        raw["line_root"] = commit_lines([text], SECRET)
        store.append({"evidence": evidence_values(benchmark(hours=n)), "raw": [raw], "by": "ann@gpu-001"}, WHEN)
    yield tmp_path, store
    store.close()


def export(place, name, **options):
    folder, store = place
    export_bundle(store, folder / name, folder / "mine.key", exported=WHEN, by="ann", **options)
    return folder / name


def faults(path, folder):
    try:
        found = verify_bundle(path, [folder / "mine.pub"])
    except InvalidInput as error:
        return [str(error)]
    return [*found.faults, *([] if found.known else ["unknown key"])]


@pytest.mark.parametrize("name", ["bundle", "bundle.tar"])
@pytest.mark.parametrize("redacted", [False, True])
def test_an_untouched_bundle_verifies(place, name, redacted):
    path = export(place, name, redacted=redacted)
    assert faults(path, place[0]) == []
    assert [r.id for r in open_records(path, [place[0] / "mine.pub"])] == [r.id for r in place[1].records()]


@pytest.mark.parametrize("redacted", [False, True])
def test_one_byte_changed_anywhere_is_seen(place, redacted):
    path = export(place, "bundle.tar", redacted=redacted)
    whole = path.read_bytes()
    with tarfile.open(path) as archive:
        spans = [(at, size) for m in archive for at, size in ((m.offset, 512), (m.offset_data, m.size))]
    spans.append((len(whole) - 1024, 1024))
    draw = random.Random(7)
    for offset, size in spans:
        for position in {offset, offset + size - 1, *(offset + draw.randrange(size) for _ in range(12))}:
            changed = bytearray(whole)
            changed[position] ^= 1 << draw.randrange(7)
            path.write_bytes(changed)
            assert faults(path, place[0]), position


def test_a_shortened_bundle_is_seen(place):
    path = export(place, "bundle.tar")
    whole = path.read_bytes()
    with tarfile.open(path) as archive:
        ends = sorted(m.offset_data + m.size for m in archive)
    for length in (0, 1, 700, *ends[:-1], len(whole) // 2):
        path.write_bytes(whole[:length])
        assert faults(path, place[0]), length


def test_a_missing_an_added_and_a_linked_member_are_seen(place):
    path = export(place, "bundle")
    for member in [p for p in path.rglob("*") if p.is_file()]:
        copy = place[0] / "copy"
        shutil.copytree(path, copy)
        (copy / member.relative_to(path)).unlink()
        assert faults(copy, place[0]), member
        shutil.rmtree(copy)
    (path / "raw" / ("1" * 64)).write_text("more")
    assert "not in its manifest" in faults(path, place[0])[0]
    (path / "raw" / ("1" * 64)).unlink()
    (path / "raw" / ("2" * 64)).symlink_to("/etc/passwd")
    assert "link" in faults(path, place[0])[0]


def resign(path, folder, key):
    """Make manifest and signature fit again, as somebody would who wants to pass off a changed bundle."""
    import base64
    import hashlib

    from clusterwright.app.bundling import PURPOSE
    from clusterwright.files.signing import load_private_key, public_bytes

    manifest = json.loads((path / "manifest.json").read_text())
    manifest["members"] = {
        name: {"digest": f"sha256:{hashlib.sha256(data).hexdigest()}", "bytes": len(data)}
        for name, data in ((n, (path / n).read_bytes()) for n in manifest["members"])
    }
    records = [json.loads(line) for line in (path / "records.jsonl").read_text().splitlines()]
    manifest["count"], manifest["head"] = len(records), records[-1]["id"]
    body = json.dumps(manifest).encode()
    private = load_private_key(folder / key)
    (path / "manifest.json").write_bytes(body)
    (path / "signature.json").write_text(
        json.dumps(
            {
                "algorithm": "Ed25519",
                "public_key": base64.b64encode(public_bytes(private.public_key())).decode(),
                "signature": base64.b64encode(private.sign(PURPOSE + body)).decode(),
            }
        )
    )


def edit_records(path, change):
    lines = [json.loads(line) for line in (path / "records.jsonl").read_text().splitlines()]
    (path / "records.jsonl").write_text("".join(json.dumps(line) + "\n" for line in change(lines)))


def test_a_bundle_signed_anew_by_somebody_else_is_refused(place):
    path = export(place, "bundle")
    resign(path, place[0], "other.key")
    assert faults(path, place[0]) == ["unknown key"]
    with pytest.raises(InvalidInput, match="none of the given keys"):
        open_records(path, [place[0] / "mine.pub"])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda lines: [lines[0], lines[2], lines[1]], "reordered"),
        (lambda lines: [lines[0], lines[2]], "left out"),
        (lambda lines: lines[1:], "left out"),
    ],
)
def test_reordered_or_left_out_records_are_seen_even_when_the_owner_signs_them(place, change, said):
    path = export(place, "bundle")
    edit_records(path, change)
    resign(path, place[0], "mine.key")
    assert any(said in fault for fault in faults(path, place[0]))


def test_a_cut_off_end_that_the_owner_signs_is_seen_against_an_earlier_head(place):
    path = export(place, "bundle")
    head = verify_bundle(path).head
    edit_records(path, lambda lines: lines[:-1])
    for raw in list((path / "raw").iterdir()):
        kept = (path / "records.jsonl").read_text()
        if raw.name not in kept:
            raw.unlink()
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["members"] = {n: m for n, m in manifest["members"].items() if (path / n).exists()}
    (path / "manifest.json").write_text(json.dumps(manifest))
    resign(path, place[0], "mine.key")
    assert faults(path, place[0]) == []
    assert "rewritten or cut" in verify_bundle(path, head=head).faults[0]


def test_an_altered_value_is_seen_even_when_the_owner_signs_it(place):
    path = export(place, "bundle")

    def change(lines):
        field = next(f for f in lines[1]["fields"] if f["place"].endswith("/.value/.value"))
        field["value"] = 9e11
        return lines

    edit_records(path, change)
    resign(path, place[0], "mine.key")
    assert any("was altered" in fault for fault in faults(path, place[0]))


def test_redaction_withholds_names_everywhere_and_keeps_the_figures(place):
    path = export(place, "bundle", redacted=True)
    for member in (p for p in path.rglob("*") if p.is_file()):
        text = member.read_bytes()
        for name in (b"gpu-001", b"gpu-002", b"1652922013478", b"ann@", SECRET.encode()):
            assert name not in text, (member, name)
    lines = b"".join(p.read_bytes() for p in (path / "lines").iterdir())
    assert b"8589934592 380.1 0" in lines
    found = verify_bundle(path, [place[0] / "mine.pub"])
    assert found.withheld_lines == 6
    assert found.withheld_fields > 0
    nodes = [r.content["evidence"]["nodes"] for r in found.records]
    assert nodes == [["host-1", "host-2"]] * 3


def test_a_withheld_line_exchanged_for_another_is_seen_even_when_the_owner_signs_it(place):
    path = export(place, "bundle", redacted=True)
    member = sorted((path / "lines").iterdir())[0]
    rows = [json.loads(row) for row in member.read_text().splitlines()]
    rows[-2][2] = " 8589934592 480.1 0\n"
    member.write_text("".join(json.dumps(row) + "\n" for row in rows))
    resign(path, place[0], "mine.key")
    assert any("lines of" in fault for fault in faults(path, place[0]))


def test_evidence_that_does_not_verify_is_not_exported(place):
    folder, _ = place
    raw = next(p for p in (folder / "evidence" / "objects").rglob("*") if p.is_file())
    raw.chmod(0o644)
    raw.write_bytes(b"other")
    with pytest.raises(InvalidInput, match="nothing was exported"):
        export(place, "bundle")
    assert not (folder / "bundle").exists()


def test_what_stands_in_the_way_stays(place):
    (place[0] / "bundle").mkdir()
    with pytest.raises(InvalidInput, match="there already"):
        export(place, "bundle")
