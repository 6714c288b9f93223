"""A registry of images at the wire: the distribution API over plain HTTP, as much as a pull needs, with basic
authentication. What it serves is a folder that `podman save --format oci-dir` wrote."""

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from doubles.http_server import Double, Handler, Request, serving

MANIFEST = "application/vnd.oci.image.manifest.v1+json"


class Registry:
    def __init__(self, folder: Path, name: str, user: str, password: str) -> None:
        self._folder = folder
        self._name = name
        self._login = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
        self._manifest = json.loads((folder / "index.json").read_text())["manifests"][0]["digest"]
        self.pulls = 0

    def answer(self, request: Request, handler: Handler) -> None:
        if request.headers.get("authorization") != self._login:
            handler.json(
                {"errors": [{"code": "UNAUTHORIZED", "message": "authentication required"}]},
                401,
                WWW_Authenticate='Basic realm="the test"',
            )
        elif request.path == "/v2/":
            handler.json({})
        elif request.path == f"/v2/{self._name}/manifests/1":
            self.pulls += 1
            self._send(handler, self._manifest, MANIFEST)
        elif request.path.startswith((f"/v2/{self._name}/blobs/sha256:", f"/v2/{self._name}/manifests/sha256:")):
            self._send(handler, request.path.rpartition("/")[2], "application/octet-stream")
        else:
            handler.json({"errors": [{"code": "MANIFEST_UNKNOWN", "message": "manifest unknown"}]}, 404)

    def _send(self, handler: Handler, digest: str, kind: str) -> None:
        body = (self._folder / "blobs" / "sha256" / digest.removeprefix("sha256:")).read_bytes()
        handler.send_response(200)
        for name, value in {"Content-Type": kind, "Docker-Content-Digest": digest, "Content-Length": len(body)}.items():
            handler.send_header(name, str(value))
        handler.end_headers()
        if handler.command != "HEAD":
            handler.wfile.write(body)


@contextmanager
def running_registry(registry: Registry) -> Iterator[Double]:
    with serving(registry.answer) as double:
        yield double
