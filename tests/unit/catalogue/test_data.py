"""The shipped data: enough of it, sourced, in agreement with itself and with published figures."""

from __future__ import annotations

import datetime
import json

import pytest

from clusterwright.catalogue.building import build
from clusterwright.catalogue.catalogues import Catalogue
from clusterwright.catalogue.counting import compare
from clusterwright.catalogue.kinds import TYPES
from clusterwright.files.catalogue import COMPILED, DATA, compile_sources, load_catalogue
from clusterwright.model.entries import Entry
from clusterwright.model.hardware import Gpu
from clusterwright.model.language_models import LanguageModel
from clusterwright.model.plain_decoders import PLAIN, plain_decoder

CATALOGUE = load_catalogue()
ENTRIES = list(CATALOGUE.entries())
GIB = 2**30


def ids(entries: list[tuple[str, Entry]]) -> list[str]:
    return [f"{kind}/{entry.name}" for kind, entry in entries]


def test_the_compiled_form_holds_exactly_what_the_yaml_files_say() -> None:
    compiled = json.loads((DATA / COMPILED).read_text(encoding="utf-8"))
    same = compiled == compile_sources()
    assert same, "run: python -c 'from clusterwright.files.catalogue import write_compiled; write_compiled()'"


def test_there_is_enough_of_each_kind() -> None:
    assert len(CATALOGUE.gpus) >= 25
    assert len(CATALOGUE.shapes) >= 12
    assert len(CATALOGUE.nics) >= 10
    assert len(CATALOGUE.models) >= 20
    assert len([m for m in CATALOGUE.models if m.attention in PLAIN]) >= 20
    assert len(CATALOGUE.prices()) >= 15
    assert len(CATALOGUE.api_prices()) >= 15
    assert {kind for kind, _ in ENTRIES} == set(TYPES)


@pytest.mark.parametrize(("kind", "entry"), ENTRIES, ids=ids(ENTRIES))
def test_every_entry_says_where_it_comes_from_and_when(kind: str, entry: Entry) -> None:
    assert len(entry.source) > 15, kind
    assert datetime.date(2020, 1, 1) < entry.date <= datetime.date(2026, 12, 31)


@pytest.mark.parametrize("gpu", CATALOGUE.gpus, ids=lambda g: g.name)
def test_what_software_sees_is_less_than_what_was_built(gpu: Gpu) -> None:
    assert 0.9 < gpu.memory.to("GB") / float(gpu.sold_as.split()[0]) < 1.1
    if gpu.reported is None:
        return
    built = gpu.memory.value / gpu.devices
    for seen in (gpu.reported.total, gpu.reported.highest, gpu.reported.smi):
        assert seen is None or 0.9 * built < seen.value <= built
    if gpu.reported.total is not None and gpu.reported.smi is not None:
        assert gpu.reported.total.value < gpu.reported.smi.value


@pytest.mark.parametrize("gpu", CATALOGUE.gpus, ids=lambda g: g.name)
def test_dense_rates_double_as_the_format_halves(gpu: Gpu) -> None:
    dense = gpu.dense
    assert dense.fp16 is not None
    if dense.bf16 is not None:
        assert dense.bf16.value == pytest.approx(dense.fp16.value)
    if dense.fp8 is not None and dense.bf16 is not None:
        assert dense.fp8.value / dense.bf16.value == pytest.approx(2, rel=0.03)
    if dense.tf32 is not None and dense.bf16 is not None:
        assert dense.bf16.value / dense.tf32.value == pytest.approx(2, rel=0.03)
    if dense.fp4 is not None and dense.fp8 is not None:
        doubled = 3 if gpu.architecture == "blackwell-ultra" else 2
        assert dense.fp4.value / dense.fp8.value == pytest.approx(doubled, rel=0.03)


@pytest.mark.parametrize("gpu", CATALOGUE.gpus, ids=lambda g: g.name)
def test_formats_exist_where_the_architecture_has_them(gpu: Gpu) -> None:
    if gpu.vendor == "amd":
        assert gpu.gfx is not None
        assert gpu.capability is None
        assert (gpu.dense.fp8 is not None) == (gpu.architecture in ("cdna3", "cdna4"))
        assert (gpu.dense.fp4 is not None) == (gpu.architecture == "cdna4")
        return
    assert gpu.capability is not None
    assert (gpu.dense.bf16 is not None) == (gpu.capability >= (8, 0))
    assert (gpu.dense.fp8 is not None) == (gpu.capability >= (8, 9))
    assert (gpu.dense.fp4 is not None) == (gpu.capability >= (10, 0))


@pytest.mark.parametrize("gpu", CATALOGUE.gpus, ids=lambda g: g.name)
def test_a_scale_up_link_carries_half_its_total_each_way(gpu: Gpu) -> None:
    if gpu.scale_up is None:
        return
    assert gpu.scale_up.total.value == pytest.approx(2 * gpu.scale_up.per_direction.value)
    if gpu.scale_up.per_peer is not None:
        peers = gpu.scale_up.gpus - 1
        assert gpu.scale_up.per_peer.value * peers == pytest.approx(gpu.scale_up.per_direction.value)


@pytest.mark.parametrize("shape", CATALOGUE.shapes, ids=lambda s: s.name)
def test_a_shape_names_parts_that_exist_and_fit(shape) -> None:  # type: ignore[no-untyped-def]
    if shape.gpu is not None:
        gpu = CATALOGUE.gpu(shape.gpu)
        largest = gpu.scale_up.gpus if gpu.scale_up else 1
        assert shape.domain_gpus <= largest
        assert not shape.nvswitch or (gpu.scale_up is not None and gpu.scale_up.switched)
        if shape.power is not None and gpu.tdp is not None:
            assert shape.power.value > shape.gpus * gpu.tdp.value
    for slots in shape.nics:
        if slots.nic is not None:
            nic = CATALOGUE.nic(slots.nic)
            assert slots.rate is not None
            assert slots.rate.value == nic.total_rate.value


@pytest.mark.parametrize("nic", CATALOGUE.nics, ids=lambda n: n.name)
def test_no_adapter_carries_more_than_its_slot(nic) -> None:  # type: ignore[no-untyped-def]
    assert nic.rate.value <= nic.total_rate.value <= nic.ports * nic.rate.value
    if nic.host_rate is not None:
        assert nic.total_rate.value <= nic.host_rate.value


@pytest.mark.parametrize("model", CATALOGUE.models, ids=lambda m: m.name)
def test_a_models_facts_give_its_published_parameters(model: LanguageModel) -> None:
    decoder = CATALOGUE.find_decoder(model.name)
    assert decoder is not None
    if model.parameters is not None:
        assert compare(decoder, model.parameters).rounded
    if model.active_parameters is not None:
        assert decoder.multiplied <= model.active_parameters * 1.06
        assert decoder.active >= model.active_parameters * 0.91


@pytest.mark.parametrize("model", [m for m in CATALOGUE.models if m.attention in PLAIN], ids=lambda m: m.name)
def test_plain_fields_describe_the_same_model(model: LanguageModel) -> None:
    decoder = CATALOGUE.find_decoder(model.name)
    assert decoder is not None
    assert plain_decoder(model).parameters == pytest.approx(decoder.text_parameters, rel=0.002)


def test_known_shapes() -> None:
    llama = CATALOGUE.model("meta-llama/Llama-3.3-70B-Instruct")
    assert (llama.layers, llama.hidden, llama.heads, llama.kv_heads, llama.head_dim) == (80, 8192, 64, 8, 128)
    assert llama.parameters is not None
    assert llama.parameters * 2 / GIB == pytest.approx(131.417, abs=0.001)
    oss = CATALOGUE.model("openai/gpt-oss-120b")
    assert oss.moe is not None
    assert oss.window is not None
    assert (oss.moe.experts, oss.moe.active, oss.moe.intermediate, oss.window.layers) == (128, 4, 2880, 18)
    assert oss.kv_heads is not None
    assert oss.head_dim is not None
    cache = 2 * (oss.layers - oss.window.layers) * oss.kv_heads * oss.head_dim * 2 * 131072
    cache += 2 * oss.window.layers * oss.kv_heads * oss.head_dim * 2 * oss.window.tokens
    assert cache / GIB == pytest.approx(4.504, abs=0.001)
    deepseek = CATALOGUE.model("deepseek-v3")
    assert deepseek.attention not in PLAIN
    assert deepseek.latent is not None
    assert deepseek.layers * (deepseek.latent.kv_rank + deepseek.latent.rope_dim) * 2 * 131072 / GIB == 8.578125


@pytest.mark.parametrize(
    ("name", "lowest", "highest"),
    [
        ("a100-sxm-40", 39.38, 39.38),
        ("a100-sxm-80", 79.1, 79.3),
        ("h100-sxm-80", 79.1, 79.3),
        ("h200-sxm-141", 139.7, 139.9),
        ("b200-sxm-180", 178.3, 178.4),
        ("gb200-186", 184.3, 184.4),
        ("mi300x", 191.45, 192.0),
        ("l40s", 44.3, 44.6),
        ("t4", 14.56, 14.56),
    ],
)
def test_reported_memory_is_what_was_measured(name: str, lowest: float, highest: float) -> None:
    gpu = CATALOGUE.gpu(name)
    assert gpu.reported is not None
    assert gpu.reported.total is not None
    assert lowest <= gpu.reported.total.to("GiB") <= highest


def test_known_rates() -> None:
    h100 = CATALOGUE.gpu("H100")
    assert h100.dense.bf16 is not None
    assert h100.dense.bf16.to("TFLOP/s") == 989.4
    assert h100.bandwidth.to("TB/s") == 3.35
    assert h100.scale_up is not None
    assert h100.scale_up.per_direction.to("GB/s") == 450
    mi355x = CATALOGUE.gpu("mi355x")
    assert mi355x.dense.fp4 is not None
    assert mi355x.dense.fp4.to("TFLOP/s") == 10066.3


def test_known_shapes_of_nodes() -> None:
    dgx = CATALOGUE.shape("dgx-h100")
    assert dgx.power is not None
    assert dgx.power.to("kW") == 10.2
    b200 = CATALOGUE.shape("dgx-b200").power
    assert b200 is not None
    assert b200.to("kW") == 14.3
    assert dgx.compute_rate is not None
    assert dgx.compute_rate.to("Tb/s") == pytest.approx(3.2)
    assert dgx.domain_nodes == 1
    tray = CATALOGUE.shape("gb200-nvl72")
    assert (tray.gpus, tray.domain_gpus, tray.domain_nodes, tray.fabric_manager) == (4, 72, 18, "switch-tray")
    assert CATALOGUE.shape("cpu-control-plane").gpus == 0


def test_prices_are_of_things_that_exist() -> None:
    h100 = CATALOGUE.prices("rental", "h100-sxm-80")
    assert {p.provider_class for p in h100} >= {"hyperscaler", "specialist", "marketplace", "survey"}
    assert all(1 < p.low.to("$/GPU-h") <= p.high.to("$/GPU-h") < 20 for p in h100)
    assert h100[0].date >= h100[-1].date
    colocation = CATALOGUE.prices("colocation")
    assert {round(p.low.to("$/kW-month"), 2) for p in colocation} == {163.44, 184.06}
    (capex,) = CATALOGUE.prices("capex")
    assert 45_000 < capex.low.to("$") < capex.high.to("$") < 52_000
    assert CATALOGUE.api_prices("llama-3.3-70b")
    for price in CATALOGUE.api_prices():
        assert CATALOGUE.find_model(price.model) is not None
        assert price.input.to("$/Mtok") <= price.output.to("$/Mtok")
        assert price.cached_input is None or price.cached_input.value <= price.input.value


def test_reading_everything_is_cheap_enough_to_do_at_every_start() -> None:
    raw = json.loads((DATA / COMPILED).read_text(encoding="utf-8"))
    catalogue = Catalogue(raw)
    assert not catalogue._built, "an entry is built when it is asked for"
    catalogue.gpu("h100-sxm-80")
    assert set(catalogue._built) == {"gpus"}
    assert set(catalogue._built["gpus"]) == {"h100-sxm-80"}


def test_published_causes_of_failures_add_up() -> None:
    llama = CATALOGUE.failures("llama3-405b")
    assert sum(c.interruptions for c in llama.causes) == 419
    assert len(llama.causes) == 18
    assert [CATALOGUE.failures(name).per_1000_node_days for name in ("rsc-1", "rsc-2")] == [6.50, 2.34]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"per_1000_node_days": "3.9"}, "add up to 3.79"),
        ({"days": None}, "need nodes and days"),
        ({"causes": [{"cause": "GPU", "interruptions": "400"}, {"cause": "GPU", "interruptions": "19"}]}, "twice"),
    ],
)
def test_causes_that_do_not_add_up_are_refused(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build(TYPES["failures"], {"name": "a", **CATALOGUE.raw["failures"]["llama3-405b"], **wrong})
