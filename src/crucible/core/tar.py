"""A tar archive as a stream: each file is whole when it is written, so that its size is known and nothing is kept."""

import tarfile
from datetime import datetime

END = bytes(2 * tarfile.BLOCKSIZE)


def member(name: str, body: bytes, at: datetime) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.mtime, info.mode = len(body), int(at.timestamp()), 0o600
    padding = -len(body) % tarfile.BLOCKSIZE
    return info.tobuf(tarfile.PAX_FORMAT) + body + bytes(padding)
