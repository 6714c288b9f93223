"""`python -m crucible.lab` is `crucible lab run`."""

from crucible.lab.commands import run_command

run_command(prog_name="crucible lab run")
