"""Object storage of every kind behind one port: a folder, or a bucket of a cloud."""

from collections.abc import Mapping, Sequence

from crucible.blobs.cloud_buckets import Bucket, bucket_at, endpoint_of
from crucible.blobs.cloud_objects import CloudObjects
from crucible.blobs.endpoints import Endpoints
from crucible.blobs.file_door import FileDoor
from crucible.model.storage import Address, Scheme
from crucible.ports.objects import Objects


class ObjectStorage:
    def __init__(
        self,
        door: FileDoor,
        environ: Mapping[str, str],
        *,
        endpoints: Sequence[str] = (),
        own: Address | None = None,
        regions: Sequence[Address] = (),
    ) -> None:
        """`endpoints` are those that the operator allows, besides the clouds themselves and those of `own` and
        `regions`, where the server keeps what is its own. Raises InvalidRequest."""
        self._door = door
        self._environ = environ
        self.endpoints = Endpoints(endpoints)
        allowed = list(endpoints)
        for address in (*([own] if own else []), *regions):
            named = endpoint_of(address, environ)
            if named and not (address.host and self.endpoints.knows(address.host)):  # http or https, as it was listed
                allowed.append(named)
        self.endpoints = Endpoints(allowed)
        self._buckets: dict[tuple[Scheme, str, str], Bucket] = {}

    def open(self, address: Address) -> Objects:
        if address.scheme is Scheme.FILE:
            return self._door.objects(address)
        place = (address.scheme, address.host, address.bucket)
        bucket = self._buckets.get(place)
        if bucket is None:  # one for all who use it: they share its connections
            bucket = self._buckets[place] = bucket_at(address, self._environ, self.endpoints)
        return CloudObjects(address, bucket)
