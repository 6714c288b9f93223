"""STS: who asks."""

from typing import Any

from crucible.lab.aws.call import Call, Handler


def get_caller_identity(call: Call) -> dict[str, Any]:
    key = call.lab.account.access_key
    return {
        "UserId": f"AIDA{key[4:]}",
        "Account": call.account,
        "Arn": f"arn:aws:iam::{call.account}:user/lab",
    }


OPERATIONS: dict[str, Handler] = {"GetCallerIdentity": get_caller_identity}
