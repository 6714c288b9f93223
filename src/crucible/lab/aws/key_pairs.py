"""Key pairs: public keys that an account has named."""

from typing import Any

from crucible.lab.aws import ssh_keys, tags
from crucible.lab.aws.absence import absent
from crucible.lab.aws.call import Call, Handler, moment
from crucible.lab.aws.errors import AwsError, beyond_the_lab, missing
from crucible.lab.aws.listing import Listing
from crucible.lab.aws.registry import KeyPair


def create_key_pair(call: Call) -> dict[str, Any]:
    """The private half is in this answer and nowhere else."""
    if call.values.get("KeyType", "rsa") != "ed25519" or call.values.get("KeyFormat", "pem") != "pem":
        beyond_the_lab("making key pairs other than ed25519 in pem; ask for KeyType ed25519, or import yours")
    private, public = ssh_keys.new()
    pair = _keep(call, public)
    return {
        "KeyFingerprint": pair.fingerprint,
        "KeyMaterial": private,
        "KeyName": pair.name,
        "KeyPairId": pair.id,
        "Tags": tags.shown(pair.tags),
    }


def import_key_pair(call: Call) -> dict[str, Any]:
    pair = _keep(call, call.values["PublicKeyMaterial"].decode("ascii", "replace").strip())
    return {
        "KeyFingerprint": pair.fingerprint,
        "KeyName": pair.name,
        "KeyPairId": pair.id,
        "Tags": tags.shown(pair.tags),
    }


def describe_key_pairs(call: Call) -> dict[str, Any]:
    pairs = list(call.office.keys.values())
    names, ids = call.values.get("KeyNames", []), call.values.get("KeyPairIds", [])
    known = {pair.name for pair in pairs} | {pair.id for pair in pairs}
    for wanted in (*names, *ids):
        if wanted not in known:
            raise absent("key", wanted)
    if names or ids:
        pairs = [pair for pair in pairs if pair.name in names or pair.id in ids]
    found = _LISTING.matching(pairs, call.values.get("Filters", []))
    return {"KeyPairs": [_shown(pair, bool(call.values.get("IncludePublicKey"))) for pair in found]}


def delete_key_pair(call: Call) -> dict[str, Any]:
    """One that is not there is no mistake."""
    name, id = call.values.get("KeyName"), call.values.get("KeyPairId")
    if not name and not id:
        missing("KeyName")
    for pair in list(call.office.keys.values()):
        if pair.name == name or pair.id == id:
            del call.office.keys[pair.name]
            return {"Return": True, "KeyPairId": pair.id}
    return {"Return": True}


def _keep(call: Call, public: str) -> KeyPair:
    name = call.values["KeyName"] or missing("KeyName")
    if name in call.office.keys:
        raise AwsError("InvalidKeyPair.Duplicate", f"The keypair '{name}' already exists.")
    read = ssh_keys.read(public)
    if read is None:
        raise AwsError("InvalidKey.Format", "Key is not in valid OpenSSH public key format")
    kind, fingerprint = read
    pair = KeyPair(
        id=call.office.new_id("key"),
        name=name,
        fingerprint=fingerprint,
        kind=kind,
        public=public,
        created_at=call.now,
        tags=tags.specified(call.values, ("key-pair",)).get("key-pair", {}),
    )
    call.office.keys[name] = pair
    return pair


def _shown(pair: KeyPair, with_public: bool) -> dict[str, Any]:
    return {
        "KeyPairId": pair.id,
        "KeyName": pair.name,
        "KeyFingerprint": pair.fingerprint,
        "KeyType": pair.kind,
        "CreateTime": moment(pair.created_at),
        "Tags": tags.shown(pair.tags),
    } | ({"PublicKey": pair.public} if with_public else {})


_LISTING: Listing[KeyPair] = Listing(
    key=lambda pair: pair.id,
    tags=lambda pair: pair.tags,
    filters={
        "fingerprint": lambda pair: [pair.fingerprint],
        "key-name": lambda pair: [pair.name],
        "key-pair-id": lambda pair: [pair.id],
    },
)

OPERATIONS: dict[str, Handler] = {
    "CreateKeyPair": create_key_pair,
    "ImportKeyPair": import_key_pair,
    "DescribeKeyPairs": describe_key_pairs,
    "DeleteKeyPair": delete_key_pair,
}
