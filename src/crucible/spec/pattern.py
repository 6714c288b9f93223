"""Regular expressions that users give: short, and known to compile before a job that costs money starts."""

import re
import warnings
from dataclasses import dataclass

from crucible.spec.kinds import Bad, ScalarKind, Schema
from crucible.spec.yaml_nodes import Scalar

MAX_LENGTH = 200  # a node tries it on every log line


@dataclass(frozen=True, slots=True)
class Pattern(ScalarKind):
    @property
    def words(self) -> str:
        return "a regular expression with a group"

    def parse(self, scalar: Scalar) -> str:
        text = scalar.text
        if len(text) > MAX_LENGTH:
            raise Bad(f"is longer than {MAX_LENGTH} characters", "match only what stands around the step")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of constructs that Python will read differently some day
                compiled = re.compile(text)
        except (re.error, OverflowError, RecursionError) as error:
            raise Bad(f"is not a regular expression: {error}", "escape special characters with a backslash") from None
        if compiled.groups == 0:
            raise Bad("has no group that finds the step", "put the number in a group: step (?P<step>[0-9]+)")
        return text

    def schema(self) -> Schema:
        return {"type": "string", "minLength": 1, "maxLength": MAX_LENGTH}
