"""The one service account of a Lab, made anew by each: its key file, and who may ask in its name."""

import json
import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crucible.lab.gcs import pem, rsa, tokens
from crucible.lab.gcs.errors import access_denied, unauthenticated
from crucible.lab.gcs.rsa import PrivateKey
from crucible.lab.gcs.signed import Claim, claim_of, verify
from crucible.lab.gcs.tokens import BadToken
from crucible.lab.http import Request

PROJECT = "lab-project"
EMAIL = f"lab@{PROJECT}.iam.gserviceaccount.com"


@dataclass(frozen=True, slots=True)
class ServiceAccount:
    key: PrivateKey
    key_id: str
    secret: bytes = field(repr=False)  # of access tokens

    def admit(self, request: Request, now: float) -> None:
        """Raises GcsError unless this account asks, by a token or by an address that it signed."""
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        claim = claim_of(request)
        if kind:
            if kind.lower() != "bearer":
                raise unauthenticated("The Lab takes bearer tokens and signed addresses.")
            self._check_token(token.strip(), now)
        elif claim is not None:
            self._check_claim(claim, request, now)
        else:
            raise access_denied("Anonymous caller does not have storage access to this bucket.")

    def granted(self, assertion: str, token_uri: str, now: float) -> dict[str, Any]:
        """An access token for a web token that is meant for this endpoint. Raises BadToken."""
        claims = self._claims(assertion, now)
        if claims.get("aud") != token_uri:
            raise BadToken(f"The token's audience is not {token_uri}.")
        access = tokens.access_token(self.secret, int(now) + tokens.LONGEST_S)
        return {"access_token": access, "expires_in": tokens.LONGEST_S - 1, "token_type": "Bearer"}

    def key_file(self, base_url: str, token_uri: str) -> dict[str, str]:
        """In Google's own form; `gcs_base_url` is what clients of obstore read beside it."""
        return {
            "type": "service_account",
            "project_id": PROJECT,
            "private_key_id": self.key_id,
            "private_key": pem.pem(self.key),
            "client_email": EMAIL,
            "client_id": str(int(self.key_id[:16], 16)),
            "token_uri": token_uri,
            "gcs_base_url": base_url,
        }

    def _check_token(self, token: str, now: float) -> None:
        try:
            if tokens.is_access_token(token):
                tokens.check_access_token(token, self.secret, now)
            elif not tokens.opens_storage(self._claims(token, now)):
                raise BadToken("The token has no scope that opens storage.")
        except BadToken as bad:
            raise unauthenticated(str(bad)) from None

    def _claims(self, token: str, now: float) -> dict[str, Any]:
        return tokens.claims_of(token, self.key.public, self.key_id, EMAIL, now)

    def _check_claim(self, claim: Claim, request: Request, now: float) -> None:
        if claim.email != EMAIL:
            raise access_denied(f"The address was signed by {claim.email}, who has no storage access to this bucket.")
        verify(claim, request, self.key.public, now)


def new_account() -> ServiceAccount:
    """Takes some tenths of a second."""
    return ServiceAccount(rsa.make(), secrets.token_hex(20), secrets.token_bytes(32))


def write_key_file(path: Path, said: dict[str, str]) -> None:
    """For its owner's eyes only, and never half written."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    with os.fdopen(os.open(part, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w") as file:
        json.dump(said, file, indent=2)
    part.replace(path)
