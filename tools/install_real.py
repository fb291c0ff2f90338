"""Install the real programs that tests drive, where this machine allows it.

As root on Debian: Chromium, fio, ShellCheck, and Slurm with munge; their services are not started, tests start what
they need. Elsewhere nothing is installed; the tests that need a missing program say which.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

#: program → Debian package
PACKAGES = {
    "chromium": "chromium",
    "fio": "fio",
    "munged": "munge",
    "shellcheck": "shellcheck",
    "sbatch": "slurm-client",
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
}
#: Where services lie, which is not on the path of every user.
PATH = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin"))


def main() -> int:
    missing = [package for program, package in PACKAGES.items() if shutil.which(program, path=PATH) is None]
    if not missing:
        return 0
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        print(f"not installed (needs root and apt): {', '.join(missing)}; their tests will say so", file=sys.stderr)
        return 0
    # In run level 1 invoke-rc.d starts no service.
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    print(f"installing {', '.join(missing)}", file=sys.stderr)
    for command in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", *missing]):
        done = subprocess.run(["apt-get", *command], env=environment, stdout=subprocess.DEVNULL, check=False)
        if done.returncode:
            print(f"apt-get {command[0]} failed; the tests that need {', '.join(missing)} will say so", file=sys.stderr)
            return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
