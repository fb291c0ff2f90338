"""Access (security) and observability."""

from typing import Literal

from pydantic import Field

from clusterwright.model.section import Section
from clusterwright.model.units import Duration, Text, Texts


class Access(Section):
    """Who may do what, and how it is kept apart."""

    tenancy: Literal["single-team", "multi-team", "multi-tenant"] | None = Field(
        default=None, description="who shares the cluster"
    )
    identity: Text | None = Field(default=None, description="source of identities and groups")
    isolation: Text | None = Field(default=None, description="namespaces, projects, accounts, virtual machines")
    ssh: Text | None = Field(default=None, description="who may log in to nodes")
    registry: Text | None = Field(default=None, description="where images come from")
    signing: Text | None = Field(default=None, description="how images are signed and verified")
    scanning: Text | None = Field(default=None, description="how images are scanned")
    secrets: Text | None = Field(default=None, description="where secrets live; never the secret")
    egress: Text | None = Field(default=None, description="what jobs may reach outside")
    deletion: Text | None = Field(default=None, description="of data after jobs")
    audit_retention: Duration | None = Field(default=None, description="how long audit logs are kept")
    break_glass: Text | None = Field(default=None, description="emergency access and its control")
    vendor_access: Text | None = Field(default=None, description="vendor staff and remote hands")
    privileged_pods: Text | None = Field(
        default=None, description="who may run privileged, mount the host or share a GPU, and what enforces it"
    )


class Observability(Section):
    """Where each thing is seen, per team and workload."""

    jobs: Text | None = Field(default=None, description="run time, queue time, retries, exit reason, owner")
    gpus: Text | None = Field(default=None, description="utilisation, memory, power, temperature, ECC")
    fabric: Text | None = Field(default=None, description="errors, retransmits, congestion, benchmark history")
    storage: Text | None = Field(default=None, description="rates, checkpoint and restore time")
    cost: Text | None = Field(default=None, description="allocation and quota denials by team and workload")
    alerts: Text | None = Field(default=None, description="who is woken by what")
    retention: Duration | None = Field(default=None, description="how long measurements are kept")
    labels: Texts = Field(default=(), description="billing labels")
    benchmark_history: Text | None = Field(default=None, description="where acceptance results are kept")


class Duties(Section):
    """Who owns the daily work."""

    drivers: Text | None = Field(default=None, description="GPU drivers and firmware")
    images: Text | None = Field(default=None, description="container images")
    patching: Text | None = Field(default=None, description="security patches")
    upgrades: Text | None = Field(default=None, description="new releases of cluster software")
    scheduler_policy: Text | None = Field(default=None, description="queues, quotas, priorities")
    telemetry: Text | None = Field(default=None, description="metrics and logs")
    access: Text | None = Field(default=None, description="accounts and permissions")
    incidents: Text | None = Field(default=None, description="who leads when something breaks")
    on_call: Text | None = Field(default=None, description="who is woken")


class Owners(Section):
    """A person or team per readiness area; `default` stands in where one is absent."""

    default: Text | None = Field(default=None, description="answers for every area without an owner of its own")
    workload: Text | None = Field(default=None, description="model, lengths, load, targets")
    compute: Text | None = Field(default=None, description="nodes, GPUs, power, replacement")
    network: Text | None = Field(default=None, description="fabric and its roles")
    storage: Text | None = Field(default=None, description="stores and what they hold")
    scheduler: Text | None = Field(default=None, description="queues, quotas, retries")
    observability: Text | None = Field(default=None, description="what is seen, and by whom")
    security: Text | None = Field(default=None, description="identity, isolation, secrets, audit")
    acceptance: Text | None = Field(default=None, description="who says that it is delivered")
    economics: Text | None = Field(default=None, description="price, use, alternatives")
    duties: Duties | None = Field(default=None, description="daily work, by kind")

    def of(self, area: str) -> str | None:
        """Owner of a readiness area, or the default, or None."""
        return getattr(self, area, None) or self.default
