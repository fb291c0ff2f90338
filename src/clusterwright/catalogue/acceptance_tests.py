"""Acceptance tests as data: a command template, the reader of its output, what it proves and what it does not.

A template is a list of arguments. `{name}` in one of them stands for a value; those in RUN_TIME are known only on the
machine that runs the test, all others when the plan is made.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from clusterwright.catalogue.reading import read_mapping
from clusterwright.lib.errors import InvalidInput, Place, Problem
from clusterwright.model.metrics import METRICS

Runs = Literal["each-node", "each-pair", "all-nodes", "together", "once", "client"]
ScopeName = Literal["node", "pair", "rack", "pool", "cluster"]
#: In the order in which suites are shown.
SUITES: Final = (
    "inventory", "dcgm", "collectives", "rdma", "gpudirect", "storage", "checkpoint", "scheduled-execution", "serving",
    "sustained", "log-export",
)  # fmt: skip
#: Values that the plan knows → what they are.
PLAN_TIME: Final = {
    "operation": "collective operation, such as all-reduce",
    "binary": "program of nccl-tests for the operation",
    "min_size": "smallest message of the sweep, bytes",
    "max_size": "largest message of the sweep, bytes",
    "size": "message size of the claim, bytes",
    "data_type": "element type of the claim",
    "transport": "transport of the claim",
    "gpus": "GPUs of one node",
    "seconds": "how long it is measured",
    "processes": "processes on one node",
    "file_size": "bytes that one process reads or writes",
    "bytes_per_node": "bytes of the checkpoint on one node",
    "workload": "name of the workload",
    "model": "model that the service answers for",
    "input": "mean tokens of a prompt",
    "output": "mean tokens of an answer",
    "rate": "requests per second",
    "concurrency": "requests in flight at most",
    "requests": "requests in all",
}
#: Values that only the machine knows → what they are.
RUN_TIME: Final = {
    "out": "directory of the results of this run",
    "scripts": "directory of the scripts",
    "store": "path of the store on this machine",
    "endpoint": "address of the service",
    "device": "RDMA device of one rail",
    "rail": "number of the rail, from 0",
    "port": "TCP port of one rail",
}
#: Hardware that a script looks for before it runs a test.
HARDWARE: Final = ("gpu", "nvidia-gpu", "amd-gpu", "nvswitch", "rdma")

_NAME: Final = re.compile(r"\{([a-z_]+)\}")


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=False)


class Control(_Record):
    """A negative control: a test with a feature switched off, whose number must change.

    Args:
        of: name of the test whose number must change.
        at_most_share: the number must fall to this share of the other one, or below.
        operations: collective operations that use the feature; all when empty.
        needs: what the pool must have for the feature to exist: `nvls` (NVSwitch with Hopper or later) or `rdma`.
    """

    of: str
    at_most_share: float = Field(gt=0, lt=1)
    operations: tuple[str, ...] = ()
    needs: Literal["", "nvls", "rdma"] = ""


Word = str | tuple[str, ...]


def _words(value: Any) -> Any:
    """Arguments as text and optional groups as tuples of text."""
    if not isinstance(value, list):
        return value
    return tuple(tuple(map(str, word)) if isinstance(word, list) else str(word) for word in value)


class AcceptanceTest(_Record):
    """One kind of test.

    Args:
        argv: the command; a tuple within it is left out when one of its values is not declared.
        files: files in `{out}` that the tool writes and the reader reads; its standard output when empty.
        during: a command that is repeated every minute while the test runs; its output is read, too.
        reader: kind of the reader of its output.
        scopes: scopes of the claims that it serves; any when empty.
        always: run for every pool that has the hardware, because readings need it to say what they were taken on.
        without_gpus: only for pools without GPUs.
        dcgm_level: only when this level is asked for (level 1 always comes first).
        log_export: only when the file declares where logs go.
        launch: how its processes start: `one` per node (or client), `mpi` and `ranks` one per GPU.
        per_rail: repeated for every RDMA device.
        writes_to: `store` when it needs a path on the store of the claim.
        follows: the test before it whose duration it covers.
        default_seconds: for `{seconds}` where no claim asks for a duration; 0 when it has none.
        minutes: estimate of the rest, or of all of it.
    """

    name: str
    suite: str
    title: str
    argv: Annotated[tuple[Word, ...], BeforeValidator(_words)]
    environment: dict[str, str] = Field(default_factory=dict)
    files: tuple[str, ...] = ()
    during: tuple[str, ...] = ()
    reader: str
    runs: Runs
    scopes: tuple[ScopeName, ...] = ()
    stage: int = Field(ge=1)
    blocking: bool = False
    always: bool = False
    without_gpus: bool = False
    dcgm_level: int | None = None
    log_export: bool = False
    sustained: bool = False
    engine: Literal["", "kubernetes", "slurm", "local"] = ""
    needs: tuple[Literal["gpu", "nvidia-gpu", "amd-gpu", "nvswitch", "rdma"], ...] = ()
    gpus: bool = False
    rights: Literal["user", "admin", "root"] = "user"
    exclusive: bool = False
    image: Literal["production", "tools"] = "tools"
    launch: Literal["one", "mpi", "ranks"] = "one"
    per_rail: bool = False
    writes_to: Literal["", "store"] = ""
    follows: str = ""
    control: Control | None = None
    default_seconds: float = 0.0
    minutes: float = Field(gt=0)
    timing: str
    proves: tuple[str, ...] = ()
    shows: str
    leaves_open: str
    source: str

    @model_validator(mode="after")
    def _known_names(self) -> AcceptanceTest:
        if self.suite not in SUITES:
            raise ValueError(f"unknown suite '{self.suite}'; known are {', '.join(SUITES)}")
        unknown = [n for n in (*self.placeholders, *_NAME.findall(self.title)) if n not in PLAN_TIME | RUN_TIME]
        if unknown:
            raise ValueError(f"unknown placeholder {{{unknown[0]}}}")
        strange = [m for m in self.proves if m not in METRICS]
        if strange:
            raise ValueError(f"'{strange[0]}' is no metric")
        return self

    @property
    def placeholders(self) -> tuple[str, ...]:
        """Names of the values in the command, in order, each once."""
        words = [w for word in self.argv for w in ((word,) if isinstance(word, str) else word)]
        return tuple(dict.fromkeys(n for word in (*words, *self.during) for n in _NAME.findall(word)))

    @property
    def tool(self) -> str:
        """The program that must be there, "" when the plan chooses it."""
        first = self.argv[0]
        return first if isinstance(first, str) and not _NAME.search(first) else ""


def split_template(word: str) -> tuple[tuple[str, str], ...]:
    """A template as ("text", t) and ("name", n) parts in order; empty texts are left out."""
    parts = _NAME.split(word)
    kinds = ("text", "name")
    return tuple((kinds[i % 2], part) for i, part in enumerate(parts) if part)


def parse_tests(text: str, file: str) -> tuple[AcceptanceTest, ...]:
    """The tests of a data file in its order.

    Raises:
        InvalidInput: with every problem and its place.
    """
    entries, problems = read_mapping(text, file, "tests")
    tests = []
    for entry in entries:
        try:
            tests.append(AcceptanceTest.model_validate({"name": entry.name, **entry.fields}))
        except ValidationError as error:
            for wrong in error.errors(include_url=False):
                where = tuple(p for p in wrong["loc"] if isinstance(p, str | int))
                path = ".".join(("tests", entry.name, *map(str, where)))
                problems.append(Problem(entry.place_of(where), path, str(wrong["msg"]).removeprefix("Value error, ")))
    names = {t.name for t in tests}
    for test in tests:
        for other in filter(None, (test.follows, test.control.of if test.control else "")):
            if other not in names:
                problems.append(Problem(Place(file), f"tests.{test.name}", f"there is no test '{other}'"))
    if problems:
        raise InvalidInput(*problems)
    return tuple(tests)
