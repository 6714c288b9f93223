"""Who there is in the demo: two teams with their projects, a program, somebody who only looks."""

from dataclasses import dataclass

from crucible.model.account import Role

TEAMS = ("vision", "language")
# What is counted under them says that it is a demo, wherever somebody meets it.
SEGMENTATION, DETECTION = "demo-segmentation", "demo-detection"
ASSISTANT, TRANSLATION = "demo-assistant", "demo-translation"
PROJECTS = {SEGMENTATION: "vision", DETECTION: "vision", ASSISTANT: "language", TRANSLATION: "language"}
MEMBERS = {
    "ada": ("vision", Role.MANAGER),
    "ben": ("vision", Role.MEMBER),
    "chloe": ("vision", Role.MEMBER),
    "dora": ("language", Role.MANAGER),
    "emil": ("language", Role.MEMBER),
    "farid": ("language", Role.MEMBER),
}


@dataclass(frozen=True)
class Service:
    name: str
    team: str


SERVICE = Service("nightly-eval", "language")
VIEWER = "finance"
