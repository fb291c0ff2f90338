"""Public operator files of cost exports, and notes about clusters that no tool wrote."""

from __future__ import annotations

import pytest

from builders.corpus import FOLDER, Expectation, check_corpus, found, values
from clusterwright.model.observations import Outcome, Transcript


def expect_parts_mismatch(transcript: Transcript) -> None:
    assert transcript.kind == "cost-exports"
    assert transcript.outcome is Outcome.READ
    (run,) = transcript.runs
    assert round(values(run, "parts_per_hour")[0], 4) == 0.5655
    (text,) = [notice.message for notice in run.notices if notice.code == "parts-do-not-add-up"]
    assert "0.5795 with the stated 16 GiB" in text
    assert "0.5260" in text
    assert "exceed it by 7.5%" in text


def expect_price_prose(transcript: Transcript) -> None:
    assert transcript.kind == "cost-exports"
    assert transcript.outcome is Outcome.REFUSED
    assert "neither an export nor metrics" in str(transcript.refusal)


def expect_prose(transcript: Transcript) -> None:
    assert transcript.kind == "cluster-notes"
    assert transcript.outcome is Outcome.REFUSED
    assert "nothing in it was measured" in str(transcript.refusal)


def expect_partitions(transcript: Transcript) -> None:
    # A table of sinfo, bars removed: it can honestly be read.
    assert transcript.kind.startswith("slurm")
    (run,) = transcript.runs
    assert [o.value for o in found(run, "gpus_per_node")] == [2.0, 2.0, 1.0, 5.0]


EXPECTATIONS: dict[str, Expectation] = {
    "cost-exports/002-opencost-node-parts-mismatch.json": expect_parts_mismatch,
    "cost-exports/003-kubecost-custom-price-gpu-node.txt": expect_price_prose,
    "cluster-notes/001-alps-cscs.md": expect_prose,
    "cluster-notes/003-imbue-h100.md": expect_prose,
    "cluster-notes/004-bloom-jeanzay.md": expect_prose,
    "cluster-notes/005-bede-power9.md": expect_prose,
    "cluster-notes/007-flinders-deepthought.md": expect_prose,
    "cluster-notes/010-circe-superpod.md": expect_prose,
    "cluster-notes/011-helios-cyfronet-storage.md": expect_prose,
    "cluster-notes/012-gre-hetero-lab.md": expect_partitions,
}


@pytest.mark.skipif(not FOLDER.is_dir(), reason="the public operator files are not beside the clone")
@pytest.mark.parametrize("kind", ["cost-exports", "cluster-notes"])
def test_every_public_file_of_other_kinds_is_read_as_a_person_would(kind):
    assert check_corpus(EXPECTATIONS, kind) > 0
