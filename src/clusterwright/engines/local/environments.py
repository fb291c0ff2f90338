"""The environment of a rank, as torchrun sets it, plus what only this engine knows.

Names and meaning from PyTorch's torchrun documentation, 'Environment Variables': RANK, LOCAL_RANK, GROUP_RANK,
ROLE_RANK, LOCAL_WORLD_SIZE, WORLD_SIZE, ROLE_WORLD_SIZE, GROUP_WORLD_SIZE, MASTER_ADDR, MASTER_PORT,
TORCHELASTIC_RESTART_COUNT, TORCHELASTIC_MAX_RESTARTS, TORCHELASTIC_RUN_ID. A task is what torchrun calls a worker
group. NODE_RANK is GROUP_RANK under the name that launch scripts use.

On a virtual node CUDA_VISIBLE_DEVICES is `VIRTUAL-0,…`: CUDA ignores everything from the first unknown id on, so a task
on virtual GPUs cannot touch a real one of this machine by accident.

Below both lies a small base of the shell that ran `cw up`: what a program needs to find its user, its language and its
clock. Nothing else of that shell reaches a job: a secret or a library path there is not for everybody who submits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from clusterwright.engines.local.layout import TAG, attempt_tag
from clusterwright.model.jobs import Attempt, Job, RankRun, TaskGroup

#: What POSIX (Base Definitions, chapter 8, 'Environment Variables') says every program may look at, and `LC_…`.
BASE: Final = ("HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER")


def base_environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """What ranks get of the environment that the agent itself was started with."""
    return {k: v for k, v in inherited.items() if k in BASE or k.startswith("LC_")}


def rank_environment(cluster: str, job: Job, attempt: Attempt, rank: RankRun, *, virtual: bool) -> dict[str, str]:
    """Variables of one rank, the job's own first, so that those of the engine cannot be overwritten."""
    task = attempt.tasks[rank.task]
    groups = {g.name: g for g in job.spec.groups}
    group = groups[task.group]
    role = [r for r in attempt.ranks if attempt.tasks[r.task].group == task.group]
    return {
        **job.spec.env,
        **group.env,
        **_torchrun(job, attempt, rank, group, role),
        "CUDA_VISIBLE_DEVICES": ",".join(task.devices),
        TAG: f"{attempt_tag(cluster, job.id, attempt.epoch)}{rank.rank}",
        "CLUSTERWRIGHT_JOB": job.id,
        "CLUSTERWRIGHT_JOB_NAME": job.spec.name,
        "CLUSTERWRIGHT_ATTEMPT": str(attempt.number),
        "CLUSTERWRIGHT_EPOCH": str(attempt.epoch),
        "CLUSTERWRIGHT_NODE": task.node,
        "CLUSTERWRIGHT_NODES": ",".join(attempt.nodes),
        "CLUSTERWRIGHT_GROUP": task.group,
        "CLUSTERWRIGHT_TASK": str(task.index),
        "CLUSTERWRIGHT_VIRTUAL": "1" if virtual else "0",
        "CLUSTERWRIGHT_CHECKPOINT_DIR": job.checkpoint_dir,
    }


def _torchrun(job: Job, attempt: Attempt, rank: RankRun, group: TaskGroup, role: list[RankRun]) -> dict[str, str]:
    return {
        "RANK": str(rank.rank),
        "WORLD_SIZE": str(len(attempt.ranks)),
        "LOCAL_RANK": str(rank.local_rank),
        "LOCAL_WORLD_SIZE": str(group.ranks_per_task),
        "GROUP_RANK": str(rank.task),
        "NODE_RANK": str(rank.task),
        "GROUP_WORLD_SIZE": str(len(attempt.tasks)),
        "ROLE_NAME": group.name,
        "ROLE_RANK": str(role.index(rank)),
        "ROLE_WORLD_SIZE": str(len(role)),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(attempt.master_port),
        "TORCHELASTIC_RESTART_COUNT": str(attempt.number - 1),
        "TORCHELASTIC_MAX_RESTARTS": str(job.spec.max_restarts),
        "TORCHELASTIC_RUN_ID": f"{job.id}.{attempt.epoch}",
    }
