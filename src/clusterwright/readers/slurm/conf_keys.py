"""Keys of slurm.conf that recognition and advice need, with what became of old ones.

Source: man slurm.conf of Slurm 17.11 to 25.11 and its RELEASE_NOTES.
"""

from __future__ import annotations

from typing import Final

#: Keys that only slurm.conf has, lower case.
OWN: Final = frozenset(
    {
        "accountingstorageenforce", "accountingstoragehost", "accountingstoragetres", "accountingstoragetype",
        "authtype", "batchstarttimeout", "clustername", "completewait", "controladdr", "controlmachine", "credtype",
        "cryptotype", "debugflags", "defmempercpu", "defmempernode", "enforcepartlimits", "epilog", "fastschedule",
        "firstjobid", "grestypes", "healthcheckinterval", "healthcheckprogram", "inactivelimit",
        "jobacctgatherfrequency", "jobacctgathertype", "jobcomptype", "jobsubmitplugins", "killwait",
        "launchparameters", "mailprog", "maxarraysize", "maxjobcount", "messagetimeout", "minjobage", "mpidefault",
        "nodename", "nodeset", "partitionname", "preemptmode", "preempttype", "prioritytype", "priorityweightage",
        "priorityweightfairshare", "privatedata", "proctracktype", "prolog", "prologflags", "propagateresourcelimits",
        "rebootprogram", "resumeprogram", "resumetimeout", "returntoservice", "schedulerparameters", "schedulertype",
        "selecttype", "selecttypeparameters", "slurmctlddebug", "slurmctldhost", "slurmctldlogfile",
        "slurmctldparameters", "slurmctldpidfile", "slurmctldport", "slurmctldtimeout", "slurmddebug", "slurmdlogfile",
        "slurmdparameters", "slurmdpidfile", "slurmdport", "slurmdspooldir", "slurmdtimeout", "slurmuser",
        "statesavelocation", "suspendprogram", "suspendtime", "switchtype", "taskplugin", "tmpfs", "topologyplugin",
        "treewidth", "unkillablesteptimeout", "waittime",
    }
)  # fmt: skip
#: Old key → what it is called now, or what happened to it.
OLD: Final = {
    "controlmachine": "SlurmctldHost since 18.08", "backupcontroller": "a second SlurmctldHost since 18.08",
    "controladdr": "SlurmctldHost=name(address) since 18.08", "cryptotype": "CredType since 19.05",
    "fastschedule": "removed in 20.02; see SlurmdParameters=config_overrides", "shared": "OverSubscribe since 16.05",
    "procs": "CPUs", "accountingstorageloc": "removed for accounting files in 20.11",
    "jobcheckpointdir": "removed in 20.02",
}  # fmt: skip
#: Keys whose value is a time limit.
DURATIONS: Final = frozenset({"maxtime", "defaulttime", "overtimelimit", "prioritydecayhalflife", "prioritymaxage"})
