"""`make engines`: everything that `make test` runs on besides Python."""

import sys
import time

from engines import debian, frameworks


def main() -> int:
    problem = debian.install()
    if problem is not None:
        print(problem, file=sys.stderr)
        return 1
    for name in frameworks.FRAMEWORKS:
        began = time.monotonic()
        python = frameworks.python_of(name)
        print(f"{name}: {python} ({time.monotonic() - began:.0f} s)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
