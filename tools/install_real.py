"""Install the real programs that tests drive, where this machine allows it.

As root on Debian: Chromium. Elsewhere nothing is installed; the tests that need a missing program say which.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

PACKAGES = {"chromium": "chromium"}


def main() -> int:
    missing = [package for program, package in PACKAGES.items() if shutil.which(program) is None]
    if not missing:
        return 0
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        print(f"not installed (needs root and apt): {', '.join(missing)}; their tests will say so", file=sys.stderr)
        return 0
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    print(f"installing {', '.join(missing)}", file=sys.stderr)
    for command in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", *missing]):
        done = subprocess.run(["apt-get", *command], env=environment, stdout=subprocess.DEVNULL, check=False)
        if done.returncode:
            print(f"apt-get {command[0]} failed; the tests that need {', '.join(missing)} will say so", file=sys.stderr)
            return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
