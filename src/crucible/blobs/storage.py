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
        self, door: FileDoor, environ: Mapping[str, str], *, endpoints: Sequence[str] = (), own: Address | None = None
    ) -> None:
        """`endpoints` are those that the operator allows, besides the clouds themselves and that of `own`, where the
        server keeps what is its own. Raises InvalidRequest."""
        self._door = door
        self._environ = environ
        self.endpoints = Endpoints(endpoints)
        named = endpoint_of(own, environ) if own else None
        if own and named and not (own.host and self.endpoints.knows(own.host)):  # http or https, as it was listed
            self.endpoints = Endpoints([*endpoints, named])
        self._buckets: dict[tuple[Scheme, str, str], Bucket] = {}

    def open(self, address: Address) -> Objects:
        if address.scheme is Scheme.FILE:
            return self._door.objects(address)
        place = (address.scheme, address.host, address.bucket)
        bucket = self._buckets.get(place)
        if bucket is None:  # one for all who use it: they share its connections
            bucket = self._buckets[place] = bucket_at(address, self._environ, self.endpoints)
        return CloudObjects(address, bucket)
