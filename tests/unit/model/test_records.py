"""The chain: tampering, truncation, reordering and exchanged fields are seen; withheld fields are not a fault."""

from dataclasses import replace
from itertools import count

import pytest

from clusterwright.model.records import ORIGIN, find_faults, parse_record, record_values, redact, seal


def chain(length=3):
    numbers = count()
    records, previous = [], ORIGIN
    for sequence in range(1, length + 1):
        content = {"tool": "t", "nodes": ["gpu-1", f"gpu-{sequence}"], "value": sequence * 1.5, "none": None}
        record = seal(content, sequence=sequence, previous=previous, salts=lambda: f"{next(numbers):032x}")
        records.append(record)
        previous = record.id
    return records


def test_a_whole_chain_has_no_fault_and_its_records_come_back_from_their_values():
    records = chain()
    assert find_faults(records, head=records[-1].id) == []
    assert [parse_record(record_values(r)) for r in records] == records
    assert records[1].content["nodes"] == ["gpu-1", "gpu-2"]


def test_the_end_cut_off_is_seen_when_the_head_is_known():
    records = chain()
    assert "cut off" in find_faults(records[:-1], head=records[-1].id)[0]


def test_reordered_and_left_out_records_are_seen():
    one, two, three = chain()
    assert find_faults([one, three, two])
    assert find_faults([two, three])
    assert find_faults([one, three])


def test_an_altered_value_is_seen():
    one, two, three = chain()
    fields = tuple(replace(f, value=9.0) if f.place == "/.value" else f for f in two.fields)
    assert find_faults([one, replace(two, fields=fields), three]) == ["record 2: /.value was altered"]


def test_an_altered_commitment_breaks_the_id():
    values = record_values(chain()[0])
    values["fields"][0]["commitment"] = "sha256:" + "1" * 64
    with pytest.raises(ValueError, match="altered"):
        parse_record(values)


def test_withheld_fields_leave_the_id_and_the_rest_verifiable():
    records = chain()
    hidden = [redact(r, lambda place, value: "node-1" if value == "gpu-1" else None) for r in records]
    assert [r.id for r in hidden] == [r.id for r in records]
    assert find_faults(hidden, head=records[-1].id) == []
    assert hidden[1].withheld == ("/.nodes/#0",)
    assert hidden[1].content["nodes"] == ["node-1", "gpu-2"]
    assert parse_record(record_values(hidden[1])) == hidden[1]


@pytest.mark.parametrize("values", [None, [], {}, {"version": 2}, {"version": 1, "fields": [{}]}, {"version": 1}])
def test_what_is_no_record_is_refused(values):
    with pytest.raises(ValueError):
        parse_record(values)
