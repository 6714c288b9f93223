"""The node program: starts what the server says this machine should run, keeps what it prints until the server has it,
and leaves nothing alive that the server did not ask for.

Standard library only, Python 3.8 or newer; it imports nothing else of Crucible, because it travels alone as
`crucible-agent.pyz`. Heavy modules (dataclasses, typing, argparse, logging) are avoided: the start of every job on
this machine waits for these imports."""

VERSION = "0.1.0"
