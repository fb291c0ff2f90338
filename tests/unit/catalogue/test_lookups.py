"""Names, aliases, suggestions, and a user's own files on top."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterwright.catalogue.catalogues import stale
from clusterwright.catalogue.parsing import parse_catalogue
from clusterwright.files.catalogue import load_catalogue
from clusterwright.lib.errors import InvalidInput, Place, Problem

CATALOGUE = load_catalogue()
PRICE = """\
prices:
  our-contract:
    source: order form 17
    date: 2026-10-01
    kind: rental
    item: h100-sxm-80
    low: $1.87/GPU-h
    high: $1.87/GPU-h
    provider_class: specialist
"""


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("h100-sxm-80", "h100-sxm-80"),
        ("H100", "h100-sxm-80"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm-80"),
        ("NVIDIA-H100-80GB-HBM3", "h100-sxm-80"),
        ("NVIDIA A100-SXM4-80GB", "a100-sxm-80"),
        ("NVIDIA H200", "h200-sxm-141"),
        ("NVIDIA GH200 480GB", "gh200-96"),
        ("NVIDIA B300 SXM6 AC", "b300-sxm-270"),
    ],
)
def test_a_gpu_is_found_by_what_tools_print(written: str, found: str) -> None:
    assert CATALOGUE.gpu(written).name == found


def test_two_gpus_never_share_a_name() -> None:
    assert CATALOGUE.gpu("NVIDIA H200 NVL").name == "h200-nvl-141"
    assert CATALOGUE.gpu("NVIDIA H20").name == "h20-96"
    assert CATALOGUE.find_gpu("NVIDIA H2") is None


def test_an_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(InvalidInput, match=r"cluster\.yaml:4:9: no GPU 'h100-smx-80'.*did you mean h100-sxm-80"):
        CATALOGUE.gpu("h100-smx-80", Place("cluster.yaml", 4, 9))
    with pytest.raises(InvalidInput, match=r"no node shape 'hgx-h100-sxm-9'.*hgx-h100-sxm-8"):
        CATALOGUE.shape("hgx-h100-sxm-9")
    with pytest.raises(InvalidInput, match=r"no model 'meta-llama/Llama-3.3-70B'.*Llama-3.3-70B-Instruct"):
        CATALOGUE.model("meta-llama/Llama-3.3-70B")
    with pytest.raises(InvalidInput, match=r"no NIC 'zzz'.*known: .*connectx-7-400"):
        CATALOGUE.nic("zzz")


def test_an_entry_ages_from_its_date() -> None:
    entry = CATALOGUE.prices("capex")[0]
    assert entry.date == datetime.date(2024, 8, 31)
    assert stale(entry, datetime.date(2026, 11, 30), datetime.timedelta(days=365))
    assert not stale(entry, datetime.date(2024, 9, 1), datetime.timedelta(days=365))
    assert not stale(entry, datetime.date(2025, 8, 31), datetime.timedelta(days=365))


def test_an_entry_cites_itself() -> None:
    assert CATALOGUE.gpu("h100").basis.startswith("catalogue h100-sxm-80: NVIDIA H100 Tensor Core GPU datasheet")
    assert CATALOGUE.gpu("h100").basis.endswith("2026-11-30")


def test_a_new_entry_extends_the_catalogue() -> None:
    mine = parse_catalogue({"mine.yaml": PRICE}, CATALOGUE)
    assert mine.prices("rental", "h100-sxm-80")[0].name == "our-contract"
    assert mine.files == ("mine.yaml",)
    assert len(CATALOGUE.prices()) + 1 == len(mine.prices())
    assert mine.gpu("h100") == CATALOGUE.gpu("h100")


def test_a_known_name_overrides_field_by_field_and_brings_its_own_source() -> None:
    text = "gpus:\n  h100-sxm-80:\n    source: our bench\n    date: 2026-09-09\n    dense: {bf16: 800 TFLOP/s}\n"
    gpu = parse_catalogue({"mine.yaml": text}, CATALOGUE).gpu("H100")
    assert gpu.dense.bf16 is not None
    assert gpu.dense.fp8 is not None
    assert gpu.dense.bf16.to("TFLOP/s") == 800
    assert gpu.dense.fp8.to("TFLOP/s") == 1978.9
    assert gpu.basis == "catalogue h100-sxm-80: our bench, 2026-09-09"
    untold = "gpus:\n  h100-sxm-80:\n    tdp: 500 W\n"
    with pytest.raises(InvalidInput) as caught:
        parse_catalogue({"mine.yaml": untold}, CATALOGUE)
    assert [str(p) for p in caught.value.problems] == [
        "mine.yaml:2:3: gpus.h100-sxm-80.source: 'source' is missing",
        "mine.yaml:2:3: gpus.h100-sxm-80.date: 'date' is missing",
    ]


def test_an_entry_may_start_from_another() -> None:
    text = (
        "shapes:\n  our-box:\n    like: hgx-h100-sxm-8\n    source: order form 17\n    date: 2026-10-01\n"
        "    cpu: {model: Intel Xeon Platinum 8468, sockets: 2, cores: 96, arch: x86_64}\n    ram: 2 TiB\n"
    )
    shape = parse_catalogue({"mine.yaml": text}, CATALOGUE).shape("our-box")
    assert (shape.gpu, shape.gpus, shape.nvswitch) == ("h100-sxm-80", 8, True)
    assert shape.cpu is not None
    assert shape.cpu.cores == 96
    assert shape.aliases == ()


def problems_of(*texts: str) -> list[str]:
    with pytest.raises(InvalidInput) as caught:
        parse_catalogue({f"{number}.yaml": text for number, text in enumerate(texts)}, CATALOGUE)
    return [str(p) for p in caught.value.problems]


def altered(old: str, new: str) -> str:
    """The price file with one thing wrong."""
    assert old in PRICE
    return PRICE.replace(old, new)


ITEM = "0.yaml:6:5: prices.our-contract.item: 'h100-smx-80' is not in gpus (did you mean h100-sxm-80"
TWICE = "0.yaml:10:3: prices: 'our-contract' is written twice, first at line 2"
WRONG = [
    ("gpu: {}\n", "0.yaml:1:1: gpu: unknown section 'gpu' (choices are gpus, shapes"),
    ("support: {kuda: {}}\n", "0.yaml:1:11: kuda: unknown list of support 'kuda' (choices are driver_branches"),
    (
        altered("    kind:", "    colour: red\n    kind:"),
        "0.yaml:5:5: prices.our-contract.colour: unknown key 'colour'",
    ),
    (altered("    source: order form 17\n", ""), "0.yaml:2:3: prices.our-contract.source: 'source' is missing"),
    (
        altered("low: $1.87/GPU-h", "low: $1.87/h"),
        "0.yaml:7:5: prices.our-contract.low: '$1.87/h' measures money per time",
    ),
    (altered("low: $1.87", "low: $9.87"), "low '$9.87/GPU-h' is above high '$1.87/GPU-h'"),
    (altered("kind: rental", "kind: capex\n    per: gpu"), "a capex price is money, not '$1.87/GPU-h'"),
    (altered("h100-sxm-80", "h100-smx-80"), ITEM),
    (altered("2026-10-01", "yesterday"), "0.yaml:4:5: prices.our-contract.date: 'yesterday' is no date"),
    (PRICE + PRICE.removeprefix("prices:\n"), TWICE),
    (altered("prices:", "prices: &all"), "0.yaml:1:9: prices: anchor '&all': a catalogue file has none"),
    ("prices:\n  a: 3\n", "0.yaml:2:3: prices.a: an entry is a mapping of fields"),
    ("prices: [1, 2]\n", "0.yaml:1:9: prices: this wants a mapping (name: value)"),
    ("prices: {a: {name: b}}\n", "0.yaml:1:14: prices.a.name: the name is the key of the entry"),
    ("shapes: {a: {like: nothing}}\n", "0.yaml:1:14: shapes.a.like: no entry 'nothing' to start from"),
    ("shapes:\n  a:\n    like: a\n", "0.yaml:3:5: shapes.a.like: no entry 'a' to start from"),
    ("gpus: {a: {aliases: [{b: c}]}}\n", "0.yaml:1:22: gpus.a.aliases.0: "),
    ("prices: {a: {low: [1\n", "0.yaml:2:1: not YAML"),
    ("", "0.yaml: the file is empty"),
    ("[" * 2000, "0.yaml: not YAML: nested too deeply"),
]


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_what_is_wrong_is_said_with_its_place(text: str, message: str) -> None:
    assert any(message in problem for problem in problems_of(text)), problems_of(text)


def test_two_files_may_not_define_the_same_entry() -> None:
    assert "1.yaml:2:3: prices.our-contract: 'our-contract' is already at 0.yaml:2:3" in problems_of(PRICE, PRICE)


def test_an_alias_belongs_to_one_entry() -> None:
    text = "gpus:\n  mine: {like: l4, source: s, date: 2026-01-01, aliases: [H100]}\n"
    assert "'h100' names both 'h100-sxm-80' and 'mine'" in problems_of(text)[0]


def test_all_problems_come_at_once() -> None:
    text = PRICE.replace("kind: rental", "kind: rent").replace("item:", "itm:").replace("2026-10-01", "soon")
    assert len(problems_of(text)) >= 3


def test_the_users_files_are_read_from_disk(tmp_path: Path) -> None:
    path = tmp_path / "our prices; $(x).yaml"
    path.write_text(PRICE, encoding="utf-8")
    assert load_catalogue([path]).prices("rental", "h100-sxm-80")[0].name == "our-contract"
    assert load_catalogue().prices("rental", "h100-sxm-80")[0].name != "our-contract"
    with pytest.raises(InvalidInput, match="cannot be read: No such file"):
        load_catalogue([tmp_path / "absent.yaml"])
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidInput, match="is not UTF-8 at byte 0"):
        load_catalogue([path])


def test_a_file_over_the_limit_is_refused() -> None:
    assert problems_of("# " + "x" * (8 * 2**20)) == ["0.yaml: the file is larger than 8 MiB"]


@settings(max_examples=150, deadline=None)
@given(
    st.integers(0, len(PRICE)), st.integers(0, 12), st.text(st.sampled_from(":{}[]&*!#-\n \"'$a1\u00e9"), max_size=6)
)
def test_a_damaged_file_gives_problems_with_places_never_a_traceback(at: int, cut: int, put: str) -> None:
    problems: tuple[Problem, ...] = ()
    try:
        parse_catalogue({"mine.yaml": PRICE[:at] + put + PRICE[at + cut :]}, CATALOGUE)
    except InvalidInput as error:
        problems = error.problems or (Problem(Place("nowhere"), "", "raised without a problem"),)
    assert all(p.place.file == "mine.yaml" for p in problems)
