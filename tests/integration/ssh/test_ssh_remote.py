"""A real sshd: what is run there, who is let in, and what is never believed."""

import asyncio
import subprocess
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from crucible.model.errors import HostKeyRefused, InvalidRequest, LoginRefused, Unreachable
from crucible.ssh.connecting import fingerprint_of
from crucible.ssh.login import Login, SshFiles, jumps_of, parse_place
from crucible.ssh.remote import SshRemote
from hosts_world import HostsWorld, make_key


@pytest.fixture
def files(hosts: HostsWorld, tmp_path: Path) -> SshFiles:
    return SshFiles(hosts.keys.known_hosts, tmp_path / "config")


def login(hosts: HostsWorld, host: str = "h1", **changes: object) -> Login:
    given = {"user": "root", "identity_file": str(hosts.keys.private), **changes}
    return Login(hosts.address(host), **given)  # type: ignore[arg-type]


def with_remote(remote: SshRemote, act: Callable[[SshRemote], Awaitable[Any]]) -> Any:
    async def scenario() -> Any:
        try:
            return await act(remote)
        finally:
            remote.abort()
            await asyncio.sleep(0)

    return asyncio.run(scenario())


# --- commands -------------------------------------------------------------------------------------------


def test_a_command_gets_its_words_unchanged_and_its_input_and_gives_its_exit_code(
    hosts: HostsWorld, files: SshFiles
) -> None:
    async def act(remote: SshRemote) -> None:
        done = await remote.run(["printf", "%s|", "a b", "$(id)", "'; echo x", "*"])
        assert done.stdout == b"a b|$(id)|'; echo x|*|"
        done = await remote.run(["sh", "-c", "cat; echo trouble >&2; exit 3"], stdin=b"x" * 300_000)
        assert (done.exit_code, len(done.stdout), done.words) == (3, 300_000, "trouble")
        assert (await remote.run(["sh", "-c", "kill -9 $$"])).exit_code == -9

    with_remote(SshRemote(login(hosts), files), act)


def test_many_commands_share_one_connection(hosts: HostsWorld, files: SshFiles) -> None:
    async def act(remote: SshRemote) -> None:
        asked = (remote.run(["sh", "-c", "echo $SSH_CONNECTION"]) for _ in range(40))
        assert len({done.stdout for done in await asyncio.gather(*asked)}) == 1

    with_remote(SshRemote(login(hosts), files), act)


def test_a_file_is_put_whole_with_its_folder_and_mode(hosts: HostsWorld, files: SshFiles) -> None:
    async def act(remote: SshRemote) -> None:
        await remote.put("/root/deep er/file", b"\0bytes", mode=0o640)
        done = await remote.run(["stat", "-c", "%a %s", "/root/deep er/file"])
        assert done.stdout == b"640 6\n"
        with pytest.raises(OSError, match="cannot be written on"):
            await remote.put("/proc/nothing/file", b"")
        await remote.run(["rm", "-r", "/root/deep er"])

    with_remote(SshRemote(login(hosts), files), act)


def test_an_answer_that_was_lost_is_an_error_and_the_next_command_connects_again(
    hosts: HostsWorld, files: SshFiles
) -> None:
    async def act(remote: SshRemote) -> None:
        asked = asyncio.create_task(remote.run(["sleep", "600"]))
        await remote.run(["true"])
        await asyncio.to_thread(hosts.kill, "h1")
        await asyncio.to_thread(hosts.start, "h1")
        with pytest.raises(Unreachable):
            await asked
        assert (await remote.run(["hostname"])).stdout == b"h1\n"

    with_remote(SshRemote(login(hosts), files), act)


def test_a_cut_host_is_said_to_be_unreachable_within_the_given_time(hosts: HostsWorld, files: SshFiles) -> None:
    async def act(remote: SshRemote) -> None:
        await remote.run(["true"])
        hosts.cut("h1")
        began = time.monotonic()
        with pytest.raises(Unreachable, match="no answer within 1 s"):
            await remote.run(["true"], timeout_s=1.0)
        assert time.monotonic() - began < 5

    with_remote(SshRemote(login(hosts), files), act)


def test_nothing_listens_there(hosts: HostsWorld, files: SshFiles) -> None:
    with pytest.raises(Unreachable, match="cannot be reached"):
        with_remote(SshRemote(login(hosts, port=23), files), lambda remote: remote.run(["true"]))


# --- who it is --------------------------------------------------------------------------------------------


def test_a_host_that_nobody_knows_is_refused_with_its_fingerprint(hosts: HostsWorld, files: SshFiles) -> None:
    unknown = SshFiles(files.known_hosts.with_name("none"), files.config)
    with pytest.raises(HostKeyRefused) as caught:
        with_remote(SshRemote(login(hosts), unknown), lambda remote: remote.run(["true"]))
    details = caught.value.details
    assert details["fingerprint"] == fingerprint_of(hosts.keys.host_keys["h1"]) and details["expected"] is None
    assert details["fingerprint"].startswith("SHA256:") and details["host_key"] == hosts.keys.host_keys["h1"]
    assert "is not known yet" in caught.value.message


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa"])
def test_a_changed_key_is_refused_with_both_fingerprints(
    hosts: HostsWorld, files: SshFiles, tmp_path: Path, kind: str
) -> None:
    """Of the same kind as before or of another."""
    subprocess.run(["ssh-keygen", "-q", "-t", kind, "-N", "", "-f", str(tmp_path / "other")], check=True)
    other = " ".join((tmp_path / "other.pub").read_text().split()[:2])
    with pytest.raises(HostKeyRefused) as caught:
        with_remote(SshRemote(login(hosts, host_key=other), files), lambda remote: remote.run(["true"]))
    details = caught.value.details
    assert details["expected"] == fingerprint_of(other)
    assert details["fingerprint"] == fingerprint_of(hosts.keys.host_keys["h1"])


def test_a_pinned_key_counts_and_known_hosts_does_not(hosts: HostsWorld, tmp_path: Path) -> None:
    nothing = SshFiles(tmp_path / "known_hosts", tmp_path / "config")
    pinned = login(hosts, host_key=hosts.keys.host_keys["h1"])
    assert with_remote(SshRemote(pinned, nothing), lambda remote: remote.host_key()) == hosts.keys.host_keys["h1"]


def test_a_configuration_that_turns_checks_off_does_not_turn_ours_off(hosts: HostsWorld, tmp_path: Path) -> None:
    (tmp_path / "config").write_text("Host *\n  StrictHostKeyChecking no\n  UserKnownHostsFile none\n")
    with pytest.raises(HostKeyRefused):
        careless = SshFiles(tmp_path / "known_hosts", tmp_path / "config")
        with_remote(SshRemote(login(hosts), careless), lambda remote: remote.run(["true"]))


# --- who we are -------------------------------------------------------------------------------------------


def test_a_wrong_key_is_not_let_in(hosts: HostsWorld, files: SshFiles, tmp_path: Path) -> None:
    make_key(tmp_path / "wrong")
    with pytest.raises(LoginRefused, match="does not let user root in"):
        wrong = login(hosts, identity_file=str(tmp_path / "wrong"))
        with_remote(SshRemote(wrong, files), lambda remote: remote.run(["true"]))


@pytest.mark.parametrize("kind", ["missing", "locked", "no key"])
def test_a_key_that_cannot_be_used_is_named(hosts: HostsWorld, files: SshFiles, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "key"
    if kind == "locked":
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "secret", "-f", str(path)], check=True)
    elif kind == "no key":
        path.write_text("nothing of the kind\n")
    with pytest.raises(LoginRefused, match="identity_file"):
        with_remote(SshRemote(login(hosts, identity_file=str(path)), files), lambda remote: remote.run(["true"]))


# --- how it is reached ----------------------------------------------------------------------------------------


def test_jump_hosts_are_passed_in_order(hosts: HostsWorld, files: SshFiles, tmp_path: Path) -> None:
    config = f"Host *\n  User root\n  IdentityFile {hosts.keys.private}\n"
    (tmp_path / "config").write_text(config)
    third = login(hosts, "h3", jump=f"root@{hosts.address('h1')},{hosts.address('h2')}:22")

    async def act(remote: SshRemote) -> str:
        return (await remote.run(["sh", "-c", "echo $SSH_CONNECTION; hostname"])).stdout.decode()

    said = with_remote(SshRemote(third, files), act)
    assert said.split()[0] == hosts.address("h2") and said.split()[-1] == "h3"


def test_an_alias_of_the_configuration_is_reached_as_it_says(
    hosts: HostsWorld, files: SshFiles, tmp_path: Path
) -> None:
    (tmp_path / "config").write_text(
        f"Host box\n  HostName {hosts.address('h2')}\n  User root\n  IdentityFile {hosts.keys.private}\n"
        f"  ProxyJump gate\nHost gate\n  HostName {hosts.address('h1')}\n  User root\n"
        f"  IdentityFile {hosts.keys.private}\n  UserKnownHostsFile {hosts.keys.known_hosts}\n"
    )

    async def act(remote: SshRemote) -> list[str]:
        return (await remote.run(["sh", "-c", "echo $SSH_CONNECTION; hostname"])).stdout.decode().split()

    said = with_remote(SshRemote(Login("box"), files), act)
    assert said[0] == hosts.address("h1") and said[-1] == "h2"


def test_a_port_of_this_computer_is_exposed_there_and_again_after_a_break(hosts: HostsWorld, files: SshFiles) -> None:
    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello from here")
        writer.close()

    async def act(remote: SshRemote) -> None:
        server = await asyncio.start_server(greet, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        for _ in range(2):
            there = await remote.expose("127.0.0.1", port)
            assert await remote.expose("127.0.0.1", port) == there
            program = f"import socket; print(socket.create_connection(('127.0.0.1', {there})).recv(99).decode())"
            assert (await remote.run(["python3", "-c", program])).stdout == b"hello from here\n"
            remote.abort()
        server.close()

    with_remote(SshRemote(login(hosts), files), act)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("box", (None, "box", None)),
        ("ann@box:2222", ("ann", "box", 2222)),
        ("[fe80::1]:22", (None, "fe80::1", 22)),
        ("fe80::1", (None, "fe80::1", None)),
    ],
)
def test_places_are_read_as_ssh_reads_them(text: str, place: tuple[str | None, str, int | None]) -> None:
    assert parse_place(text) == place


@pytest.mark.parametrize("text", ["", "ann@", "box:0", "box:many", "-oProxyCommand=x", "a b", "box:70000", "-l@box"])
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest):
        parse_place(text)


def test_too_many_jumps_are_refused() -> None:
    with pytest.raises(InvalidRequest, match="at most 8"):
        jumps_of(",".join(["box"] * 9))
