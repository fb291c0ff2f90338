"""Options as text → wants, with every problem named at once; the same for the command line, a profile and a CSV row."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, Final

from clusterwright.lib.errors import InvalidInput, Place, Problem
from clusterwright.lib.spelling import did_you_mean
from clusterwright.physics.engines.releases import modelled
from clusterwright.plan.fitting import amounts
from clusterwright.plan.fitting.amounts import Wrong, shown
from clusterwright.plan.fitting.prices import Hours
from clusterwright.plan.fitting.training_offers import refused
from clusterwright.plan.fitting.wants import ServingWants, TrainingWants, Wants

#: Engines as people write them → as they are modelled.
ENGINES: Final = {
    "vllm": "vllm", "sglang": "sglang", "tensorrt-llm": "tensorrt-llm", "trtllm": "tensorrt-llm",
    "trt-llm": "tensorrt-llm", "tensorrtllm": "tensorrt-llm",
}  # fmt: skip
WEIGHTS: Final = ("bf16", "fp16", "fp8", "int8", "nvfp4", "mxfp4", "int4")
CACHES: Final = ("auto", "bf16", "fp16", "fp8")
PRECISIONS: Final = ("bf16", "fp16", "fp8", "mxfp8", "nvfp4")
FRAMEWORKS: Final = ("megatron", "torchtitan", "deepspeed")
METHODS: Final = ("full", "lora", "qlora")
OFFLOADS: Final = ("none", "optimizer", "parameters")
GOALS: Final = ("cost", "latency", "throughput", "domain")


def quantile(text: str) -> float | None:
    """`p95` → 0.95; `mean` → None."""
    if text.strip().lower() in ("mean", "average"):
        return None
    match = re.fullmatch(r"[pP]?([0-9]{2}(?:\.[0-9]+)?)", text.strip())
    if match is None or not 50 <= float(match[1]) <= 99.9:
        raise Wrong(f"'{shown(text)}' is no percentile from p50 to p99.9; write for example p95, or mean")
    return float(match[1]) / 100


def engine(text: str) -> tuple[str, tuple[int, int] | None]:
    """`vllm 0.11`, `sglang`, `tensorrt-llm 1.2` → name and version."""
    name, _, version = text.strip().replace("==", " ").replace("@", " ").partition(" ")
    own = ENGINES.get(name.lower())
    if own is None:
        raise Wrong(f"engine '{shown(name)}' is not modelled{_near(name, ENGINES)}; vllm, sglang or tensorrt-llm")
    if not version.strip():
        return own, None
    match = re.fullmatch(r"v?([0-9]{1,4})\.([0-9]{1,4})(?:[.a-z+].*)?", version.strip())
    if match is None:
        raise Wrong(f"'{shown(version.strip())}' is no version; write for example '{own} 0.11'")
    return own, (int(match[1]), int(match[2]))


def one_of(choices: tuple[str, ...]) -> Callable[[str], str]:
    """A reader of a word from a list."""

    def read(text: str) -> str:
        word = text.strip().lower()
        if word not in choices:
            raise Wrong(f"'{shown(text)}' is none of {', '.join(choices)}{_near(word, choices)}")
        return word

    return read


def _near(word: str, choices: Any) -> str:
    hint = did_you_mean(word, choices)
    return f"; {hint}" if hint else ""


_NODES: Final = ("node", "nodes")
_target: Final = amounts.duration(amounts.TARGETS)
#: Option → (reader, field of ServingWants, TrainingWants or Wants).
_SERVING: Final[dict[str, tuple[Callable[[str], Any], str]]] = {
    "rate": (amounts.rate, "rate"), "concurrency": (amounts.whole(amounts.IN_FLIGHT), "concurrency"),
    "in": (amounts.tokens, "mean_in"), "out": (amounts.tokens, "mean_out"),
    "in-p95": (amounts.tokens, "p95_in"), "out-p95": (amounts.tokens, "p95_out"),
    "reuse": (amounts.reuse, "reused_share"),
    "ttft": (_target, "ttft_s"), "tpot": (_target, "tpot_s"), "at": (quantile, "quantile"),
    "survive": (amounts.whole(amounts.LOSSES, _NODES), "survive_nodes"), "context": (amounts.context, "context"),
    "engine": (engine, "engine"),
    "weights": (one_of(WEIGHTS), "weights"), "kv": (one_of(CACHES), "kv_format"),
    "memory-share": (amounts.share, "memory_share"), "utilisation": (amounts.share, "utilisation"),
    "goal": (one_of(GOALS), "goal"),
}  # fmt: skip
_TRAINING: Final[dict[str, tuple[Callable[[str], Any], str]]] = {
    "tokens": (amounts.trained, "tokens"), "sequence": (amounts.context, "sequence"),
    "batch-size": (amounts.whole(amounts.BATCHES), "global_batch"),
    "precision": (one_of(PRECISIONS), "precision"), "framework": (one_of(FRAMEWORKS), "framework"),
    "deadline": (amounts.duration(amounts.DEADLINES), "deadline_s"),
    "method": (one_of(METHODS), "method"), "rank": (amounts.whole(amounts.RANKS), "rank"),
    "offload": (one_of(OFFLOADS), "offload"), "failures": (amounts.failures, "failures"),
    "restart": (amounts.duration(amounts.RESTARTS), "restart_s"),
    "repair": (amounts.duration(amounts.REPAIRS), "repair_s"), "checkpoint-rate": (amounts.store, "store_bytes_s"),
}  # fmt: skip
_BOTH: Final[dict[str, tuple[Callable[[str], Any], str]]] = {
    "gpus": (amounts.whole(amounts.GPUS), "gpus"), "budget": (amounts.money, "budget"),
    "power": (amounts.power, "power_w"), "price": (amounts.prices, "hours"), "pue": (amounts.pue, "pue"),
    "spares": (amounts.share, "spares_target"),
}  # fmt: skip
#: Names of all options that say what is wanted, in the order of help.
OPTIONS: Final = (*_SERVING, *_TRAINING, *_BOTH)


def read_wants(
    options: Mapping[str, str],
    *,
    train: bool = False,
    defaults: Mapping[str, str] | None = None,
    hours: tuple[Hours, ...] = (),
    place: Callable[[str], str] = lambda name: f"--{name}",
) -> Wants:
    """Wants of options by name; those of `defaults` (a house profile) where the options do not say.

    Defaults that do not belong to what is asked are left out.

    Args:
        hours: prices of the profile, which count after a stated one.
        place: name of an option → where it stands, for messages.

    Raises:
        InvalidInput: with everything wrong.
    """
    given = {name: text for name, text in options.items() if text is not None and str(text).strip()}
    usable = {name: text for name, text in (defaults or {}).items() if not (train and name in _SERVING)}
    house = {name: text for name, text in usable.items() if name not in given}
    problems, values = list[Problem](), dict[str, Any]()
    for name, text in (house | given).items():
        table = next((t for t in (_SERVING, _TRAINING, _BOTH) if name in t), None)
        if table is None:
            hint = did_you_mean(name, OPTIONS)
            problems.append(Problem(Place(place(name)), "", f"no option '{shown(name)}'", hint))
            continue
        try:
            values[name] = table[name][0](str(text))
        except Wrong as error:
            problems.append(Problem(Place(place(name)), "", str(error)))
    problems += _contradictions(given, values, train, place)
    if problems:
        raise InvalidInput(*problems)
    return _assemble(values, train, hours, frozenset(given), frozenset(house))


def _assemble(
    values: dict[str, Any], train: bool, hours: tuple[Hours, ...], stated: frozenset[str], profiled: frozenset[str]
) -> Wants:
    name, version = values.pop("engine", ("vllm", None))
    serving = {field: values[option] for option, (_, field) in _SERVING.items() if option in values}
    own = {field: values[option] for option, (_, field) in _TRAINING.items() if option in values}
    both = {field: values[option] for option, (_, field) in _BOTH.items() if option in values}
    asked = both.pop("hours", None)
    planned = None if version is None else modelled(name, version)
    return Wants(
        serving=ServingWants(
            **serving, engine=name, version=planned, asked_version=version if version != planned else None
        ),
        training=TrainingWants(**own) if train else None,
        hours=((asked, *hours) if asked is not None else hours),
        stated=stated,
        profiled=profiled,
        **both,
    )


def _contradictions(
    given: Mapping[str, str], values: Mapping[str, Any], train: bool, place: Callable[[str], str]
) -> list[Problem]:
    found = list[Problem]()

    def wrong(name: str, message: str, hint: str = "") -> None:
        found.append(Problem(Place(place(name)), "", message, hint))

    if "rate" in given and "concurrency" in given:
        wrong("concurrency", "a rate and a concurrency at once", "give one of them")
    for mean, high in (("in", "in-p95"), ("out", "out-p95")):
        least = values.get(mean, {f.name: f.default for f in fields(ServingWants)}[f"mean_{mean}"])
        if high in values and isinstance(least, float) and values[high] < least:
            wrong(high, f"the 95th percentile {values[high]:g} is below the mean {least:g}")
    for name in given:
        if train and name in _SERVING and name not in ("utilisation", "survive"):
            wrong(name, "belongs to inference, and --train asks about training")
        if not train and name in _TRAINING and name in values:
            wrong(name, "belongs to training", "add --train")
    for name in ("budget", "power"):
        if name in given and ("rate" in given or "concurrency" in given):
            wrong(name, f"a {name} and a load at once", "leave one out: the answer is the load that it carries")
    if "gpus" in given and "budget" in given and not train:
        wrong("budget", "a number of GPUs and a budget at once", "leave one out")
    if train:
        for name, message, hint in refused(values):
            wrong(name, message, hint)
    return found
