"""Vision towers with their projectors: counted as a whole, not planned layer by layer.

Sources: `modeling_qwen3_vl.py`, `modeling_qwen2_5_vl.py`, `modeling_gemma4.py`, `modeling_siglip.py`,
`modeling_gemma3.py`, `modeling_llama4.py`, `modeling_pixtral.py`, `modeling_mistral3.py`, `modeling_kimi_k25.py`,
`modeling_minimax_m3_vl.py` of huggingface/transformers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clusterwright.model.huggingface.configs import Config
from clusterwright.model.huggingface.weights import Weight, Weights


def vision_of(config: Config) -> Config | None:
    """Facts of the vision tower beside the text model; None for a model of text alone."""
    facts = config.outer.get("vision_config")
    return Config(facts, f"{config.name}: vision_config") if isinstance(facts, Mapping) and facts else None


def _counted(name: str, parameters: int) -> Weight:
    return Weight(name, parameters, 1, "vision", "none", used=0, linear=False)


def _linear(inputs: int, outputs: int, bias: bool = True) -> int:
    return inputs * outputs + (outputs if bias else 0)


def _encoder_layer(width: int, mlp: int, *, bias: bool = True, gated: bool = False, norm_bias: bool = True) -> int:
    """Four square projections, an MLP, two norms."""
    inner = _linear(width, mlp, bias) * (2 if gated else 1) + _linear(mlp, width, bias)
    return 4 * _linear(width, width, bias) + inner + 2 * width * (2 if norm_bias else 1)


def qwen_vision(config: Config, hidden: int) -> Weights:
    """Tower of Qwen3-VL and Qwen3.5: a merger of 2 × 2 patches, further mergers for deep features (Qwen3-VL)."""
    vision = vision_of(config)
    if vision is None:
        return ()
    width, mlp = vision.whole("hidden_size"), vision.whole("intermediate_size")
    patch, merge = vision.whole("patch_size"), vision.whole("spatial_merge_size")
    layers = vision.whole("depth", "num_hidden_layers") * _encoder_layer(width, mlp)
    pixels = vision.whole("in_channels", default=3) * vision.whole("temporal_patch_size") * patch * patch
    tables = _linear(pixels, width) + vision.whole("num_position_embeddings") * width
    wide, out = width * merge * merge, vision.whole("out_hidden_size", default=hidden)
    projections = _linear(wide, wide) + _linear(wide, out)
    deep = len(vision.items("deepstack_visual_indexes"))
    mergers = projections + 2 * width + deep * (projections + 2 * wide)
    return (_counted("visual", layers + tables), _counted("visual.merger", mergers))


def qwen25_vision(config: Config, hidden: int) -> Weights:
    """Tower of Qwen2.5-VL: gated MLPs, RMS norms, a merger."""
    vision = vision_of(config)
    if vision is None:
        return ()
    width, mlp = vision.whole("hidden_size"), vision.whole("intermediate_size")
    patch, merge = vision.whole("patch_size", default=14), vision.whole("spatial_merge_size", default=2)
    layer = _encoder_layer(width, mlp, gated=True, norm_bias=False)
    pixels = vision.whole("in_channels", "in_chans", default=3) * vision.whole("temporal_patch_size", default=2)
    wide, out = width * merge * merge, vision.whole("out_hidden_size", default=hidden)
    merger = width + _linear(wide, wide) + _linear(wide, out)
    tower = vision.whole("depth", default=32) * layer + pixels * patch * patch * width
    return (_counted("visual", tower), _counted("visual.merger", merger))


def siglip_with_projector(config: Config, hidden: int) -> Weights:
    """SigLIP without its head and Gemma 3's projector."""
    vision = vision_of(config)
    if vision is None:
        return ()
    width, patch = vision.whole("hidden_size"), vision.whole("patch_size")
    layers = vision.whole("num_hidden_layers") * _encoder_layer(width, vision.whole("intermediate_size"))
    positions = (vision.whole("image_size") // patch) ** 2 * width
    patches = _linear(3 * patch * patch, width)
    tower = layers + positions + patches + 2 * width
    if vision.flag("vision_use_head", default=True):
        tower += width + _encoder_layer(width, vision.whole("intermediate_size")) - 2 * width
    return (_counted("vision_tower", tower), _counted("multi_modal_projector", width * hidden + width))


def gemma4_vision(config: Config, hidden: int) -> Weights:
    """Gemma 4's tower: gated MLPs, four norms, norms of queries and keys, learned positions on two axes."""
    vision = vision_of(config)
    if vision is None:
        return ()
    if config.outer.get("audio_config"):
        raise config.refuse("Gemma 4's audio tower is not known", "audio_config")
    width, mlp, heads = (
        vision.whole("hidden_size"),
        vision.whole("intermediate_size"),
        vision.whole("num_attention_heads"),
    )
    head = vision.whole("head_dim", default=width // heads)
    layer = 4 * width * heads * head + 3 * width * mlp + 4 * width + 2 * head
    patch = vision.whole("patch_size")
    tables = 2 * vision.whole("position_embedding_size") * width + 3 * patch * patch * width
    standard = 2 * width if vision.flag("standardize") else 0
    tower = vision.whole("num_hidden_layers") * layer + tables + standard
    return (_counted("vision_tower", tower), _counted("embed_vision", width * hidden))


def llama4_vision(config: Config, hidden: int) -> Weights:
    """Llama 4's tower, its adapter and the projector."""
    vision = vision_of(config)
    if vision is None:
        return ()
    width, mlp, patch = vision.whole("hidden_size"), vision.whole("intermediate_size"), vision.whole("patch_size")
    layers = vision.whole("num_hidden_layers") * _encoder_layer(width, mlp)
    patches = (vision.whole("image_size") // patch) ** 2 + 1
    tables = width + patches * width + vision.whole("num_channels", default=3) * patch * patch * width + 4 * width
    inner, out = vision.whole("projector_input_dim"), vision.whole("projector_output_dim")
    adapter = mlp * inner + inner * out
    projector = vision.whole("vision_output_dim") * hidden
    return (_counted("vision_model", layers + tables + adapter), _counted("multi_modal_projector", projector))


def pixtral_vision(config: Config, hidden: int) -> Weights:
    """Pixtral's tower and the projector of Mistral 3."""
    vision = vision_of(config)
    if vision is None:
        return ()
    width, patch = vision.whole("hidden_size"), vision.whole("patch_size")
    layer = _encoder_layer(width, vision.whole("intermediate_size"), bias=False, gated=True, norm_bias=False)
    tower = vision.whole("num_hidden_layers") * layer + 3 * patch * patch * width + width
    outer: Mapping[str, Any] = config.outer
    merge, bias = int(outer.get("spatial_merge_size") or 2), bool(outer.get("multimodal_projector_bias"))
    projector = width + width * width * merge * merge + _linear(width, hidden, bias) + _linear(hidden, hidden, bias)
    return (_counted("vision_tower", tower), _counted("multi_modal_projector", projector))


def moon_vision(config: Config, hidden: int) -> Weights:
    """MoonViT of Kimi-K2.5 and K3 with its projector; K3's has no biases and a wider attention."""
    vision = vision_of(config)
    if vision is None:
        return ()
    width = vision.whole("vt_hidden_size", "hidden_size")
    mlp = vision.whole("vt_intermediate_size", "intermediate_size")
    inner = vision.whole("qkv_hidden_size", default=width)
    attn, linear = vision.flag("attn_bias", default=True), vision.flag("linear_bias", default=True)
    norm = width if vision.text("norm_type") == "rmsnorm" else 2 * width
    layer = _linear(width, 3 * inner, attn) + _linear(inner, width, attn) + 2 * norm
    layer += _linear(width, mlp, linear) + _linear(mlp, width, linear)
    patch = vision.whole("patch_size", default=14)
    rows, columns = vision.whole("init_pos_emb_height"), vision.whole("init_pos_emb_width")
    patches = _linear(3 * patch * patch, width, vision.flag("patch_embed_proj_bias", default=True))
    tables = patches + rows * columns * width + norm
    tower = vision.whole("vt_num_hidden_layers", "num_hidden_layers") * layer + tables
    kernel = vision.items("merge_kernel_size") or (2, 2)
    wide = width * int(kernel[0]) * int(kernel[1])
    if vision.text("mm_projector_type") == "patchmergerv2":
        projector = _linear(wide, wide, False) + _linear(wide, hidden, False) + hidden
    else:
        projector = 2 * width + _linear(wide, wide) + _linear(wide, hidden)
    return (_counted("vision_tower", tower), _counted("mm_projector", projector))


def step_vision(config: Config, hidden: int) -> Weights:
    """Step-3.7's tower: scaled residuals, two convolutions that halve the grid, a projector."""
    vision = vision_of(config)
    if vision is None:
        return ()
    width = vision.whole("hidden_size", "width")
    mlp = vision.maybe("intermediate_size")
    if mlp is None:
        mlp = int(width * float(vision.get("mlp_ratio")))
    patch, image = vision.whole("patch_size"), vision.whole("image_size")
    layer = _encoder_layer(width, mlp) + 2 * width
    tables = 3 * patch * patch * width + (image // patch) ** 2 * width + 2 * width
    halving = 9 * width * 2 * width + 2 * width + 9 * 2 * width * 4 * width + 4 * width
    tower = vision.whole("num_hidden_layers", "layers") * layer + tables + halving
    return (_counted("vision_model", tower), _counted("multi_modal_projector", 4 * width * hidden))


def minimax_vision(config: Config, hidden: int) -> Weights:
    """MiniMax-M3's tower, its projector and the merger of patches."""
    vision = vision_of(config)
    if vision is None:
        return ()
    width, patch = vision.whole("hidden_size"), vision.whole("patch_size")
    layers = vision.whole("num_hidden_layers") * _encoder_layer(width, vision.whole("intermediate_size"))
    merging = vision.nested("img_token_compression_config")
    temporal = merging.whole("temporal_patch_size", default=2) if merging else 2
    tables = 3 * temporal * patch * patch * width + 2 * width
    merge = merging.whole("spatial_merge_size", default=2) if merging else 2
    projector = _linear(width, hidden) + _linear(hidden, hidden)
    merger = _linear(hidden * merge * merge, hidden) + _linear(hidden, hidden)
    return (_counted("vision_tower", layers + tables), _counted("multi_modal_projector", projector + merger))
