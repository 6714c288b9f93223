"""What is on the disk of a machine when it boots: a folder with its first process, its user-data and programs that
stand in for those that would switch this computer off."""

import base64
import binascii
import os
import shlex
import sys
import zlib
from pathlib import Path

# User-data is at most 16 KiB as sent; unpacked it may be longer, but not without end.
MAX_UNPACKED = 1 << 20
POWER_PROGRAMS = ("shutdown", "poweroff", "halt", "reboot", "systemctl")
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

# The first process: starts user-data, tells how it ended, and stays, as a machine does. It also buries orphans. On
# SIGTERM (the power button) it asks everything in its namespace to end; only as process 1, where -1 means just that.
FIRST = """\
#!/bin/sh
exec 2>&1
[ "$$" = 1 ] && trap 'kill -TERM -1' TERM
if [ "$$" = 1 ]; then
    for program in {programs}; do
        for folder in /sbin /usr/sbin /bin /usr/bin; do
            path="$folder/$program"
            [ -e "$path" ] && ! [ "$path" -ef {shim} ] && mount --bind {shim} "$path" 2>/dev/null
        done
    done
    for path in /run/systemd/private /run/dbus/system_bus_socket; do
        [ -e "$path" ] && mount --bind /dev/null "$path" 2>/dev/null
    done
fi
if [ -e {user_data} ]; then
    {user_data} </dev/null &
    child=$!
    wait "$child"
    code=$?
    while kill -0 "$child" 2>/dev/null; do
        wait "$child"
        code=$?
    done
    echo "exit $code" >{power}
fi
while :; do
    sleep 86400 </dev/null >/dev/null 2>&1 &
    wait "$!"
done
"""

# Machines that switch themselves off say so; nothing here can switch off the computer that plays them.
SHIM = """\
#!/bin/sh
off() {{ echo off >{power}; }}
case " $* " in *" --help "* | *" --version "*) exit 0 ;; esac
case "${{0##*/}}" in
systemctl)
    case " $* " in
    *" poweroff "* | *" halt "* | *" reboot "* | *" kexec "*) off ;;
    *)
        echo "systemctl: machines of the Lab have no services" >&2
        exit 1
        ;;
    esac
    ;;
shutdown)
    for word; do
        case "$word" in
        -c) exit 0 ;;
        +0) ;;
        +[0-9]*)
            (sleep "$((${{word#+}} * 60))" && off) </dev/null >/dev/null 2>&1 &
            exit 0
            ;;
        esac
    done
    off
    ;;
*) off ;;
esac
"""


class Image:
    """The folder of one machine; only its owner may look into it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.first = folder / "first"
        self.user_data = folder / "user-data"
        self.power = folder / "power"
        self.console = folder / "console.log"
        self.programs = folder / "bin"

    def make(self, user_data: bytes) -> str:
        """Returns what there is to say about user-data that cannot be run; empty if it can, or if there is none."""
        for folder in (self.folder, self.programs, *(self.folder / name for name in ("home", "tmp", "var"))):
            folder.mkdir(mode=0o700, parents=True)
        os.mkfifo(self.power, 0o600)
        names = {"power": _quoted(self.power), "user_data": _quoted(self.user_data)}
        shim = self.programs / "power"
        _write_program(shim, SHIM.format(**names).encode())
        for name in POWER_PROGRAMS:
            (self.programs / name).symlink_to(shim)
        first = FIRST.format(**names, shim=_quoted(shim), programs=" ".join(POWER_PROGRAMS))
        _write_program(self.first, first.encode())
        script = unpacked(user_data)
        if script.startswith(b"#!"):
            _write_program(self.user_data, script)
            return ""
        return "user-data is not a script (it does not begin with #!) and was not run\n" if script else ""

    def environment(self, metadata_url: str, mark: tuple[str, str]) -> dict[str, str]:
        """Made from nothing: what this computer's environment holds is none of a machine's business."""
        own = Path(sys.executable).parent  # so that python3 is there, whatever this computer calls it
        return {
            "PATH": f"{self.programs}:{own}:{SYSTEM_PATH}",
            "HOME": str(self.folder / "home"),
            "TMPDIR": str(self.folder / "tmp"),
            "LANG": "C.UTF-8",
            "CRUCIBLE_NODE_DIR": str(self.folder / "var"),
            "AWS_EC2_METADATA_SERVICE_ENDPOINT": metadata_url,
            mark[0]: mark[1],
        }


def unpacked(user_data: bytes) -> bytes:
    """As the first-boot program of real images does: gzip is unpacked, and base64 that was applied twice undone."""
    if user_data[:2] == b"\x1f\x8b":
        return _gunzipped(user_data)
    if user_data and not user_data.startswith(b"#"):
        try:
            inner = base64.b64decode(user_data, validate=True)
        except (binascii.Error, ValueError):
            return user_data
        return _gunzipped(inner) if inner[:2] == b"\x1f\x8b" else inner
    return user_data


def _gunzipped(packed: bytes) -> bytes:
    unzip = zlib.decompressobj(16 + zlib.MAX_WBITS)
    try:
        return unzip.decompress(packed, MAX_UNPACKED)
    except zlib.error:
        return packed


def _write_program(path: Path, text: bytes) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o700), "wb") as file:
        file.write(text)


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))
