"""The architecture: one value for the whole file."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, Strict

from clusterwright.model.acceptance import Acceptance
from clusterwright.model.access import Access, Observability, Owners
from clusterwright.model.economics import Contract, Economics, Waiver
from clusterwright.model.magnitudes import raw_text
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

    name: Text = Field(description="name of the cluster; results and reports carry it")
    site: Text | None = Field(default=None, description="data centre or region")
    delivery: Literal["self-managed", "managed", "provider-managed"] | None = Field(
        default=None, description="who runs the nodes and the software on them"
    )
    power: Power | None = Field(default=None, description="sustained power the site gives")
    cooling: Text | None = Field(default=None, description="how heat leaves the room")


def _named(value: Any) -> Any:
    name = raw_text(value)
    return {"name": name} if isinstance(name, str) else value


class Architecture(Section):
    """What the cluster must do, what it is made of, how it is shared and what it costs."""

    api_version: Literal["clusterwright/v1alpha1"] = Field(alias="apiVersion", description="version of this format")
    cluster: Annotated[Cluster, BeforeValidator(_named, json_schema_input_type=Cluster | Text)] = Field(
        description="name and site; a plain name is short for {name: …}"
    )
    owners: Owners = Field(default_factory=Owners, description="who answers for what")
    workloads: dict[str, Workload] = Field(default_factory=dict, description="what must run, by name")
    pools: dict[str, Pool] = Field(default_factory=dict, description="nodes by name; nodes of one pool are alike")
    fabric: Fabric | None = Field(default=None, description="networks")
    storage: Storage | None = Field(default=None, description="where data lives")
    software: Software | None = Field(default=None, description="exact versions")
    scheduling: Scheduling | None = Field(default=None, description="engine, queues, quotas")
    access: Access | None = Field(default=None, description="who may do what")
    observability: Observability | None = Field(default=None, description="where each thing is seen")
    acceptance: Acceptance | None = Field(
        default=None, description="what must be measured before the cluster counts as delivered"
    )
    economics: Economics | None = Field(default=None, description="what a unit of work costs")
    contract: Contract | None = Field(default=None, description="what the provider promised")
    waivers: Annotated[tuple[Waiver, ...], Strict(False)] = Field(default=(), description="findings accepted knowingly")
