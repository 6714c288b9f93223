"""What reaches the system, and in how many calls."""

import asyncio

from crucible.api.joining import Joining

HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n"


class Recorded(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.said: list[bytes] = []

    def write(self, data: bytes) -> None:  # type: ignore[override]
        self.said.append(data)

    def close(self) -> None:
        self.said.append(b"closed")


def said(*deeds: bytes | None) -> list[bytes]:
    """What is written in one turn of the loop, and the end of the connection: None."""

    async def turn() -> list[bytes]:
        under = Recorded()
        joining = Joining(under, asyncio.get_running_loop())
        for deed in deeds:
            joining.close() if deed is None else joining.write(deed)
        await asyncio.sleep(0)
        return under.said

    return asyncio.run(turn())


def test_a_head_leaves_with_the_first_piece_of_its_body() -> None:
    assert said(HEAD, b"ok", b"more") == [HEAD + b"ok", b"more"]


def test_a_head_whose_body_is_not_there_yet_leaves_in_this_turn() -> None:
    assert said(HEAD) == [HEAD]


def test_a_head_is_not_lost_with_its_connection() -> None:
    assert said(HEAD, None) == [HEAD, b"closed"]


def test_two_answers_in_one_turn_stay_in_their_order() -> None:
    assert said(HEAD, b"", HEAD, b"ok") == [HEAD, HEAD + b"ok"]
