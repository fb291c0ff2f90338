"""Every kind has a fixture of its own that is recognised without help, and no reader takes another's."""

from pathlib import Path

import pytest

from clusterwright.model.observations import Outcome
from clusterwright.readers.reading import KINDS, read_output

FIXTURES = Path(__file__).parents[2] / "fixtures" / "readers"
FILES = sorted(p for p in FIXTURES.glob("*/*") if p.is_file())


def test_every_kind_has_a_fixture_and_every_fixture_a_kind():
    assert {p.parent.name for p in FILES} == set(KINDS)


@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_a_fixture_is_recognised_by_what_it_holds(path):
    """The name of the file does not help."""
    found = read_output([path.read_bytes()])
    assert found.kind == path.parent.name or (found.kind == "" and found.refusal is not None), found.kind


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"cluster-notes"}))
def test_every_kind_reads_one_of_its_fixtures(kind):
    outcomes = {read_output([p.read_bytes()], name=p.name).outcome for p in FIXTURES.glob(f"{kind}/*")}
    assert outcomes & {Outcome.READ, Outcome.PARTLY}
