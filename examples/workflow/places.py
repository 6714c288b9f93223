"""Where a step finds what it is given, and where it leaves what is kept."""

import os


def given(name: str) -> str:
    """The file or folder that the workflow calls `name`: below $CRUCIBLE_INPUTS, where $INPUT_NAME says."""
    return os.path.join(os.environ["CRUCIBLE_INPUTS"], os.environ[f"INPUT_{name.upper()}"])


def left(name: str) -> str:
    """A file of what this step leaves to others."""
    return os.path.join(os.environ["CRUCIBLE_OUTPUT"], name)
