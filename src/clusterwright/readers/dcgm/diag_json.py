"""`dcgmi diag -j`: the JSON of DCGM 2 and 3 (root `DCGM GPU Diagnostic`) and of DCGM 4 (root `DCGM Diagnostic`).

Source: dcgmi/Diag.cpp and nvvs/include/NvvsJsonStrings.h of DCGM 2.2 to 4.5. In 2 and 3 a result names its GPUs
(`gpu_ids`, a list in a string, or `gpu_id`), the checks of software have none; in 4 it names an entity, and each test
has a summary. `--iterations` nests one document per iteration.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from clusterwright.model.observations import Labels, Run, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.dcgm.results import Results
from clusterwright.readers.documents import load_json
from clusterwright.readers.refusing import Refused, shorten

ROOTS: Final = {"DCGM GPU Diagnostic": "DCGM 2 or 3", "DCGM Diagnostic": "DCGM 4"}
#: In DCGM 4 one run keeps this many messages of kind info; later tests lack theirs.
#: Source: DCGM_DIAG_RESPONSE_INFO_MAX as reported for DCGM 4.
_MOST_INFO: Final = 16


def read_json(text: str, first_line: int = 1, *, lack: str = "") -> list[Run]:
    """Every run in a document.

    Args:
        lack: the part of it that is not there, "" for a whole one; its runs are incomplete then.

    Raises:
        Refused: for another layout, by the name of its root; for a diagnosis that did not run or holds no test.
    """
    document = load_json(text, first_line=first_line)
    runs: list[Run] = []
    errors: list[str] = []
    for number, root in enumerate(_documents(document.value), 1):
        run = RunBuilder("dcgmi diag")
        for duplicate in document.duplicates:
            run.notice("duplicate-key", f"the key '{shorten(duplicate.key, 40)}' stands twice in one object")
        if lack:
            run.missing(lack)
        if root is not document.value:
            run.condition("iteration", float(number))
        read = _read_one(root, run)
        if isinstance(read, str):
            errors.append(read)
        else:
            runs.append(read)
    if not runs:
        raise Refused(errors[0] if errors else "the diagnosis holds no test: nothing was measured", first_line)
    return runs


def _documents(value: Any) -> Iterator[dict[str, Any]]:
    if not isinstance(value, dict):
        raise Refused("not a diagnosis: the JSON is no object")
    iterations = value.get("iterations")
    if isinstance(iterations, list):
        for item in iterations:
            if isinstance(item, dict):
                yield item
    else:
        yield value


def _read_one(document: dict[str, Any], run: RunBuilder) -> Run | str:
    """The run, or why the diagnosis did not give one."""
    name = next((root for root in ROOTS if root in document), None)
    if name is None:
        known = " or ".join(f"'{root}'" for root in ROOTS)
        raise Refused(f"a diagnosis has the root key {known}", found=", ".join(map(str, list(document)[:5])))
    root = document[name]
    if not isinstance(root, dict):
        raise Refused(f"'{name}' is no object")
    _metadata(document, root, run)
    run.condition("layout", ROOTS[name])
    if error := _text(root.get("runtime_error")):
        run.notice("runtime-error", f"the diagnosis ended early: {shorten(error)}", Weight.ERROR)
    results = Results(run)
    for category in _dicts(root.get("test_categories")):
        for test in _dicts(category.get("tests")):
            _read_test(test, _text(category.get("category")), results)
    if not results.any:
        return (
            f"the diagnosis did not run: {shorten(error)}"
            if error
            else ("the diagnosis holds no test: nothing was measured")
        )
    if error:
        run.missing("tests after the error that ended the diagnosis")
    if name == "DCGM Diagnostic":
        said = sum(o.name == "test_message" and ("said", "info") in o.subject for o in run.observations)
        if said >= _MOST_INFO:
            run.notice(
                "info-capped",
                f"DCGM 4 keeps {_MOST_INFO} info messages: tests without one did not lose a result",
                Weight.INFO,
            )
    return results.finish(_gpus_listed(document, root))


def _read_test(test: dict[str, Any], category: str, results: Results) -> None:
    name = _text(test.get("name")) or "a test without a name"
    group = (("category", category),) if category else ()
    items = _dicts(test.get("results"))
    summary = test.get("test_summary")
    for item in items:
        for subject, where in _entities(item):
            full = (*subject, *group)
            results.add(name, _text(item.get("status")) or "(no status)", full, 0, where)
            _messages(item, name, full, results)
    if isinstance(summary, dict):
        if not items:
            results.add(name, _text(summary.get("status")) or "(no status)", group, 0)
        _messages(summary, name, group, results)
    elif not items:
        results.add(name, "not run", group, 0)


def _entities(item: dict[str, Any]) -> list[tuple[Labels, str]]:
    """Whom a result is about, each as (subject, words)."""
    if "entity_id" in item:
        group = _text(item.get("entity_group")) or f"group {_text(item.get('entity_group_id'))}"
        one = _text(item.get("entity_id"))
        return [(((group.lower().replace(" ", "_"), one),), f"{group} {one}")]
    for key, kind in (("gpu_ids", "gpu"), ("gpu_id", "gpu"), ("cpu_id", "cpu")):
        if key in item:
            value = item[key]
            listed = value if isinstance(value, list) else str(value).split(",")
            ids = [str(one).strip() for one in listed if str(one).strip()]
            if ids:
                return [(((kind, one),), f"{kind.upper()} {one}") for one in ids[:1024]]
    return [((), "")]


def _messages(item: dict[str, Any], test: str, subject: Labels, results: Results) -> None:
    for warning in _listed(item.get("warnings")):
        if isinstance(warning, dict):
            code = _text(warning.get("error_id"))
            full = (*subject, ("error_id", code)) if code else subject
            results.say(test, _text(warning.get("warning")), "warning", full, 0)
        else:
            results.say(test, _text(warning), "warning", subject, 0)
    for info in _listed(item.get("info")):
        results.say(test, _text(info), "info", subject, 0)


def _metadata(document: dict[str, Any], root: dict[str, Any], run: RunBuilder) -> None:
    metadata = document.get("metadata")
    places = (metadata if isinstance(metadata, dict) else {}, root, document)
    for place in places:
        run.version = run.version or _text(place.get("version"))
        if driver := _text(place.get("Driver Version Detected")):
            run.condition("driver", driver)
        for key in ("EUD Test Version", "EUD Package Version", "CPU EUD Test Version"):
            if found := _text(place.get(key)):
                run.condition(key.lower().replace(" ", "_"), found)
    devices = _devices(document, root)
    if devices:
        run.condition("device_ids", ",".join(devices))


def _devices(document: dict[str, Any], root: dict[str, Any]) -> list[str]:
    listed = root.get("GPU Device IDs")
    if isinstance(listed, list):
        return [_text(one) for one in listed]
    return [
        _text(entity.get("device_id"))
        for group in _dicts(document.get("entity_groups"))
        if _text(group.get("entity_group")).upper() == "GPU"
        for entity in _dicts(group.get("entities"))
    ]


def _gpus_listed(document: dict[str, Any], root: dict[str, Any]) -> int:
    return len(_devices(document, root))


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _listed(value: Any) -> list[Any]:
    if value is None or value == "":
        return []
    return value if isinstance(value, list) else [value]


def _text(value: Any) -> str:
    return str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else ""
