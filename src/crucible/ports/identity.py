"""Who says who somebody is: a company's own sign-in. It is asked once for each sign-in; what somebody may do here is
decided here."""

from typing import Protocol

from crucible.model.account import User
from crucible.model.audit import AuditEntry
from crucible.model.identity import Admission, Identity


class IdentityProvider(Protocol):
    name: str  # what people call it

    async def address(self, *, callback: str, state: str, nonce: str, verifier: str) -> str:
        """Where a browser is sent to sign in. Raises Unreachable if nobody answers there."""
        ...

    async def identity(self, *, code: str, callback: str, nonce: str, verifier: str) -> Identity:
        """What `code` stands for. Raises Unauthenticated if it stands for nothing, or for another sign-in than the one
        that `nonce` and `verifier` began; Unreachable."""
        ...


class IdentityBook(Protocol):
    async def sign_in(self, identity: Identity, admission: Admission, *, audit: AuditEntry) -> User:
        """The user that this identity is, made now if it is new, with the role and the teams that the provider decides
        about. Raises Forbidden if they are disabled here, Conflict if their name is another person's."""
        ...
