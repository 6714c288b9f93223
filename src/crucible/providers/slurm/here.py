"""This computer as one that runs commands for us: where the server stands on a login node. A command gets a few
variables of ours and no more: what Slurm is given travels with the job to other computers."""

import asyncio
import os
import subprocess
from collections.abc import Mapping, Sequence

from crucible.model.errors import Unreachable
from crucible.ports.remote import Done

PASSED = ("HOME", "LANG", "LOGNAME", "PATH", "SLURM_CONF", "TZ", "USER")


class HereRemote:
    name = "this computer"

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = {name: environ[name] for name in PASSED if name in environ}
        self._environ.setdefault("PATH", os.defpath)

    async def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout_s: float = 30.0) -> Done:
        return await asyncio.to_thread(self._run, argv, stdin, timeout_s)

    async def close(self) -> None:
        pass

    def _run(self, argv: Sequence[str], stdin: bytes, timeout_s: float) -> Done:
        try:
            done = subprocess.run(argv, input=stdin, capture_output=True, env=self._environ, cwd="/", timeout=timeout_s)
        except subprocess.TimeoutExpired as error:
            raise Unreachable(f"{argv[0]} gave no answer within {timeout_s:g} s") from error
        except OSError as error:
            return Done(127, b"", f"{argv[0]}: {error.strerror}".encode())
        return Done(done.returncode, done.stdout, done.stderr)
