from pathlib import Path

from builders.corpus import read_file
from clusterwright.model.observations import Outcome
from clusterwright.readers.reading import rank_kinds

FIXTURES = Path(__file__).parents[2] / "fixtures" / "readers" / "cluster-notes"


def test_prose_about_a_cluster_is_refused_as_no_output_of_a_tool():
    transcript = read_file(FIXTURES / "note.md")
    assert transcript.kind == "cluster-notes"
    assert transcript.outcome is Outcome.REFUSED
    assert "nothing in it was measured" in str(transcript.refusal)


def test_outputs_of_tools_are_no_prose():
    outputs = sorted(path for path in FIXTURES.parent.glob("*/*") if path.parent.name != "cluster-notes")
    stolen = []
    for path in outputs:
        ranked = rank_kinds(path.read_bytes()[:65536].decode("utf-8", "replace"), path.name)
        if ranked and ranked[0][1] == "cluster-notes":
            stolen.append(f"{path.parent.name}/{path.name}")
    assert outputs
    assert stolen == []
