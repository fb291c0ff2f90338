"""Options as text → wants, with every problem named at once; the same for the command line, a profile and a CSV row."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, Final

from clusterwright.catalogue.catalogues import fold
from clusterwright.lib.errors import InvalidInput, Place, Problem
from clusterwright.lib.quantities import UnitError, parse_kind
from clusterwright.lib.spelling import did_you_mean
from clusterwright.plan.fitting.prices import Hours
from clusterwright.plan.fitting.wants import Money, ServingWants, TrainingWants, Wants

#: Engines as people write them → as they are modelled.
ENGINES: Final = {
    "vllm": "vllm", "sglang": "sglang", "tensorrt-llm": "tensorrt-llm", "trtllm": "tensorrt-llm",
    "trt-llm": "tensorrt-llm", "tensorrtllm": "tensorrt-llm",
}  # fmt: skip
WEIGHTS: Final = ("bf16", "fp16", "fp8", "int8", "nvfp4", "mxfp4", "int4")
CACHES: Final = ("auto", "bf16", "fp16", "fp8")
PRECISIONS: Final = ("bf16", "fp16", "fp8", "mxfp8", "nvfp4")
FRAMEWORKS: Final = ("megatron", "torchtitan", "deepspeed")
GOALS: Final = ("cost", "latency", "throughput", "domain")
#: Most tokens, requests, GPUs that make sense; beyond them a unit was mistaken.
_MOST: Final = 1e18
_SCALES: Final = {"": 1.0, "k": 1e3, "M": 1e6, "B": 1e9, "G": 1e9, "T": 1e12}
_AMOUNT: Final = re.compile(r"([$€£]?)\s*([0-9][0-9,_]*(?:\.[0-9]+)?(?:e[0-9]+)?)\s*([kKMBGT]?)(.*)")


class Wrong(ValueError):
    """What is wrong with one option."""


def _scaled(text: str, words: tuple[str, ...] = (), thousand: float = 1e3) -> float:
    match = _AMOUNT.fullmatch(text.strip())
    if match is None or match[1] or match[4].strip() not in ("", *words):
        unit = f" or {words[0]}" if words else ""
        raise Wrong(f"'{text}' is not a number{unit}; write for example 2000 or 2k")
    value = float(match[2].replace(",", "").replace("_", ""))
    scale = thousand if match[3] in ("k", "K") else _SCALES[match[3]]
    if not 0 <= value * scale <= _MOST:
        raise Wrong(f"'{text}' is out of range")
    return value * scale


def _positive(value: float, text: str) -> float:
    if value <= 0:
        raise Wrong(f"'{text}' must be above zero")
    return value


def tokens(text: str) -> float:
    """Tokens: `2000`, `2k` (2,000), `1T`."""
    return _positive(_scaled(text, ("tokens", "token", "tok")), text)


def context(text: str) -> int:
    """Tokens of a context, whose k is 1,024 as on model cards: `32k` is 32,768."""
    return round(_positive(_scaled(text, ("tokens", "token", "tok"), 1024.0), text))


def rate(text: str) -> float:
    """Requests per second; a bare number counts per second, `3000/min` and `20 req/s` are read too."""
    match = re.fullmatch(r"\s*([0-9.,]+)\s*(?:req(?:uests?)?)?\s*/\s*(s|sec|min|h|hour|d|day)\s*", text)
    if match is None:
        return _positive(_scaled(text, ("req/s", "rps", "qps")), text)
    per = {"s": 1, "sec": 1, "min": 60, "h": 3600, "hour": 3600, "d": 86400, "day": 86400}[match[2]]
    return _positive(_scaled(match[1]) / per, text)


def duration(text: str) -> float:
    """Seconds of `1s`, `50ms`, `30d`."""
    return _positive(_quantity(text, "duration"), text)


def whole(text: str) -> int:
    """A whole number, at least 1."""
    value = _scaled(text)
    if value < 1 or value != int(value):
        raise Wrong(f"'{text}' is not a whole number of at least 1")
    return int(value)


def count(text: str) -> int:
    """A whole number, zero allowed; a word behind it (`1 node`) is read over."""
    value = _scaled(text, ("node", "nodes"))
    if value != int(value):
        raise Wrong(f"'{text}' is not a whole number")
    return int(value)


def share(text: str) -> float:
    """A share of `85%` or `0.85`, above 0 and at most 1."""
    value = _quantity(text, "share") if text.strip().endswith("%") else _scaled(text)
    if not 0 < value <= 1:
        raise Wrong(f"'{text}' is no share between 0 and 100 %")
    return value


def quantile(text: str) -> float | None:
    """`p95` → 0.95; `mean` → None."""
    if text.strip().lower() in ("mean", "average"):
        return None
    match = re.fullmatch(r"[pP]?([0-9]{2}(?:\.[0-9]+)?)", text.strip())
    if match is None or not 50 <= float(match[1]) <= 99.9:
        raise Wrong(f"'{text}' is no percentile; write for example p95, or mean")
    return float(match[1]) / 100


def engine(text: str) -> tuple[str, tuple[int, int] | None]:
    """`vllm 0.11`, `sglang`, `tensorrt-llm 1.2` → name and version."""
    name, _, version = text.strip().replace("==", " ").replace("@", " ").partition(" ")
    own = ENGINES.get(name.lower())
    if own is None:
        raise Wrong(f"engine '{name}' is not modelled{_near(name, ENGINES)}; vllm, sglang or tensorrt-llm")
    if not version.strip():
        return own, None
    match = re.fullmatch(r"v?(\d+)\.(\d+)(?:\..*)?", version.strip())
    if match is None:
        raise Wrong(f"'{version.strip()}' is no version; write for example '{own} 0.11'")
    return own, (int(match[1]), int(match[2]))


def one_of(choices: tuple[str, ...]) -> Callable[[str], str]:
    """A reader of a word from a list."""

    def read(text: str) -> str:
        word = text.strip().lower()
        if word not in choices:
            raise Wrong(f"'{text}' is none of {', '.join(choices)}{_near(word, choices)}")
        return word

    return read


def money(text: str) -> Money:
    """`$50k/month`, `€600000/year`, `$2M`."""
    match = _AMOUNT.fullmatch(text.strip())
    if match is None or not match[1]:
        raise Wrong(f"'{text}' is no amount of money; write for example $50k/month or $2M")
    value = float(match[2].replace(",", "").replace("_", "")) * _SCALES["k" if match[3] == "K" else match[3]]
    per = match[4].strip().lower().lstrip("/ ")
    months = {"": None, "month": 1.0, "mo": 1.0, "year": 1 / 12, "yr": 1 / 12, "day": 730 / 24, "h": 730.0}
    if per not in months:
        raise Wrong(f"'{text}': '{per}' is no period; write per month, year, day or h")
    factor = months[per]
    currency = {"$": "USD", "€": "EUR", "£": "GBP"}[match[1]]
    return Money(_positive(value, text) * (factor or 1.0), currency, factor is not None)


def hour_price(text: str) -> tuple[float, str]:
    """Money per GPU-hour of `2.4`, `$2.40` or `$2.40/GPU-h`."""
    raw = text.strip()
    if "/" in raw:
        try:
            found = parse_kind(raw if raw[0] in "$€£" else f"${raw}", "money per GPU time")
        except UnitError as error:
            raise Wrong(str(error)) from None
        return _positive(found.value * 3600, text), found.currency
    match = re.fullmatch(r"([$€£]?)\s*([0-9]+(?:\.[0-9]+)?)", raw)
    if match is None:
        raise Wrong(f"'{text}' is no price per GPU-hour; write for example $2.40")
    return _positive(float(match[2]), text), {"€": "EUR", "£": "GBP"}.get(match[1], "USD")


def prices(text: str) -> Hours:
    """`$2.40`, or `h100=2.4,h200=3.1`, per GPU-hour."""
    found = dict[str, tuple[float, str]]()
    for part in text.split(","):
        name, equals, price = part.rpartition("=")
        if equals and not name.strip():
            raise Wrong(f"'{part}' names no GPU before =")
        found[fold(name)] = hour_price(price)
    return Hours(found)


def _power(text: str) -> float:
    return _positive(_quantity(text, "power"), text)


def _pue(text: str) -> float:
    value = _scaled(text)
    if not 1 <= value <= 5:
        raise Wrong(f"'{text}' is no power usage effectiveness; write for example 1.25")
    return value


def _quantity(text: str, kind: str) -> float:
    try:
        return parse_kind(text, kind).value
    except UnitError as error:
        raise Wrong(str(error)) from None


def _near(word: str, choices: Any) -> str:
    hint = did_you_mean(word, choices)
    return f"; {hint}" if hint else ""


#: Option → (reader, field of ServingWants, TrainingWants or Wants).
_SERVING: Final[dict[str, tuple[Callable[[str], Any], str]]] = {
    "rate": (rate, "rate"), "concurrency": (whole, "concurrency"),
    "in": (tokens, "mean_in"), "out": (tokens, "mean_out"),
    "in-p95": (tokens, "p95_in"), "out-p95": (tokens, "p95_out"), "reuse": (share, "reused_share"),
    "ttft": (duration, "ttft_s"), "tpot": (duration, "tpot_s"), "at": (quantile, "quantile"),
    "survive": (count, "survive_nodes"), "context": (context, "context"), "engine": (engine, "engine"),
    "weights": (one_of(WEIGHTS), "weights"), "kv": (one_of(CACHES), "kv_format"),
    "memory-share": (share, "memory_share"), "utilisation": (share, "utilisation"), "goal": (one_of(GOALS), "goal"),
}  # fmt: skip
_TRAINING: Final[dict[str, tuple[Callable[[str], Any], str]]] = {
    "tokens": (tokens, "tokens"), "sequence": (context, "sequence"), "batch-size": (whole, "global_batch"),
    "precision": (one_of(PRECISIONS), "precision"), "framework": (one_of(FRAMEWORKS), "framework"),
    "deadline": (duration, "deadline_s"),
}  # fmt: skip
_BOTH: Final[dict[str, tuple[Callable[[str], Any], str]]] = {
    "gpus": (whole, "gpus"), "budget": (money, "budget"), "power": (_power, "power_w"),
    "price": (prices, "hours"), "pue": (_pue, "pue"), "spares": (share, "spares_target"),
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
            problems.append(Problem(Place(place(name)), "", f"no option '{name}'", hint))
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
    return Wants(
        serving=ServingWants(**serving, engine=name, version=version),
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
        if train and name in _SERVING and name not in ("utilisation",):
            wrong(name, "belongs to inference, and --train asks about training")
        if not train and name in _TRAINING and name in values:
            wrong(name, "belongs to training", "add --train")
    for name in ("budget", "power"):
        if name in given and ("rate" in given or "concurrency" in given):
            wrong(name, f"a {name} and a load at once", "leave one out: the answer is the load that it carries")
    if "gpus" in given and "budget" in given and not train:
        wrong("budget", "a number of GPUs and a budget at once", "leave one out")
    return found
