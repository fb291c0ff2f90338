"""Serving benchmarks and what a server logs about its capacity."""

from __future__ import annotations

from typing import Final

from clusterwright.readers.readers import Reader
from clusterwright.readers.serving.capacity import CAPACITY
from clusterwright.readers.serving.genai import GENAI
from clusterwright.readers.serving.guidellm import GUIDELLM
from clusterwright.readers.serving.trtllm import TRTLLM
from clusterwright.readers.serving.vllm import SGLANG, VLLM

READERS: Final[tuple[Reader, ...]] = (VLLM, SGLANG, GENAI, GUIDELLM, TRTLLM, CAPACITY)
