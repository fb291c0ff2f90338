"""The architecture: one value for the whole file."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, Strict

from clusterwright.model.acceptance import Acceptance
from clusterwright.model.access import Access, Observability, Owners
from clusterwright.model.economics import Contract, Economics, Waiver
from clusterwright.model.networks import Fabric
from clusterwright.model.pools import Pool
from clusterwright.model.scheduling import Scheduling
from clusterwright.model.section import Section
from clusterwright.model.software import Software
from clusterwright.model.storages import Storage
from clusterwright.model.units import Power, Text
from clusterwright.model.workloads import Workload

API_VERSION = "clusterwright/v1alpha1"


class Cluster(Section):
    """Name and site. `cluster: prod-ams` is short for `cluster: {name: prod-ams}`."""

    name: Text
    site: Text | None = None
    delivery: Literal["self-managed", "managed", "provider-managed"] | None = None
    power: Power | None = Field(default=None, description="sustained power the site gives")
    cooling: Text | None = None


def _named(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


class Architecture(Section):
    """What the cluster must do, what it is made of, how it is shared and what it costs."""

    api_version: Literal["clusterwright/v1alpha1"] = Field(alias="apiVersion")
    cluster: Annotated[Cluster, BeforeValidator(_named, json_schema_input_type=Cluster | str)]
    owners: Owners = Owners()
    workloads: dict[str, Workload] = Field(default_factory=dict)
    pools: dict[str, Pool] = Field(default_factory=dict)
    fabric: Fabric | None = None
    storage: Storage | None = None
    software: Software | None = None
    scheduling: Scheduling | None = None
    access: Access | None = None
    observability: Observability | None = None
    acceptance: Acceptance | None = None
    economics: Economics | None = None
    contract: Contract | None = None
    waivers: Annotated[tuple[Waiver, ...], Strict(False)] = ()
