"""Readiness of security: identity, isolation, the supply of images, secrets, data after jobs, and who may break in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from clusterwright.model.findings import Severity
from clusterwright.review.requiring import PRACTICE, asked_as_a_whole, require, the_file
from clusterwright.review.rules import BUILD, Hit, Rule, RuleTable
from clusterwright.review.subjects import Subject

_TABLE = RuleTable("security")


@_TABLE.rule(
    "access-missing",
    Severity.ERROR,
    65,
    why="Who may do what on a cluster is decided by default settings, and found out by whoever tries.",
    satisfy="write access: identity, tenancy and isolation, ssh, images, secrets, egress, deletion, audit, vendors",
    example="access: {tenancy: single-team, identity: OIDC of the company, isolation: one namespace per workload, ...}",
    source=PRACTICE,
    stages=BUILD,
)
def access_missing(subject: Subject) -> Iterator[Hit]:
    """The file has no section access: identity, isolation, images, secrets and all else about security are open."""
    if asked_as_a_whole(subject, "access"):
        open_points = "identity, isolation, ssh, images, secrets, egress, deletion, audit, vendor access"
        yield Hit("access", f"the file says nothing about access: {open_points}")


require(
    _TABLE,
    "identity-missing",
    the_file,
    {"access.identity": "where identities come from"},
    catches="The source of identities is not stated.",
    why="Accounts that live only in the cluster outlive the people they belong to.",
    satisfy="name the identity source and how it maps to the cluster",
    example="access: {identity: OIDC of the company, groups map to namespaces}",
    weight=55,
)
require(
    _TABLE,
    "isolation-missing",
    the_file,
    {
        "access.tenancy": "whether one team, several teams or strangers share it",
        "access.isolation": "how users are kept apart",
    },
    catches="Tenancy or isolation is not stated.",
    why="Isolation that is enough between colleagues is not enough between customers.",
    satisfy="give access.tenancy and access.isolation",
    example="access: {tenancy: single-team, isolation: one namespace per workload with network policies}",
    weight=60,
)
require(
    _TABLE,
    "ssh-undecided",
    the_file,
    {"access.ssh": "who may log in to nodes"},
    catches="Whether anyone may log in to nodes is not stated.",
    why="A shell on a GPU node is a way around the scheduler, its accounting and its fences.",
    satisfy="say who may, and how it is recorded",
    example="access: {ssh: none to GPU nodes, break-glass only}",
    weight=35,
)
require(
    _TABLE,
    "image-supply-missing",
    the_file,
    {
        "access.registry": "which registry images come from",
        "access.signing": "how images are signed and verified",
        "access.scanning": "how images are scanned",
    },
    catches="Registry, signing or scanning of images is not stated.",
    why="Whoever can replace an image runs code on every GPU.",
    satisfy="give access.registry, access.signing and access.scanning",
    example="access: {registry: registry.example.com, signing: verified at admission, scanning: nightly}",
    weight=45,
)
require(
    _TABLE,
    "secrets-undecided",
    the_file,
    {"access.secrets": "where secrets live"},
    catches="Where secrets live is not stated.",
    why="Tokens for weights and registries end up in images and job scripts when they have no place of their own.",
    satisfy="name the vault; never write the secret itself",
    example="access: {secrets: 'vault at https://vault.example.com, injected at start'}",
    weight=50,
)
require(
    _TABLE,
    "egress-policy-missing",
    the_file,
    {"access.egress": "what may leave"},
    catches="What may leave the cluster is not stated.",
    why="Prompts, weights and data leave by the same way as telemetry.",
    satisfy="state the policy",
    example="access: {egress: allow list at the proxy}",
    weight=40,
)
require(
    _TABLE,
    "deletion-missing",
    the_file,
    {"access.deletion": "what is deleted after a job"},
    catches="Deletion of data after jobs is not stated.",
    why="Local disks and GPU memory of the last job are readable by the next one unless somebody wipes them.",
    satisfy="say what is wiped, and when",
    example="access: {deletion: local NVMe wiped when a job ends}",
    weight=40,
)
require(
    _TABLE,
    "audit-missing",
    the_file,
    {"access.audit_retention": "how long audit logs are kept", "access.break_glass": "how emergency access works"},
    catches="Audit retention or break-glass access is not stated.",
    why="Emergency access that leaves no trace is a back door.",
    satisfy="give access.audit_retention and access.break_glass",
    example="access: {audit_retention: 365 days, break_glass: 'two persons, recorded, reviewed within a day'}",
    weight=35,
)
require(
    _TABLE,
    "vendor-access-missing",
    the_file,
    {"access.vendor_access": "what the vendor and remote hands may do"},
    catches="Vendor access and remote hands are not stated.",
    why="Whoever swaps a server holds its disks.",
    satisfy="state the rule",
    example="access: {vendor_access: 'remote hands by ticket, never unattended'}",
    weight=35,
)


@_TABLE.rule(
    "privileged-pods-undecided",
    Severity.ERROR,
    45,
    why="A privileged pod or a host mount owns the node, its GPUs and its neighbours.",
    satisfy="say who may run privileged pods and what enforces it",
    example="access: {privileged_pods: 'only the operators namespaces, enforced at admission'}",
    source="Kubernetes documentation, Pod Security Standards",
    stages=BUILD,
)
def privileged_pods(subject: Subject) -> Iterator[Hit]:
    """On Kubernetes, who may run privileged pods is not stated."""
    access = subject.architecture.access
    if asked_as_a_whole(subject, "access"):
        return  # access-missing says so
    if "kubernetes" in subject.engines and (access is None or access.privileged_pods is None):
        yield Hit("access.privileged_pods", "the engine is kubernetes and nothing says who may run privileged pods")


RULES: Final[tuple[Rule, ...]] = tuple(_TABLE.rules)
