"""What docs/aws.md says of rights, settings and errors is what the code needs, reads and knows."""

import json
import re
from pathlib import Path

from crucible.providers.aws.errors import MEANINGS
from crucible.providers.aws.quotas import QUOTAS

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/aws.md").read_text(encoding="utf-8")
SOURCES = sorted((ROOT / "src/crucible/providers/aws").glob("*.py"))
CODE = "\n".join(path.read_text(encoding="utf-8") for path in SOURCES)
POLICY = json.loads(PAGE.partition("```json\n")[2].partition("```")[0])

# Of which service a call is, where it is not EC2's.
SERVICES = {
    "get_products": "pricing",
    "get_service_quota": "servicequotas",
    "get_aws_default_service_quota": "servicequotas",
    "get_parameter": "ssm",
}
# Nobody needs a right to ask who they are; tags and the role of the spot market belong to a purchase.
FREE, IMPLIED = {"get_caller_identity"}, {"ec2:CreateTags", "iam:CreateServiceLinkedRole"}
OTHERS = {"get_paginator", "get_waiter", "get_running_loop", "run_in_executor"}  # no calls of Amazon's
VERBS = "describe|get|run|terminate|create|delete|release|authorize"


def called() -> set[str]:
    direct = re.findall(rf"\.((?:{VERBS})_[a-z_]+)\(", CODE)
    paged = re.findall(r'get_paginator\("([a-z_]+)"\)', CODE)
    return {*direct, *paged} - FREE - OTHERS


def action(name: str) -> str:
    words = "".join(word.capitalize() for word in name.split("_")).replace("Aws", "AWS")
    return f"{SERVICES.get(name, 'ec2')}:{words}"


def test_the_policy_allows_what_is_called_and_nothing_more() -> None:
    allowed = [statement["Action"] for statement in POLICY["Statement"]]
    flat = {name for names in allowed for name in ([names] if isinstance(names, str) else names)}
    assert flat == {action(name) for name in called()} | IMPLIED


def test_machines_end_only_with_our_tag() -> None:
    (ending,) = [s for s in POLICY["Statement"] if "ec2:TerminateInstances" in s["Action"]]
    assert ending["Condition"] == {"Null": {"aws:ResourceTag/crucible:deployment": "false"}}


def test_every_setting_has_its_row() -> None:
    settings = (ROOT / "src/crucible/providers/aws/settings.py").read_text(encoding="utf-8")
    read = set(re.findall(r'\w+\("([A-Z_]+)", given|given\.get\("([A-Z_]+)"', settings))
    rows = PAGE.partition("## Settings")[2].partition("## What is made")[0]
    told = set(re.findall(r"`CRUCIBLE_AWS_([A-Z_]+)`", rows))
    assert told == {first or second for first, second in read} | {"REGIONS"}


def test_every_error_with_a_name_of_its_own_is_known() -> None:
    rows = PAGE.partition("## When it does not work")[2]
    told = set(re.findall(r"`([A-Z][A-Za-z]+(?:\.[A-Za-z]+)?)`", rows))
    rejected = {"VPCIdNotSpecified", "InvalidAMIID.NotFound", "InvalidGroup.NotFound", "InvalidSubnetID.NotFound"}
    assert told - rejected <= set(MEANINGS)
    assert all(quota.code in rows for quota in QUOTAS)
