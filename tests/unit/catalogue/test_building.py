"""An entry's fields are read by their annotations; what is wrong is said for every field at once, with its path."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest

from clusterwright.catalogue.building import Unreadable, build
from clusterwright.model.entries import Above, Bytes, Capability, Positive, Record, Share, Text, not_empty, within


@dataclass(frozen=True, kw_only=True)
class Drive(Record):
    size: Bytes
    use: Literal["boot", "data"] = "data"


@dataclass(frozen=True, kw_only=True)
class Box(Record):
    name: Text
    day: datetime.date
    gpus: Positive = 1
    lanes: Annotated[int, within(1, 16)] | None = None
    speed: Above = 1.0
    spare: Share = 0.0
    capability: Capability | None = None
    linked: bool = False
    drives: Annotated[tuple[Drive, ...], not_empty] = (Drive(size=None),)  # type: ignore[arg-type]  # not read
    span: tuple[Text, Text] | None = None
    rates: dict[Literal["in", "out"], Above] | None = None
    facts: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.linked and self.gpus == 1:
            raise ValueError("one GPU is linked to nothing")


WHOLE = {"name": "a", "day": "2026-11-30"}


def read(**fields: object) -> Box:
    return build(Box, WHOLE | fields)


def test_text_becomes_what_the_annotation_says() -> None:
    box = read(gpus="8", lanes=16, speed="1.5e3", capability="9.0", linked="true", rates={"in": "2"}, span=["1", "2"])
    assert (box.gpus, box.lanes, box.speed, box.capability, box.linked) == (8, 16, 1500.0, "9.0", True)
    assert (box.day, box.rates, box.span) == (datetime.date(2026, 11, 30), {"in": 2.0}, ("1", "2"))
    (drive,) = read(drives=[{"size": "7.68 TB"}]).drives
    assert (drive.size.to("GB"), drive.use) == (7680, "data")


def test_finished_values_stay() -> None:
    drive = build(Drive, {"size": "1 TB"})
    box = read(day=datetime.date(2026, 1, 2), drives=(drive,), linked=False, facts={"layers": [1, None]})
    assert box.drives[0] is drive
    assert (box.day.day, box.facts) == (2, {"layers": [1, None]})


@pytest.mark.parametrize(
    ("fields", "path", "message"),
    [
        ({"name": " "}, "name", "this is empty"),
        ({"name": 3}, "name", "this wants a text"),
        ({"day": "yesterday"}, "day", "'yesterday' is no date"),
        ({"gpus": "0"}, "gpus", "0 is less than 1"),
        ({"gpus": "1.5"}, "gpus", "'1.5' is not a whole number"),
        ({"gpus": "inf"}, "gpus", "'inf' is not a whole number"),
        ({"gpus": True}, "gpus", "this wants a number"),
        ({"lanes": "17"}, "lanes", "17 is more than 16"),
        ({"speed": "0"}, "speed", "0.0 is not above zero"),
        ({"speed": "nan"}, "speed", "nan is not above zero"),
        ({"speed": "fast"}, "speed", "'fast' is not a number"),
        ({"spare": "inf"}, "spare", "inf is"),
        ({"spare": "nan"}, "spare", "nan is"),
        ({"capability": "9"}, "capability", "'9' does not match"),
        ({"linked": "perhaps"}, "linked", "'perhaps' is neither true nor false"),
        ({"drives": []}, "drives", "at least one is wanted"),
        ({"drives": "none"}, "drives", "this wants a list"),
        ({"drives": [{"size": "1 TB"}, {"size": "1 TB", "use": "swap"}]}, "drives.1.use", "'swap' is none of boot"),
        ({"drives": [{"size": "8 Gb/s"}]}, "drives.0.size", "bit rate"),
        ({"drives": [{}]}, "drives.0.size", "'size' is missing"),
        ({"drives": ["1 TB"]}, "drives.0", "this wants a mapping of fields"),
        ({"span": ["1"]}, "span", "2 values are wanted, not 1"),
        ({"rates": {"up": "1"}}, "rates.up", "'up' is none of in, out"),
        ({"rates": "1"}, "rates", "this wants a mapping"),
        ({"colour": "red"}, "colour", "unknown key 'colour'"),
        ({"linked": "yes"}, "", "one GPU is linked to nothing"),
    ],
)
def test_what_is_wrong_is_said_with_its_path(fields: dict[str, object], path: str, message: str) -> None:
    with pytest.raises(Unreadable) as caught:
        read(**fields)
    (wrong,) = caught.value.wrong
    assert ".".join(map(str, wrong.path)) == path
    assert message in wrong.message


def test_everything_wrong_comes_at_once_and_an_unknown_key_names_the_known() -> None:
    with pytest.raises(Unreadable) as caught:
        build(Box, {"gpus": "none", "lanes": "99", "drives": [{"size": "1"}, {}], "colour": "red"})
    assert [".".join(map(str, wrong.path)) for wrong in caught.value.wrong] == [
        "name", "day", "gpus", "lanes", "drives.0.size", "drives.1.size", "colour",
    ]  # fmt: skip
    assert caught.value.wrong[-1].hint.startswith("keys are name, day, gpus, lanes")
