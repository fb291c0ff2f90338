"""What a command line says about its output: the columns of `-o '%A|%T'` and `-O jobid:|`, `-h`, `-j 12`.

Source: man sinfo, squeue, sacct, scontrol, Slurm 17.11 to 25.11 (options --format, --Format, --noheader, --parsable).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

TOOLS: Final = ("sinfo", "squeue", "sacct", "scontrol", "sacctmgr", "sshare", "sprio", "sdiag")
_WORD: Final = re.compile(r"""'([^']*)'|"([^"]*)"|(\S+)""")
_PROMPT: Final = re.compile(
    r"(?:\([\w.-]{1,64}\)\s{1,2})?"  # a conda environment
    r"(?:(?:[\w.+-]{1,64}[@:][^\n$#%>]{0,200}|\[[^\]\n]{1,200}\]\s?)[$#%>]|[\w.~/-]{0,64}\$|[~/][\w.~/-]{0,64}#)\s{1,4}"
    r"(?:sudo\s{1,4}(?:-u\s{1,4}\S{1,64}\s{1,4})?)?"
    r"(?P<command>(?:/[\w./-]{0,200}/)?(?:" + "|".join(TOOLS) + r")(?:\s[^\n]{0,2000})?)$"
)
#: A command without its prompt: nothing but the tool, or the tool with an option or a word that it takes.
_BARE: Final = re.compile(
    r"(?P<command>(?:" + "|".join(TOOLS) + r")(?:\s{1,4}(?:--?[A-Za-z]|show\s|list\s|release\s)[^\n]{0,2000})?)$"
)
#: The title of watch, with the host and the time at its right edge.
_WATCHED: Final = re.compile(
    r"Every [\d.]{1,8}s: (?P<command>(?:" + "|".join(TOOLS) + r")(?: \S{1,400}){0,60})(?: {2,}\S[^\n]{0,400})?$"
)
#: Columns that a tool prints where no option names them.
DEFAULTS: Final = {
    "sinfo": ("PARTITION", "AVAIL", "TIMELIMIT", "NODES", "STATE", "NODELIST"),
    "squeue": ("JOBID", "PARTITION", "NAME", "USER", "ST", "TIME", "NODES", "NODELIST(REASON)"),
    "sinfo -R": ("REASON", "USER", "TIMESTAMP", "NODELIST"),
}
_SINFO_LETTERS: Final = {
    "a": "AVAIL", "c": "CPUS", "C": "CPUS(A/I/O/T)", "D": "NODES", "e": "FREE_MEM", "E": "REASON",
    "f": "AVAIL_FEATURES", "F": "NODES(A/I/O/T)", "G": "GRES", "H": "TIMESTAMP", "i": "RESERVATION",
    "l": "TIMELIMIT", "m": "MEMORY", "n": "HOSTNAMES", "N": "NODELIST", "O": "CPU_LOAD", "P": "PARTITION",
    "R": "PARTITION", "t": "STATE", "T": "STATE", "u": "USER", "v": "VERSION",
}  # fmt: skip
_SQUEUE_LETTERS: Final = {
    "a": "ACCOUNT", "A": "JOBID", "b": "TRES_PER_NODE", "C": "CPUS", "D": "NODES", "e": "END_TIME", "E": "DEPENDENCY",
    "i": "JOBID", "j": "NAME", "l": "TIME_LIMIT", "L": "TIME_LEFT", "M": "TIME", "N": "NODELIST", "P": "PARTITION",
    "q": "QOS", "Q": "PRIORITY", "r": "REASON", "R": "NODELIST(REASON)", "S": "START_TIME", "t": "ST", "T": "STATE",
    "u": "USER", "v": "RESERVATION", "V": "SUBMIT_TIME", "m": "MIN_MEMORY", "F": "ARRAY_JOB_ID", "K": "ARRAY_TASK_ID",
}  # fmt: skip
_LONG_NAMES: Final = {
    "jobid": "JOBID", "account": "ACCOUNT", "state": "STATE", "statecompact": "ST", "numnodes": "NODES",
    "numcpus": "CPUS", "tres-alloc": "TRES_ALLOC", "tres": "TRES_ALLOC", "tres-per-node": "TRES_PER_NODE",
    "gres": "GRES", "gresused": "GRES_USED", "nodelist": "NODELIST", "nodehost": "HOSTNAMES", "reason": "REASON",
    "reasonlist": "NODELIST(REASON)", "partition": "PARTITION", "partitionname": "PARTITION", "username": "USER",
    "user": "USER", "name": "NAME", "timeused": "TIME", "timelimit": "TIME_LIMIT", "timeleft": "TIME_LEFT",
    "submittime": "SUBMIT_TIME", "starttime": "START_TIME", "endtime": "END_TIME", "statelong": "STATE",
    "qos": "QOS", "cpusstate": "CPUS(A/I/O/T)", "nodes": "NODES", "nodeaiot": "NODES(A/I/O/T)", "memory": "MEMORY",
    "freemem": "FREE_MEM", "cpusload": "CPU_LOAD", "dependency": "DEPENDENCY", "jobarrayid": "JOBID",
    "priority": "PRIORITY", "prioritylong": "PRIORITY",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Asked:
    """What a command line asked for.

    Args:
        tool: such as `squeue`; "" without a command line.
        columns: names in order, where the line gives them.
        header: whether a header is printed.
        job: the only job asked for, "" otherwise.
        node: the only node asked for, "" otherwise.
        show: what scontrol shows, such as `job`.
    """

    tool: str = ""
    columns: tuple[str, ...] = ()
    header: bool = True
    job: str = ""
    node: str = ""
    show: str = ""


def read_prompt(text: str) -> Asked | None:
    """The Slurm command that stands behind a shell prompt; None when the line is none."""
    text = text.strip()[:2500]
    match = _PROMPT.match(text) or _BARE.match(text) or _WATCHED.match(text)
    return read_command(match["command"]) if match is not None else None


def is_bare_command(text: str) -> bool:
    """Whether a line is a Slurm command that was copied without its prompt."""
    text = text.strip()[:2500]
    return _BARE.match(text) is not None or _WATCHED.match(text) is not None


def read_command(command: str) -> Asked:
    """What a command line asks for."""
    words = [a or b or c for a, b, c in _WORD.findall(command)]
    tool = words[0].rsplit("/", 1)[-1]
    options, rest = _options(words[1:])
    flags = "".join(key for key in options if len(key) == 1)
    bare = {"sinfo": "h", "squeue": "h", "sacct": "n", "sacctmgr": "n", "sshare": "h", "sprio": "h"}.get(tool, "")
    show = rest[1] if tool == "scontrol" and len(rest) > 1 and rest[0] == "show" else ""
    about = rest[2] if show and len(rest) > 2 else ""
    job = options.get("j") or options.get("jobs") or (about if show.startswith("job") else "")
    node = about if show.startswith("node") else ""
    return Asked(
        tool, _columns(tool, options), not (bare and bare in flags) and "noheader" not in options,
        job if job.replace("_", "").isdigit() else "", node if re.fullmatch(r"[\w.-]{1,200}", node) else "", show,
    )  # fmt: skip


def _options(words: list[str]) -> tuple[dict[str, str], list[str]]:
    """Options with their values, and the other words."""
    options: dict[str, str] = {}
    rest: list[str] = []
    place = 0
    while place < len(words):
        word = words[place]
        following = words[place + 1] if place + 1 < len(words) else ""
        place += 1
        if word.startswith("--"):
            key, equals, value = word[2:].partition("=")
            options[key.lower() if key != "Format" else key] = value if equals else ""
        elif word.startswith("-") and len(word) > 1:
            letter = word[1]
            takes = letter in "ojOSEupMwtdAs" and not following.startswith("-")
            if len(word) > 2 and letter in "ojOu":
                options[letter] = word[2:].lstrip("=")
            elif takes and len(word) == 2:
                options[letter] = following
                place += 1
            else:
                options.update(dict.fromkeys(word[1:], ""))
        else:
            rest.append(word)
    return options, rest


def _columns(tool: str, options: dict[str, str]) -> tuple[str, ...]:
    short = options.get("o") or options.get("format") or ""
    long = options.get("O") or options.get("Format") or ""
    if tool == "sacct" and short:
        return tuple(name.split("%")[0].strip() for name in short.split(",") if name.strip())
    if tool in ("sinfo", "squeue") and short:
        letters = _SINFO_LETTERS if tool == "sinfo" else _SQUEUE_LETTERS
        return tuple(letters.get(m[1], f"%{m[1]}") for m in re.finditer(r"%\.?\d{0,4}([A-Za-z])", short))
    if tool in ("sinfo", "squeue") and long:
        names = (name.split(":")[0].strip().lower() for name in long.split(","))
        return tuple(_LONG_NAMES.get(name, name.upper()) for name in names if name)
    if tool == "sinfo" and ("R" in options or "list-reasons" in options):
        return DEFAULTS["sinfo -R"]
    return ()
