"""Why a job waits, in Slurm's words, and what kind of thing would end the wait.

Source: man squeue (JOB REASON CODES), `job_state_reason_string` in slurm_protocol_defs.c, 17.11 to 25.11.
"""

from __future__ import annotations

from typing import Final

from clusterwright.readers.memos import remembered

#: What a wait is for: `capacity` (resources are busy, down or reserved), `turn` (others go first), `limit` (a quota),
#: `held` (somebody must release it), `time`, `dependency`, `never` (it cannot start as it is), `failure` (a fault of
#: a node or of the system), `licence`, `nothing`.
_KINDS: Final = {
    "None": "nothing", "Resources": "capacity", "Priority": "turn", "Dependency": "dependency",
    "DependencyNeverSatisfied": "never", "BeginTime": "time", "Licenses": "licence", "JobHeldUser": "held",
    "JobHeldAdmin": "held", "ReqNodeNotAvail": "capacity", "PartitionDown": "capacity",
    "PartitionInactive": "capacity", "PartitionNodeLimit": "never", "PartitionTimeLimit": "never",
    "BadConstraints": "never", "AccountNotAllowed": "never", "InvalidAccount": "never", "InvalidQOS": "never",
    "QOSNotAllowed": "never", "Reservation": "time", "ReservationDeleted": "held", "JobArrayTaskLimit": "limit",
    "NodeDown": "failure", "SystemFailure": "failure", "JobLaunchFailure": "failure", "Prolog": "capacity",
    "Cleaning": "capacity", "FrontEndDown": "capacity", "BurstBufferResources": "capacity",
    "BurstBufferStageIn": "capacity", "BurstBufferOperation": "failure", "JobHoldMaxRequeue": "held",
    "MaxRequeueHold": "held", "DeadLine": "never", "SchedDefer": "turn", "MaxMemPerLimit": "never",
    "launch_failed_requeued_held": "failure", "job_requeued_in_held_state": "held", "requeued_in_held_state": "held",
    "MaxNodesPerAccount": "limit", "MaxJobsPerAccount": "limit", "NonZeroExitCode": "nothing", "TimeLimit": "nothing",
    "OutOfMemory": "nothing", "WaitingForScheduling": "turn", "InactiveLimit": "nothing",
}  # fmt: skip
_LIMITS: Final = ("QOS", "Assoc", "MaxCpuPer", "MaxTRES", "MaxGRES", "GrpTRES", "MaxSubmit", "MaxWall", "User", "Max")
_PHRASES: Final = (
    ("nodes required for job are down", "capacity"),
    ("reqnodenotavail", "capacity"),
    ("launch failed requeued held", "failure"),
    ("job requeued in held state", "held"),
    ("user/account", "limit"),
)


@remembered
def classify_reason(reason: str) -> str | None:
    """What kind of thing the job waits for; None for a reason that this table does not know."""
    word = reason.strip().strip("()")
    if word in _KINDS:
        return _KINDS[word]
    lower = word.lower()
    for phrase, kind in _PHRASES:
        if lower.startswith(phrase):
            return kind
    if word.startswith(_LIMITS) and word[:40].isascii() and " " not in word:
        return "limit"
    return None
