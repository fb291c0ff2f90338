"""Access (security) and observability."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from clusterwright.model.section import Section
from clusterwright.model.units import Duration, Text, Texts


class Access(Section):
    """Who may do what, and how it is kept apart."""

    tenancy: Literal["single-team", "multi-team", "multi-tenant"] | None = None
    identity: Text | None = None
    isolation: Text | None = Field(default=None, description="namespaces, projects, accounts, virtual machines")
    ssh: Text | None = None
    registry: Text | None = None
    signing: Text | None = None
    scanning: Text | None = None
    secrets: Text | None = Field(default=None, description="where secrets live; never the secret")
    egress: Text | None = None
    deletion: Text | None = Field(default=None, description="of data after jobs")
    audit_retention: Duration | None = None
    break_glass: Text | None = None
    vendor_access: Text | None = None
    privileged_pods: Text | None = None


class Observability(Section):
    """Where each thing is seen, per team and workload."""

    jobs: Text | None = None
    gpus: Text | None = None
    fabric: Text | None = None
    storage: Text | None = None
    cost: Text | None = None
    alerts: Text | None = None
    retention: Duration | None = None
    labels: Texts = Field(default=(), description="billing labels")
    benchmark_history: Text | None = None


class Duties(Section):
    """Who owns the daily work."""

    drivers: Text | None = None
    images: Text | None = None
    patching: Text | None = None
    upgrades: Text | None = None
    scheduler_policy: Text | None = None
    telemetry: Text | None = None
    access: Text | None = None
    incidents: Text | None = None
    on_call: Text | None = None


class Owners(Section):
    """A person or team per readiness area; `default` stands in where one is absent."""

    default: Text | None = None
    workload: Text | None = None
    compute: Text | None = None
    network: Text | None = None
    storage: Text | None = None
    scheduler: Text | None = None
    observability: Text | None = None
    security: Text | None = None
    acceptance: Text | None = None
    economics: Text | None = None
    duties: Duties | None = None

    def of(self, area: str) -> str | None:
        """Owner of a readiness area, or the default, or None."""
        return getattr(self, area, None) or self.default
