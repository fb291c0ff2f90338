"""vLLM's serving benchmark (`vllm bench serve`, `benchmark_serving.py`): text and JSON; InferenceX's JSON."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from clusterwright.model.observations import Run
from clusterwright.readers.cleaning import Source
from clusterwright.readers.json_streams import load_documents
from clusterwright.readers.readers import Head, Reader
from clusterwright.readers.refusing import Refused
from clusterwright.readers.serving.bench_json import is_result, is_sglang, read_result
from clusterwright.readers.serving.blocks import BANNER, find_blocks, read_block, refuse_templates

_KEYS: Final = re.compile(r'"(?:mean|median|p\d+)_(?:ttft|tpot|itl)(?:_ms)?"\s*:')
_INFERENCEX: Final = re.compile(r'"(?:mean|median|p\d+)_(?:ttft|tpot)"\s*:')
_SGLANG: Final = re.compile(r"^[ \t]*(?:Backend:\s|Traffic request rate: {2,})|\(retokenized\)", re.MULTILINE)
_SGLANG_KEYS: Final = ('"total_output_tokens_retokenized"', '"mean_e2e_latency_ms"')


def recognise_vllm(head: Head) -> int:
    """Sure by the block without SGLang's rows, or the keys of its JSON."""
    if BANNER.search(head.text):
        return 20 if _SGLANG.search(head.text) else 98
    if _KEYS.search(head.text) and head.text.lstrip().startswith(("{", "[")):
        return 0 if any(key in head.text for key in _SGLANG_KEYS) else 96
    return 0


def recognise_sglang(head: Head) -> int:
    """Sure by the block with its own rows, or the keys of its JSON lines."""
    if BANNER.search(head.text):
        return 99 if _SGLANG.search(head.text) else 0
    return 97 if any(key in head.text for key in _SGLANG_KEYS) else 0


def read_vllm(source: Source) -> Sequence[Run]:
    """A run for every result."""
    return _read(source, "vllm-bench")


def read_sglang(source: Source) -> Sequence[Run]:
    """A run for every result."""
    return _read(source, "sglang-bench")


def _read(source: Source, tool: str) -> Sequence[Run]:
    if not BANNER.search(source.head):
        return _read_json(source.text(prefixes=True), tool)
    blocks = find_blocks(source.lines())
    refuse_templates(blocks)
    if not blocks:
        raise Refused("no block `Serving Benchmark Result`")
    return [read_block(block, tool) for block in blocks]


def _read_json(whole: str, tool: str) -> list[Run]:
    runs = []
    for document, line in load_documents(whole):
        values = document.value if isinstance(document.value, list) else [document.value]
        for value in values:
            if is_result(value):
                name = "sglang-bench" if is_sglang(value) else tool
                if name == "vllm-bench" and _INFERENCEX.search(" ".join(f'"{key}":' for key in value)):
                    name = "inferencex"
                runs.append(read_result(type(document)(value, document.duplicates), name, line))
    if not runs:
        raise Refused("JSON without a serving result", 1, whole.lstrip()[:80])
    return runs


VLLM: Final = Reader("vllm-bench", "vllm bench serve, InferenceX: text and JSON", recognise_vllm, read_vllm)
SGLANG: Final = Reader("sglang-bench", "sglang.bench_serving: text and JSON lines", recognise_sglang, read_sglang)
