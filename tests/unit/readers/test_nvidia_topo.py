from __future__ import annotations

from pathlib import Path

import pytest

from builders.corpus import found, values
from clusterwright.model.observations import NoValue, Outcome, Run, Weight
from clusterwright.readers.reading import read_output

FOLDER = Path(__file__).parents[2] / "fixtures" / "readers" / "nvidia-smi-topo"
FOUR = (FOLDER / "four-gpus-ansi.txt").read_text()
P2P = (FOLDER / "p2p-read.txt").read_text()


def read(text: str) -> Run:
    transcript = read_output([text.encode()])
    assert transcript.kind == "nvidia-smi-topo"
    (run,) = transcript.runs
    return run


def codes(run: Run) -> dict[str, Weight]:
    return {notice.code: notice.weight for notice in run.notices}


def mesh(links: list[list[str]]) -> str:
    names = [f"GPU{n}" for n in range(len(links))]
    rows = ["\t".join([name, *row, "0-7", "0"]) for name, row in zip(names, links, strict=True)]
    return "\n".join(["\t" + "\t".join([*names, "CPU Affinity", "NUMA Affinity"]), *rows]) + "\n"


def test_every_link_is_read_with_the_names_of_the_nics():
    run = read(FOUR)
    assert run.complete
    assert values(run, "gpus_visible") == [4.0]
    assert values(run, "link", **{"from": "GPU0", "to": "GPU3"}) == ["NV12"]
    assert values(run, "nic", nic="NIC1") == ["mlx5_3"]
    assert values(run, "cpu_affinity", gpu="2") == ["32-63"]
    assert values(run, "numa_affinity") == ["0", "0", "1", "1"]
    assert values(run, "nearest_nics", gpu="3", link="PXB") == ["NIC1"]
    assert all(isinstance(v, NoValue) for v in values(run, "gpu_numa_id"))


def test_tabs_and_spaces_read_alike():
    before = [(o.name, o.value, o.subject) for o in read(FOUR).observations]
    spaced = read(FOUR.expandtabs(9))
    assert [(o.name, o.value, o.subject) for o in spaced.observations] == before


def test_one_link_less_than_the_siblings_have_is_an_error():
    run = read(FOUR)
    assert codes(run)["nvlink-unequal"] is Weight.ERROR
    assert "GPU2-GPU3 NV11" in next(n.message for n in run.notices if n.code == "nvlink-unequal")
    assert "nvlink-unequal" not in codes(read(FOUR.replace("NV11", "NV12")))


def test_unequal_pairs_with_equal_sums_are_a_design_not_a_fault():
    cube = [
        ["X", "NV1", "NV2", "SYS"],
        ["NV1", "X", "SYS", "NV2"],
        ["NV2", "SYS", "X", "NV1"],
        ["SYS", "NV2", "NV1", "X"],
    ]
    assert "nvlink-unequal" not in codes(read(mesh(cube)))


def test_a_gpu_without_nvlink_among_others_is_said():
    links = [["X", "NV4", "SYS"], ["NV4", "X", "SYS"], ["SYS", "SYS", "X"]]
    assert codes(read(mesh(links)))["nvlink-missing"] is Weight.WARNING


@pytest.mark.parametrize(("gpus", "said"), [(3, True), (4, False), (5, True), (8, False)])
def test_a_mesh_of_an_odd_size_is_probably_a_containers_view(gpus, said):
    links = [["X" if a == b else "NV18" for b in range(gpus)] for a in range(gpus)]
    assert ("container-view" in codes(read(mesh(links)))) is said


def test_links_that_differ_by_direction_are_an_error():
    run = read(mesh([["X", "NV4"], ["SYS", "X"]]))
    assert codes(run)["topology-asymmetric"] is Weight.ERROR


def test_a_short_row_is_rejected_and_a_missing_row_is_named():
    lines = FOUR.splitlines()
    run = read("\n".join([*lines[:2], "GPU1\tNV12\t X \tNV12", *lines[3:4], *lines[5:]]))
    assert run.rejected == 1
    assert {"row of GPU1", "row of GPU3"} <= set(run.missing)


def test_an_unknown_link_is_unreadable():
    value = values(read(mesh([["X", "ZZ9"], ["ZZ9", "X"]])), "link")[0]
    assert isinstance(value, NoValue)


def test_nics_without_their_legend_are_incomplete():
    assert "NIC legend: names of the devices" in read(FOUR[: FOUR.index("NIC Legend")]).missing


def test_peer_to_peer_states_are_no_links():
    run = read(P2P)
    assert values(run, "p2p") == ["OK", "OK"]
    assert not found(run, "link")
    assert "no-nvlink" not in codes(run)


def test_npus_are_another_vendors_devices():
    run = read(mesh([["X", "HCCS"], ["HCCS", "X"]]).replace("GPU", "NPU"))
    assert run.tool == "npu-smi info -t topo"
    assert values(run, "npus_visible") == [2.0]
    assert not found(run, "gpus_visible")
    assert not found(run, "gpu")


def test_more_devices_than_a_matrix_can_have_are_refused():
    names = " ".join(f"GPU{n}" for n in range(1100))
    assert read_output([f"{names} CPU Affinity\n".encode()]).outcome is Outcome.REFUSED


def test_the_row_of_a_gpu_that_is_cut_takes_no_nvlink_from_it():
    whole = mesh([["X" if i == j else "NV8" for j in range(4)] for i in range(4)])
    run = read(whole[: whole.rindex("NV8")])
    assert not run.complete
    assert "nvlink-missing" not in codes(run)
    assert "nvlink-unequal" not in codes(run)


def test_a_matrix_of_pcie_paths_says_nothing_of_nvlink():
    paths = mesh([["X" if i == j else "NODE" for j in range(4)] for i in range(4)])
    assert codes(read("$ nvidia-smi topo -mp\n" + paths))["paths-only"] is Weight.INFO
    assert "no-nvlink" not in codes(read("$ nvidia-smi topo -mp\n" + paths))
    assert "no-nvlink" in codes(read("$ nvidia-smi topo -m\n" + paths))


def test_many_rows_that_are_not_there_are_said_once():
    run = read(mesh([["X" if i == j else "NV8" for j in range(8)] for i in range(8)]).split("GPU2\tNV8")[0])
    assert run.missing[0] == "rows of 6 devices, GPU2 to GPU7"


def test_a_matrix_of_peers_below_a_complete_one_is_a_run_of_its_own():
    links = "\tGPU0\tGPU1\tCPU Affinity\nGPU0\tX\tPHB\t0-7\nGPU1\tPHB\tX\t0-7\n"
    transcript = read_output([(links + "\n\tGPU0\tGPU1\n GPU0\tX\tGNS\n GPU1\tGNS\tX\n").encode()])
    (paths, peers) = transcript.runs
    assert values(paths, "link") == ["PHB", "PHB"]
    assert values(peers, "p2p") == ["GNS", "GNS"]
    assert [n.message for n in peers.notices if n.code == "no-peer-access"] == [
        "1 of 1 pairs of GPUs have no peer access (GNS)"
    ]
