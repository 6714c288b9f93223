"""Google Cloud Storage on one address: finds the operation, checks who asks, has it carried out on the buckets, and
answers in the XML API. What goes wrong on the way is said as Google says it."""

import asyncio
import json
import shutil
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qs

from crucible.lab.faults import FaultKind
from crucible.lab.gcs import objects, parts, troubles, xml
from crucible.lab.gcs.account import ServiceAccount, new_account, write_key_file
from crucible.lab.gcs.buckets import DEFAULT_BUCKET, Buckets
from crucible.lab.gcs.call import Call, Operation, Store, fields_of, target_of
from crucible.lab.gcs.conditions import NotModified
from crucible.lab.gcs.errors import GcsError, unauthenticated
from crucible.lab.gcs.spool import drained, spooled
from crucible.lab.gcs.tokens import BadToken
from crucible.lab.gcs.troubles import Cut, Lab
from crucible.lab.gcs.uploads import Uploads
from crucible.lab.http import Request, Response

PREFIX = "/gcs/"
GRANTING = "_token"  # behind the prefix; no bucket can have this name
FOLDER, KEY_FILE = "gcs", "gcs-key.json"  # below the Lab's home
GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
MOST_GRANT_BYTES = 64 << 10  # a web token has less than one KiB

# Those that are told by their query come first.
OPERATIONS: tuple[Operation, ...] = (*parts.OPERATIONS, *objects.OPERATIONS)


class GcsFront:
    """The key of its account is made when somebody asks for it: a Lab that nobody stores in starts without."""

    def __init__(
        self,
        lab: Lab,
        home: Path,
        *,
        wall: Callable[[], float] = time.time,
        make_account: Callable[[], ServiceAccount] = new_account,
    ) -> None:
        folder = home / FOLDER
        self._lab = lab
        self._wall = wall
        self._make_account = make_account
        self._key_file = home / KEY_FILE
        self._store = Store(folder, Buckets(folder, wall), Uploads(folder))
        self._store.buckets.create(DEFAULT_BUCKET)
        self._account: ServiceAccount | None = None
        self._making = asyncio.Lock()

    async def environment(self) -> dict[str, str]:
        """What makes our own server, and clients of obstore, talk to it. The key file is there afterwards."""
        async with self._making:
            if self._account is None:
                account = await asyncio.to_thread(self._make_account)
                write_key_file(self._key_file, account.key_file(self._base_url, self._token_uri))
                self._account = account
        return {
            "GOOGLE_APPLICATION_CREDENTIALS": str(self._key_file),
            "GOOGLE_BASE_URL": self._base_url,
            "CRUCIBLE_GCS_ENDPOINT": self._base_url,
            "CRUCIBLE_STORAGE": f"gs://{DEFAULT_BUCKET}",
        }

    async def handle(self, request: Request, body: AsyncIterator[bytes]) -> Response:
        try:
            if request.path == PREFIX + GRANTING:
                return await self._grant(request, body)
            return await self._serve(request, body)
        except NotModified:
            return Response(status=304)
        except GcsError as refusal:
            await drained(body)  # or the client would find its connection closed, and never hear why
            said = b"" if request.method == "HEAD" else xml.error(refusal)
            return Response(status=refusal.status, headers=objects.XML, body=said)
        except Cut:
            return Response(is_cut=True)

    @property
    def _base_url(self) -> str:
        return self._lab.url + PREFIX.rstrip("/")

    @property
    def _token_uri(self) -> str:
        return self._lab.url + PREFIX + GRANTING

    async def _serve(self, request: Request, body: AsyncIterator[bytes]) -> Response:
        if self._account is None:
            raise unauthenticated("This Lab has given no key away: see crucible lab env gcs.")
        self._account.admit(request, self._wall())
        target = target_of(request.raw_path.removeprefix(PREFIX))
        call = Call(request=request, target=target, fields=fields_of(request.query), store=self._store)
        operation = _operation(call)
        operation.check(call)
        fault = troubles.before(self._lab, operation.name)
        late_s = fault.seconds if fault and fault.kind is FaultKind.SLOW else 0.0
        times = 2 if fault and fault.kind is FaultKind.DUPLICATE_DELIVERY else 1
        answer = await _carried_out(operation, call, body, times)
        try:
            troubles.after(self._lab, operation.name)
        except BaseException:
            answer.close()
            raise
        return replace(answer, after_s=late_s)

    async def _grant(self, request: Request, body: AsyncIterator[bytes]) -> Response:
        """An access token for a web token that the account's key has signed."""
        sent = b""
        async for chunk in body:
            sent += chunk
            if len(sent) > MOST_GRANT_BYTES:
                return _json(400, {"error": "invalid_request", "error_description": "The request is too long."})
        form = parse_qs(sent.decode("ascii", "replace"))
        try:
            if request.method != "POST" or form.get("grant_type") != [GRANT] or self._account is None:
                raise BadToken(f"The Lab grants access tokens to a POST of grant_type {GRANT} alone.")
            assertion = form.get("assertion", [""])[0]
            return _json(200, self._account.granted(assertion, self._token_uri, self._wall()))
        except BadToken as bad:
            return _json(400, {"error": "invalid_grant", "error_description": str(bad)})


@contextmanager
def opened(lab: Lab, home: Path) -> Iterator[GcsFront]:
    """Empty at first, whatever a Lab that was killed has left, and gone afterwards."""
    shutil.rmtree(home / FOLDER, ignore_errors=True)
    try:
        yield GcsFront(lab, home)
    finally:
        shutil.rmtree(home / FOLDER, ignore_errors=True)
        (home / KEY_FILE).unlink(missing_ok=True)


def _operation(call: Call) -> Operation:
    for operation in OPERATIONS:
        is_of_object = call.target.key != ""
        is_meant = operation.method == call.request.method and operation.is_of_object == is_of_object
        if is_meant and operation.needs <= call.fields.keys():
            return operation
    what = "an object" if call.target.key else "a bucket"
    raise GcsError("MethodNotAllowed", f"The Lab does nothing for {call.request.method} of {what}.", 405)


async def _carried_out(operation: Operation, call: Call, body: AsyncIterator[bytes], times: int) -> Response:
    """The last answer of so many times."""
    if not operation.has_body:
        for _ in range(times - 1):
            (await operation.handler(call)).close()
        return await operation.handler(call)
    async with spooled(call.store.folder, body, call.headers.get("content-length")) as spool:
        call = replace(call, body=spool)
        for _ in range(times - 1):
            (await operation.handler(call)).close()
        return await operation.handler(call)


def _json(status: int, value: object) -> Response:
    return Response(status=status, headers={"content-type": "application/json"}, body=json.dumps(value).encode())
