"""Pieces of a diagnosis as reports quote them: one message, a part of the JSON, the exit status of dcgmi.

They hold figures and statements but no result of a whole diagnosis; what is missing is said.
"""

from __future__ import annotations

import re
from typing import Final

from clusterwright.model.observations import Lack, NoValue, Run, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.dcgm.results import observe_figures

EXCERPT: Final = re.compile(
    r"GPU \d{1,4} (?:GPU to Host|Host to GPU|bidirectional) (?:bandwidth|latency)"
    r"|[Vv]iolations? totaling [\d.]+ seconds"
    r"|DCGM_ST_[A-Z_]{2,40} ?\(-\d{1,3}\)"
    r"|dcgmi diag\b[^\n]{0,200}\b(?:exit(?:ed)?(?: with)?(?: status| code)?|returned)[ :]+\d{1,3}"
)
_STATUS: Final = re.compile(r"(?P<name>DCGM_ST_[A-Z_]{2,40}) ?\(-(?P<code>\d{1,3})\)")
_EXIT: Final = re.compile(
    r"\bThe (?P<first>\d{3}) error|(?:exit(?:ed)?(?: with)?(?: status| code)?|returned)[ :]+(?P<second>\d{1,3})"
)


def read_excerpt(text: str) -> Run | None:
    """What a piece says, None when it is none."""
    if not EXCERPT.search(text):
        return None
    run = RunBuilder("dcgmi diag")
    run.condition("form", "excerpt")
    run.condition("result", NoValue(Lack.ABSENT, "", "a piece of a diagnosis has no result"))
    run.missing("the diagnosis around this piece")
    plain = text.replace("\\t", " ").replace("\\n", " ")
    observe_figures(run, " ".join(_joined(plain).split()), 1)
    _exit_status(run, plain)
    return run.build() if not run.bare else None


def _joined(text: str) -> str:
    """Lines joined where a terminal broke them inside a quoted string, otherwise with a space between."""
    if re.match(r'\s*"\w+"\s*:\s*"', text):
        return text.replace("\n", "")
    return text.replace("\n", " ")


def _exit_status(run: RunBuilder, text: str) -> None:
    status, exited = _STATUS.search(text), _EXIT.search(text)
    number = int(exited["first"] or exited["second"]) if exited else 0
    if status is not None:
        code = int(status["code"])
        run.observe("dcgm_status", status["name"], (("code", f"-{code}"),), 1)
        number = number or 256 - code
    if not number:
        return
    run.observe("exit_status", float(number), (), 1)
    meant = f"{status['name']} (-{status['code']})" if status else f"the DCGM status -{256 - number}"
    if number > 127:
        run.notice(
            "tool-error",
            f"exit status {number} is {meant}, a negative DCGM status as an unsigned byte: the tool failed and says "
            "nothing about the GPUs; the result is unknown, run it again",
            Weight.ERROR,
            1,
        )
