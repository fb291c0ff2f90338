"""How one model is divided over GPUs."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Layout:
    """Parallel sizes of one replica (inference) or one job (training); every size is at least 1.

    Only tp, pp, cp and dp multiply the number of GPUs. The others say how the same GPUs are grouped again for one kind
    of layer.

    Args:
        tp: ranks that share every layer.
        pp: pipeline stages.
        dp: copies inside the replica or job. Training: data-parallel ranks. Inference: ranks of vLLM's data-parallel
            group, whose dense layers are whole in each copy while experts may spread over all of them.
        ep: ranks that share a layer's experts; 1 where experts are divided like every other layer. At most tp·cp·dp.
        cp: ranks that share a sequence in training or prefill (context parallel).
        attention_dp: data-parallel groups that the tp ranks form for attention (SGLang `--enable-dp-attention`,
            TensorRT-LLM `enable_attention_dp`); attention is then divided over tp ÷ attention_dp ranks.
        vp: virtual stages per pipeline rank (interleaved schedule).
        dcp: tensor ranks that share the cache of one KV head by position (vLLM decode context parallel); divides tp.
        etp: tensor ranks inside one expert (Megatron expert tensor parallel).
    """

    tp: int = 1
    pp: int = 1
    dp: int = 1
    ep: int = 1
    cp: int = 1
    attention_dp: int = 1
    vp: int = 1
    dcp: int = 1
    etp: int = 1

    def __post_init__(self) -> None:
        for f in fields(self):
            if getattr(self, f.name) < 1:
                raise ValueError(f"{f.name} = {getattr(self, f.name)}; a parallel size is at least 1")
        if self.tp % self.attention_dp:
            raise ValueError(f"attention_dp = {self.attention_dp} does not divide tp = {self.tp}")
        if self.tp % self.dcp:
            raise ValueError(f"dcp = {self.dcp} does not divide tp = {self.tp}")

    @property
    def gpus(self) -> int:
        """GPUs of the replica or job."""
        return self.tp * self.pp * self.cp * self.dp

    @property
    def attention_tp(self) -> int:
        """Ranks that one attention layer is divided over."""
        return self.tp // self.attention_dp

    def __str__(self) -> str:
        sizes = [(f.name, getattr(self, f.name)) for f in fields(self)]
        return " ".join(f"{name.upper()}{size}" for name, size in sizes if size > 1) or "one GPU"
