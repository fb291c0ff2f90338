"""Lines about a step: Megatron-LM, Megatron-DeepSpeed, GPT-NeoX, torchtitan, NeMo, MaxText.

Times count by their label, `(ms)` or `(s)`: runs of one project print both. A Megatron row ends with `|`; one that
does not is torn and no row.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from clusterwright.model.observations import NoValue, Value
from clusterwright.readers.training.steps import Step, read_loss
from clusterwright.readers.values import quantity, read_number, unreadable

MEGATRON: Final = re.compile(r"\biteration\s+(\d{1,12})/\s*(\d{1,12}) \|")
TITAN: Final = re.compile(r"\bstep:\s*(\d{1,12})\s+loss:\s*(\S+)\s+(.*)")
NEMO: Final = re.compile(r"\b(?:global_step[=:]\s*|iteration )(\d{1,12})(?:\.0+)?\b")
MAXTEXT: Final = re.compile(r"completed step: (\d{1,12}), seconds: ([\d.]+), (.*)")
LIGHTNING: Final = "reduced_train_loss="
#: Lightning's progress bar: batches done and all, time so far and left, the bar's own smoothed rate.
NEMO_BAR: Final = re.compile(
    r"\bEpoch \d{1,9}:.{0,300}?\b(?P<done>\d{1,12})/(?:\d{1,12}|\?) \[[\d:]{4,15}<[\d:?]{1,15}"
    r"(?:, +(?P<rate>[\d.]{1,12})(?P<unit>it/s|s/it))?"
)
_ROUNDED: Final = re.compile(r"\bglobal_step[=:]\s*(\d(?:\.\d{1,8})?e[+]?\d{1,2})\b")
#: How far a step that the bar prints in three digits may be from the exact count.
_ROUNDING: Final = 0.006
_TIMED: Final = re.compile(r"train_step_timing in s[=:]\s*([\d.]+)")
_LABEL: Final = re.compile(r"(.*?)\s*(?:\(([\w/. -]{1,20})\))?")
_LONGEST_LABEL: Final = 80
#: Key in lower case without its unit → name.
_KEYS: Final = {
    "elapsed time per iteration": "step_time", "samples per second": "sample_rate", "samples/sec": "sample_rate",
    "tflops": "tflops_per_gpu", "throughput per gpu": "tflops_per_gpu", "approx flops per gpu": "tflops_per_gpu",
    "lm loss": "loss", "lm_loss": "loss", "loss": "loss", "grad norm": "grad_norm", "grad_norm": "grad_norm",
    "number of skipped iterations": "skipped_iterations", "number of nan iterations": "nan_iterations",
    "loss scale": "loss_scale", "tokens per gpu per second": "training_rate_per_gpu",
    "tokens-per-second-per-gpu": "training_rate_per_gpu", "tokens per second": "training_rate",
    "global batch size": "batch", "actual seqlen": "sequence", "validation loss": "validation_loss",
}  # fmt: skip
_UNITS: Final = {
    "sample_rate": "sample/s", "tflops_per_gpu": "TFLOP/s", "training_rate": "tokens/s",
    "training_rate_per_gpu": "tokens/s",
}  # fmt: skip
Reject = Callable[[str], None]


def read_step(text: str, number: int, reject: Reject) -> Step | None:
    """The step that a line reports, None for another line.

    Args:
        reject: is told why a line that looks like a step is none.
    """
    if "elapsed time per iteration" in text and (found := MEGATRON.search(text)):
        return _megatron(text, found, number, reject)
    if "loss:" in text and (found := TITAN.search(text)):
        return _titan(found, number, reject)
    if "train_step_timing in s" in text or (LIGHTNING in text and NEMO_BAR.search(text)):
        return _nemo(text, number)
    if found := MAXTEXT.search(text):
        return _maxtext(found, number)
    return None


def _megatron(text: str, found: re.Match[str], number: int, reject: Reject) -> Step | None:
    before, row = text[: found.start()], text[found.end() :]
    cells, closed, rest = row.rpartition("|")
    if not closed or (rest.strip() and ":" in rest and not rest.strip().startswith("[")):
        reject("the row is torn: it does not end with |")
        return None
    step = Step(int(found[1]), number)
    for cell in (*cells.split("|"), *before.split("|")):
        label, colon, value = cell.partition(":")
        meaning = _meaning(label) if colon and len(label) < _LONGEST_LABEL else None
        if meaning is not None:
            _keep(step, *meaning, value.strip())
    if "step_time" not in step.values:
        reject("the row has no time")
        return None
    return step


@lru_cache(maxsize=1024)
def _meaning(label: str) -> tuple[str, str] | None:
    """(name, unit in brackets) of a label, None when it is not read; labels repeat from step to step."""
    known = _LABEL.fullmatch(label.strip())
    name = _KEYS.get(known[1].lower()) if known is not None else None
    return (name, known[2] or "") if known is not None and name is not None else None


def _keep(step: Step, name: str, unit: str, text: str) -> None:
    found = read_number(text.removesuffix("TFLOPS"))
    if name == "step_time":
        value: Value = found
        if not isinstance(found, NoValue):
            value = quantity(found, unit) if unit in ("ms", "s") else unreadable(text, "the label names no unit")
        step.values[name] = value
    elif name in ("batch", "sequence"):
        setattr(step, name, found if isinstance(found, float) else None)
    elif name == "loss":
        step.values[name] = read_loss(text, found)
    elif isinstance(found, NoValue) or name not in _UNITS:
        step.values[name] = found
    else:
        step.values[name] = quantity(found, _UNITS[name])


def _titan(found: re.Match[str], number: int, reject: Reject) -> Step | None:
    step = Step(int(found[1]), number)
    step.values["loss"] = read_loss(found[2], read_number(found[2]))
    pairs = dict(re.findall(r"\b(\w++): +([\d.,]+)", found[3]))
    rate = pairs.get("tps") or pairs.get("wps")
    if rate is None:
        reject("the row has no tokens per second")
        return None
    _put(step, "training_rate_per_gpu", rate, "tokens/s")
    if "tflops" in pairs:
        _put(step, "tflops_per_gpu", pairs["tflops"], "TFLOP/s")
    if "grad_norm" in pairs:
        step.values["grad_norm"] = read_number(pairs["grad_norm"])
    if memory := re.search(r"memory: +([\d.]+)GiB", found[3]):
        _put(step, "memory_max", memory[1], "GiB")
    if share := re.search(r"mfu: +([\d.]+)%", found[3]):
        _put(step, "mfu", share[1], "%")
    return step


def _put(step: Step, name: str, text: str, unit: str) -> None:
    found = read_number(text.rstrip(".,"), grouped=True)
    step.values[name] = found if isinstance(found, NoValue) else quantity(found, unit)


def _nemo(text: str, number: int) -> Step | None:
    timed = list(_TIMED.finditer(text))
    bar = NEMO_BAR.search(text)
    iteration = _iteration(text, bar)
    if iteration is None or not (timed or bar):
        return None
    step = Step(iteration, number)
    if timed:
        _put(step, "step_time", timed[-1][1], "s")
    elif bar is not None and bar["rate"]:
        rate = read_number(bar["rate"])
        seconds = rate if bar["unit"] == "s/it" or isinstance(rate, NoValue) or not rate else 1 / rate
        step.values["step_time_smoothed"] = seconds if isinstance(seconds, NoValue) else quantity(seconds, "s")
    if loss := re.findall(r"\b(?:reduced_train_loss|loss)[=:]\s*([\w.+-]+)", text):
        said = loss[-1].removesuffix(".0") if loss[-1].startswith(("nan", "inf", "-inf")) else loss[-1]
        step.values["loss"] = read_loss(said, read_number(said.rstrip(".,")))
    if flops := re.findall(r"\bTFLOPS_per_GPU[=:]\s*([\d.e+]+)", text):
        _put(step, "tflops_per_gpu", flops[-1], "TFLOP/s")
    if batch := re.findall(r"\bglobal_batch_size[=:]\s*([\d.]+)", text):
        size = read_number(batch[-1].rstrip("."))
        step.batch = size if isinstance(size, float) else None
    return step


def _iteration(text: str, bar: re.Match[str] | None) -> int | None:
    """The step of a line of NeMo; where it is rounded (9e+3) that of the bar, if they agree."""
    steps = list(NEMO.finditer(text))
    named = [s for s in steps if s.group().startswith("global_step")]
    rounded = _ROUNDED.search(text)
    if rounded is not None:
        step = float(rounded[1])
        done = int(bar["done"]) if bar is not None else 0
        return done if abs(done - step) <= _ROUNDING * step + 1 else int(step)
    found = named or steps
    return int(found[-1][1]) if found else None


def _maxtext(found: re.Match[str], number: int) -> Step:
    step = Step(int(found[1]), number)
    _put(step, "step_time", found[2], "s")
    pairs = dict(re.findall(r"(?<![\w/])([\w/]++): ([\d.]+)", found[3]))
    for key, name, unit in (
        ("TFLOP/s/device", "tflops_per_gpu", "TFLOP/s"),
        ("Tokens/s/device", "training_rate_per_gpu", "tokens/s"),
    ):
        if key in pairs:
            _put(step, name, pairs[key], unit)
    if "loss" in pairs:
        step.values["loss"] = read_number(pairs["loss"].rstrip("."))
    return step
