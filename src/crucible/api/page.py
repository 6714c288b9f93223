"""The page in the browser, as it was built. Its files are read once, when the server starts: an address is looked up
among them and never becomes a path. The one file that differs per request is index.html, which says where it is
(relative, so that it works behind any prefix) and which styles it may make."""

import gzip
import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from crucible.api.deps import Deps
from crucible.model.errors import NotFound

INDEX = "index.html"
HASHED = "assets"  # where the build puts files that are named after their content
# No address of the page lies deeper; more is somebody's attempt.
DEEPEST = 8
FOREVER, ASK_EACH_TIME = "public, max-age=31536000, immutable", "no-cache"
NOT_BUILT = """\
This server was installed without its page. In a checkout of Crucible: make web
Everything that the page does, the command line does too: crucible --help
"""
# Browsers refuse a script that goes by another name, whatever this computer's own list says.
MEDIA_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml", ".woff2": "font/woff2"}
_BASE, _NONCE = b'<base href="./"', b'<meta name="csp-nonce" content=""'


@dataclass(frozen=True, slots=True)
class PageFile:
    media_type: str
    caching: str
    etag: str
    packed: bytes  # by gzip, which every browser takes


def files_of(folder: Path) -> dict[str, PageFile]:
    """By their address below the page; the build leaves them packed."""
    packed = sorted(folder.rglob("*.gz"))
    return {path.relative_to(folder).with_suffix("").as_posix(): _file(folder, path) for path in packed}


class PageRoutes:
    """Nothing here knows who asks: what a page shows comes from the API."""

    def __init__(self, deps: Deps) -> None:
        folder = deps.settings.page
        index = None if folder is None else folder / INDEX
        self._index = index.read_bytes() if index is not None and index.is_file() else None
        self._files: Mapping[str, PageFile] = {} if folder is None else files_of(folder)

    def add_to(self, router: APIRouter) -> None:
        for path, endpoint in (("/", self.home), ("/ui", self.home), ("/ui/{path:path}", self.below)):
            router.add_api_route(path, endpoint, methods=["GET", "HEAD"], include_in_schema=False)

    async def home(self) -> Response:
        """Relative: whatever prefix a proxy took away stays in the browser's address."""
        return RedirectResponse("ui/", 307)

    async def below(self, request: Request, path: str) -> Response:
        if self._index is None:
            return Response(NOT_BUILT, 503, media_type="text/plain")
        found = self._files.get(path)
        if found is not None:
            return _sent(found, request)
        depth = _depth(request)
        if PurePosixPath(path).suffix or depth > DEEPEST:
            raise NotFound("the page has no such file")
        return _index(self._index, depth)


def policy(nonce: str) -> str:
    """What the page may load: itself. Styles that its parts make at run time carry the nonce."""
    return (
        f"default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; connect-src 'self'; "
        "img-src 'self'; font-src 'self'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'"
    )


def _file(folder: Path, path: Path) -> PageFile:
    packed, is_hashed = path.read_bytes(), path.parent == folder / HASHED
    return PageFile(
        media_type=MEDIA_TYPES.get(path.with_suffix("").suffix, "application/octet-stream"),
        caching=FOREVER if is_hashed else ASK_EACH_TIME,
        etag=f'"{hashlib.sha256(packed).hexdigest()[:32]}"',
        packed=packed,
    )


def _sent(file: PageFile, request: Request) -> Response:
    headers = {"cache-control": file.caching, "etag": file.etag, "vary": "accept-encoding"}
    if file.etag in request.headers.get("if-none-match", ""):
        return Response(None, 304, headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(file.packed, 200, {**headers, "content-encoding": "gzip"}, file.media_type)
    return Response(gzip.decompress(file.packed), 200, headers, file.media_type)


def _index(text: bytes, depth: int) -> Response:
    nonce, back = secrets.token_urlsafe(16), "../" * depth or "./"
    placed = text.replace(_BASE, f'<base href="{back}"'.encode(), 1)
    named = placed.replace(_NONCE, f'<meta name="csp-nonce" content="{nonce}"'.encode(), 1)
    headers = {"cache-control": ASK_EACH_TIME, "content-security-policy": policy(nonce)}
    return Response(named, 200, headers, "text/html")


def _depth(request: Request) -> int:
    """Below /ui/, as the browser counts: an encoded slash is none."""
    raw: bytes = request.scope["raw_path"]
    return raw.count(b"/") - b"/ui/".count(b"/")
