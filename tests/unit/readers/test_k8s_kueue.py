from pathlib import Path

from builders.corpus import read_file, values
from clusterwright.model.observations import NoValue, Outcome, Weight
from clusterwright.readers.reading import read_output

FIXTURES = Path(__file__).parents[2] / "fixtures" / "readers" / "k8s-kueue"
QUEUE = """
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {{name: {name}}}
spec:
  {extra}
  resourceGroups:
  - coveredResources: ["nvidia.com/gpu"]
    flavors:
    - name: f
      resources: [{{name: nvidia.com/gpu, {quota}}}]
"""


def queue(name="q", quota="nominalQuota: 8", extra="namespaceSelector: {}"):
    return QUEUE.format(name=name, quota=quota, extra=extra)


def read(*texts):
    return read_output(["---".join(texts).encode()], kind="k8s-kueue")


def messages(run, code):
    return [notice.message for notice in run.notices if notice.code == code]


def test_the_quota_of_a_cohort_is_added_to_that_of_its_queues():
    (run,) = read_file(FIXTURES / "cohort.yaml").runs
    gpu = {"cohort": "research", "resource": "nvidia.com/gpu"}
    assert values(run, "cohort_quota_total", **gpu) == [48.0]
    assert any(
        "24 in flavor h100 is added to the 24" in m and "repeats the sum" in m
        for m in messages(run, "cohort-quota-adds")
    )
    assert values(run, "cohort_quota_total", cohort="research", resource="cpu") == [160.5]


def test_a_cohort_alone_warns_of_twice_its_sum_and_gives_no_total():
    text = (
        queue()
        .replace("ClusterQueue", "Cohort")
        .replace("v1beta1", "v1alpha1")
        .replace("namespaceSelector: {}", "parent: root")
    )
    (run,) = read(text).runs
    assert "16 can be admitted" in messages(run, "cohort-quota-adds")[0]
    assert values(run, "cohort_quota_total") == []


def test_no_limit_is_absent_and_never_zero():
    (run,) = read_file(FIXTURES / "cohort.yaml").runs
    assert isinstance(values(run, "borrowing_limit", queue="team-b", resource="nvidia.com/gpu")[0], NoValue)
    assert values(run, "borrowing_limit", queue="team-a", resource="nvidia.com/gpu") == [8.0]


def test_a_zero_quota_on_a_covered_resource_blocks():
    (run,) = read_file(FIXTURES / "cohort.yaml").runs
    assert "rdma/hca" in messages(run, "zero-quota")[0]
    (run,) = read(queue(quota="nominalQuota: 0", extra="cohort: c")).runs
    assert messages(run, "zero-quota") == []
    assert "only what cohort c lends" in messages(run, "zero-quota-borrows")[0]


def test_borrowing_without_a_cohort_is_named():
    (run,) = read(queue(quota="nominalQuota: 8, borrowingLimit: 4")).runs
    assert messages(run, "no-cohort") == [
        "ClusterQueue q has no cohort: borrowing is impossible, though it sets a borrowingLimit"
    ]
    (run,) = read(queue(extra="flavorFungibility: {whenCanBorrow: Borrow}")).runs
    assert [n.weight for n in run.notices if n.code == "no-cohort"] == [Weight.INFO]


def test_a_limit_to_borrow_from_members_that_lend_nothing_is_worth_nothing():
    borrower = queue("a", "nominalQuota: 4, borrowingLimit: 4", "cohort: c")
    lender = queue("b", "nominalQuota: 9, lendingLimit: 0", "cohort: c")
    (run,) = read(borrower, lender).runs
    assert "no other member of cohort c here lends any" in messages(run, "nothing-to-borrow")[0]
    (run,) = read(borrower, lender.replace("lendingLimit: 0", "lendingLimit: 2")).runs
    assert messages(run, "nothing-to-borrow") == []


def test_numbers_for_no_limit_stay_out_of_sums():
    (run,) = read(queue("a", "nominalQuota: 9999", "cohort: c"), queue("b", "nominalQuota: 6", "cohort: c")).runs
    assert values(run, "flavor_quota", flavor="f") == [6.0]
    assert values(run, "quota", queue="a") == [9999.0]
    assert "no capacity" in messages(run, "quota-no-limit")[0]


def test_strict_fifo_and_references_are_said():
    (run,) = read_file(FIXTURES / "cohort.yaml").runs
    assert "blocks every smaller one" in messages(run, "strict-fifo")[0]
    assert values(run, "cluster_queue", local_queue="default") == ["team-a"]
    assert values(run, "topology_level", topology="racks") == ["example.com/rack", "kubernetes.io/hostname"]
    assert messages(run, "quota-comment") == ["beside nominalQuota: 16 stands: two nodes"]


def test_a_queue_without_gpus_admits_no_gpu_job():
    (run,) = read(queue().replace("nvidia.com/gpu", "cpu")).runs
    assert "can never be admitted in it" in messages(run, "no-gpu-quota")[0]


def test_flavors_of_shared_and_whole_gpus_are_the_same_hardware():
    flavor = (
        "apiVersion: kueue.x-k8s.io/v1beta1\nkind: ResourceFlavor\nmetadata: {{name: "
        "{0}}}\nspec: {{nodeLabels: {{nvidia.com/gpu.product: {1}}}}}\n"
    )
    (run,) = read(flavor.format("whole", "NVIDIA-L40S"), "\n" + flavor.format("part", "NVIDIA-L40S-SHARED")).runs
    assert "whole, part select the same hardware" in messages(run, "flavors-same-hardware")[0]
    assert "counts shares" in messages(run, "flavor-counts-shares")[0]


def test_usage_and_inactive_queues_of_a_dump_are_read():
    text = queue() + (
        "status:\n  pendingWorkloads: 3\n  admittedWorkloads: 1\n  flavorsUsage:\n  - name: f\n    resources:\n"
        '    - {name: nvidia.com/gpu, total: "6", borrowed: "2"}\n  conditions:\n'
        '  - {type: Active, status: "False", reason: FlavorNotFound, message: no f}\n'
    )
    (run,) = read(text).runs
    assert values(run, "usage") == [6.0]
    assert values(run, "borrowed") == [2.0]
    assert values(run, "pending_workloads") == [3.0]
    assert "FlavorNotFound" in messages(run, "queue-inactive")[0]


def test_a_helm_template_is_refused_with_what_to_do():
    transcript = read("apiVersion: kueue.x-k8s.io/v1beta1\nkind: ClusterQueue\nmetadata:\n  name: {{ .Values.name }}\n")
    assert transcript.outcome is Outcome.REFUSED
    assert "render it first" in str(transcript.refusal)


def test_an_unknown_version_and_the_first_layout_are_named():
    for text in (queue().replace("v1beta1", "v3"), queue().replace("resourceGroups", "resources")):
        transcript = read(text)
        assert transcript.outcome is Outcome.REFUSED
        assert "not known" in str(transcript.refusal)


def test_an_unreadable_quota_is_no_zero_quota():
    (run,) = read(queue(quota="nominalQuota: lots")).runs
    assert isinstance(values(run, "quota")[0], NoValue)
    assert messages(run, "zero-quota") == []
    assert values(run, "flavor_quota") == []


def test_commented_objects_are_not_read():
    text = queue() + "\n# ---\n# apiVersion: kueue.x-k8s.io/v1beta1\n# kind: ClusterQueue\n# metadata: {name: other}\n"
    (run,) = read(text).runs
    assert {dict(o.subject).get("queue") for o in run.observations if o.name == "quota"} == {"q"}
    assert "comments" in messages(run, "commented-objects")[0]


def test_the_table_of_queues_is_read_with_an_empty_cohort():
    (run,) = read_file(FIXTURES / "queues.txt").runs
    assert values(run, "cohort") == ["research"]
    assert values(run, "pending_workloads", queue="team-b") == [0.0]


def test_one_resource_in_two_groups_is_an_error():
    text = queue() + (
        '  - coveredResources: ["nvidia.com/gpu"]\n    flavors: [{name: g, resources: '
        "[{name: nvidia.com/gpu, nominalQuota: 1}]}]\n"
    )
    (run,) = read(text).runs
    assert "groups 1 and 2" in messages(run, "resource-in-two-groups")[0]
