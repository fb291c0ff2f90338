"""What codes ask for, with sources side by side where they differ."""

import pytest

from clusterwright.health.xids import (
    AZURE,
    CATALOGUE,
    HARMLESS,
    Bucket,
    Severity,
    advise_xid,
    look_up_sxid,
    look_up_xid,
)

RESTART_APP = (
    "8 11 13 25 31 32 39 40 41 60 68 69 70 71 72 75 76 77 80 82 83 84 85 86 88 89 94 96 97 98 99 100 101 102 103 104 "
    "105 126 127 128 129 130 131 132 133 134 135 139"
)
IGNORE = "14 37 38 43 44 63 66 67 92 93 106 107 108 121 137 141 157 160 161"
RESET_GPU = "46 62 64 95 109 110 119 120 136 140 143 155 156 158"
WORKFLOW = "45 48 74 144 145 146 147 148 149 150 154 159"


@pytest.mark.parametrize(
    ("codes", "bucket"),
    [
        (RESTART_APP, Bucket.RESTART_APP),
        (IGNORE, Bucket.IGNORE),
        (RESET_GPU, Bucket.RESET_GPU),
        ("79", Bucket.RESTART_NODE),
        ("151", Bucket.RESTART_VM),
        (WORKFLOW, Bucket.WORKFLOW),
    ],
)
def test_every_code_is_in_the_bucket_of_the_catalogue(codes, bucket):
    assert {code: look_up_xid(code).bucket for code in map(int, codes.split())} == dict.fromkeys(
        map(int, codes.split()), bucket
    )


def test_an_unlisted_code_is_unknown_and_never_harmless():
    entry = look_up_xid(4711)
    assert entry.bucket is Bucket.UNKNOWN
    assert entry.bucket not in HARMLESS


def test_xid_63_shows_every_source_from_ignore_to_failing_the_node():
    entry = look_up_xid(63)
    assert entry.disputed
    assert [opinion.bucket for opinion in entry.opinions] == [Bucket.IGNORE, Bucket.RESET_GPU, Bucket.FAIL_NODE]
    assert entry.opinions[0].source == CATALOGUE
    assert entry.opinions[-1].source == AZURE


def test_xid_13_is_undisputed():
    assert not look_up_xid(13).disputed


def test_xid_45_follows_what_came_with_it():
    assert advise_xid(45).bucket is Bucket.RESTART_FABRIC_MANAGER
    after = advise_xid(45, others=[149, 45])
    assert after.bucket is Bucket.IGNORE
    assert "149" in after.why


def test_xid_48_alone_resets_and_with_a_remapping_drains_first():
    assert advise_xid(48).bucket is Bucket.RESET_GPU
    assert advise_xid(48, others=[63]).bucket is Bucket.DRAIN_AND_RESET
    assert advise_xid(48, others=[64]).bucket is Bucket.DRAIN_AND_RESET


@pytest.mark.parametrize(
    ("text", "bucket"),
    [
        ("GPU Reset Required", Bucket.RESET_GPU),
        ("Node Reboot Required", Bucket.RESTART_NODE),
        ("Drain and Reset", Bucket.DRAIN_AND_RESET),
        ("None", Bucket.IGNORE),
        ("Something New", Bucket.UNKNOWN),
    ],
)
def test_xid_154_is_what_its_text_says(text, bucket):
    assert advise_xid(154, recovery_action=text).bucket is bucket


def test_xid_154_decides_for_a_link_error_without_its_own_decoding():
    assert advise_xid(149).bucket is Bucket.WORKFLOW
    assert advise_xid(149, recovery_action="GPU Reset Required").bucket is Bucket.RESET_GPU


def test_sxids_have_the_severity_of_the_guide():
    assert look_up_sxid(20034).severity is Severity.FATAL
    assert look_up_sxid(24007).severity is Severity.FATAL
    assert look_up_sxid(12028).severity is Severity.NON_FATAL
    assert look_up_sxid(23017).severity is Severity.ALWAYS_FATAL
    assert look_up_sxid(23017).bucket is Bucket.RESTART_NODE
    assert look_up_sxid(10004).severity is Severity.NOTABLE


def test_a_halted_switch_controller_is_fatal_though_no_line_says_so():
    assert look_up_sxid(26006).severity is Severity.ALWAYS_FATAL


def test_the_line_decides_for_an_sxid_that_the_guide_does_not_list():
    assert look_up_sxid(28006).severity is Severity.UNKNOWN
    assert look_up_sxid(28006).bucket is Bucket.UNKNOWN
    assert look_up_sxid(28006, "non-fatal").severity is Severity.NON_FATAL
    assert look_up_sxid(29999, "fatal").severity is Severity.FATAL
