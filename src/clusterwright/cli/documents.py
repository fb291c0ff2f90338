"""`cw init` and `cw schema`: the first file, and the format of every file."""

from __future__ import annotations

import shlex
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from clusterwright.app.documents import describe_format, write_first_file
from clusterwright.cli.output import note, say, say_json


class Template(StrEnum):
    """Architectures to start from."""

    single_server = "single-server"
    two_workers = "two-workers"
    training = "training"


_NEXT = """\
wrote {path}

It describes {what}. Make it yours, then:
  cw review {path}    what is missing or contradictory, with file and line
  cw plan {path}      what fits where, how fast, at what cost
  cw prove {path}     all of it, rehearsed with real processes, as one report
Every key is explained in docs/file.md; `cw schema > schema.json` gives your editor completion."""

_WHAT = {
    Template.single_server: "one 8-GPU server that a lab shares, on the embedded engine",
    Template.two_workers: "two 8-GPU servers that serve one model and fine-tune another, on Kubernetes",
    Template.training: "1,024 GPUs that pretrain one model, on Slurm",
}


def init(
    directory: Annotated[Path, typer.Argument(help="Where to write cluster.yaml; made if absent.")] = Path("."),
    template: Annotated[Template, typer.Option(help="Which architecture to start from.")] = Template.two_workers,
    force: Annotated[bool, typer.Option("--force", help="Replace a cluster.yaml that exists.")] = False,
) -> None:
    """Write a first architecture file, cluster.yaml, from a template.

    Every template is a whole architecture that passes review: replace what is not yours. An existing file is
    never replaced unless --force is given.
    """
    path = write_first_file(directory, template.value, replace=force)
    note(_NEXT.format(path=shlex.quote(str(path)), what=_WHAT[template]))
    say(str(path))


def schema() -> None:
    """Print the JSON Schema (draft 2020-12) of an architecture file, for completion and checks in editors.

    With the YAML language server, put this line on top of a file:
    # yaml-language-server: $schema=./schema.json
    """
    say_json(describe_format())
