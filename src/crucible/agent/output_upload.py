"""A tree on its way to storage: first which of its objects are missing, then those, several at a time, by signed
requests, then the manifest, then the server's word that all of it is there. What is stored already is not sent again,
so an agent that is started anew goes on by beginning anew."""

from __future__ import annotations

import functools
import threading
import time

from . import protocol
from .bodies import Bytes
from .courier import FULL, Courier, Declined, Unreachable
from .link import Backoff, Unanswered
from .meter import Transfer
from .output_tree import Changed, OutputTree, Stopped, Unstorable
from .slots import may_pass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Optional

    from .bodies import Body
    from .link import Answer, Link, Servers
    from .output_tree import Stowed
    from .words import Words

_CONNECTIONS = 4
# Objects of one question: the server's MAX_OBJECTS.
PAGE = 500
_TIMEOUT_S = 120.0
# A tree that changes, or of which the server misses something, is read and sent so often.
_ROUNDS = 3
# Signatures are renewed so often for one object; a full storage is asked so often.
_RENEWALS = 3
_FULL_TRIES = 3
# Without a byte or an answer for so long it has failed.
_PATIENCE_S = 1800.0
# Who lives answers a report within this.
_UNHEARD_S = 30.0
# The same for a machine that goes.
_HURRIED_S = 60.0
_CONFLICT, _REFUSED_STORAGE = 409, 424


class Failed(Exception):
    """For good. The message says why."""


class Interrupted(Exception):
    """Nobody wants it any more."""


class GivenUp(Exception):
    """The machine goes, and nothing moves."""


class _Incomplete(Exception):
    """The server does not find all of it."""


class Stored:
    def __init__(self, digest: str, files: int, size: int) -> None:
        self.digest = digest
        self.files = files
        self.size = size


class Patience:
    """How long it is tried. While no server is heard at all, time does not count: nobody could hear of the exit."""

    def __init__(self, servers: Servers, within_s: float) -> None:
        self._servers = servers
        self._within_s = within_s
        self._lock = threading.Lock()
        self._transfer = Transfer(0)
        self._looked_at = self._moved_at = self._transfer.moved_at
        self._spent_s = self._idle_s = 0.0
        self.is_hurried = False

    def moved(self, count: int) -> None:
        self._transfer.moved(count)

    def check(self, problem: str = "too slow") -> None:
        """Raises Failed, GivenUp."""
        with self._lock:
            now = time.monotonic()
            passed_s, self._looked_at = now - self._looked_at, now
            if self._moved_at != self._transfer.moved_at:
                self._moved_at, self._idle_s = self._transfer.moved_at, 0.0
            if now - self._servers.heard_at < _UNHEARD_S:
                self._spent_s += passed_s
                self._idle_s += passed_s
            if self.is_hurried and now - self._moved_at >= _HURRIED_S:
                raise GivenUp
            if self._idle_s >= _PATIENCE_S or self._spent_s >= self._within_s:
                raise Failed("it took too long: %s" % problem)


class Storing:
    def __init__(self, root: str, launch: Dict[str, Any], servers: Servers, words: Words) -> None:
        self._root = root
        self._launch = launch
        self._words = words
        self._limits: Dict[str, Any] = launch["output"]
        self._patience = Patience(servers, float(self._limits["within_s"]))
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._link_lock = threading.Lock()
        self._failure: Optional[Exception] = None

    def close(self) -> None:
        self._closed.set()

    def hurry(self) -> None:
        self._patience.is_hurried = True

    def run(self, link: Link) -> Stored:
        """With the digest "" if there is nothing after all. Raises Failed, Interrupted, GivenUp."""
        self._link = link
        problem = ""
        for number in range(_ROUNDS):
            try:
                tree = OutputTree(self._root, self._limits["max_files"], self._limits["max_bytes"], self._closed)
                if not tree.leaves:
                    return Stored("", 0, 0)
                self._send(tree, is_again=number > 0)
                self._confirm(tree)
                return Stored(tree.digest, len(tree.leaves), tree.size)
            except (Changed, _Incomplete) as error:
                problem = str(error)
                self._words.say("the outputs of %s: %s" % (self._launch["attempt_id"], error))
            except Stopped as error:
                raise Interrupted from error
            except (Unstorable, OSError) as error:
                raise Failed(str(error)) from error
        raise Failed(problem)

    # --- objects --------------------------------------------------------------------------------

    def _send(self, tree: OutputTree, is_again: bool) -> None:
        for start in range(0, len(tree.objects), PAGE):
            page = tree.objects[start : start + PAGE]
            # What was sent of a tree that changed meanwhile may be stored under the wrong name.
            self._send_page(tree, page, self._ask(tree, page, resend=is_again))
        manifest = self._ask(tree, [], resend=False).manifest
        if manifest is not None:
            self._put(Courier(), manifest, Bytes(tree.manifest), lambda: self._manifest(tree))

    def _send_page(self, tree: OutputTree, page: List[Stowed], reply: protocol.OutputReply) -> None:
        self._failure = None
        left = [one for one in page if one.name in reply.missing]
        threads = [
            threading.Thread(target=self._work, args=(tree, left, reply), daemon=True, name="outputs")
            for _ in range(min(_CONNECTIONS, len(left)))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self._failure is not None:
            raise self._failure

    def _work(self, tree: OutputTree, left: List[Stowed], reply: protocol.OutputReply) -> None:
        courier = Courier()
        try:
            while self._failure is None:
                with self._lock:
                    if not left:
                        return
                    one = left.pop()
                self._put(courier, reply.missing[one.name], tree.body(one), functools.partial(self._object, tree, one))
                self._patience.check()
        except Exception as error:
            self._failure = error
        finally:
            courier.close()

    def _object(self, tree: OutputTree, one: Stowed) -> protocol.Signed:
        return self._ask(tree, [one], resend=True).missing[one.name]

    def _manifest(self, tree: OutputTree) -> protocol.Signed:
        """Without one the manifest is there: whoever asks has been refused, and finds out by asking the server."""
        found = self._ask(tree, [], resend=False).manifest
        if found is None:
            raise _Incomplete("the manifest was refused and is there")
        return found

    def _put(
        self, courier: Courier, signed: protocol.Signed, body: Body, sign_again: Callable[[], protocol.Signed]
    ) -> None:
        backoff, refusals = Backoff(), 0
        while True:
            self._check_wanted()
            try:
                courier.put(signed, body, self._patience.moved)
                return
            except Declined as error:
                refusals += 1
                if error.status == FULL and refusals < _FULL_TRIES:
                    self._rest(float(refusals), str(error))
                elif error.is_expired and refusals <= _RENEWALS:
                    signed = sign_again()
                else:
                    raise Failed("storage refuses them: %s" % error) from error
            except Unreachable as error:
                self._rest(backoff.next_s(), str(error))

    # --- the server -----------------------------------------------------------------------------

    def _ask(self, tree: OutputTree, objects: List[Stowed], resend: bool) -> protocol.OutputReply:
        body = protocol.output_request(self._launch, tree.digest, [(one.name, one.size) for one in objects], resend)
        reply: protocol.OutputReply = self._patiently("/agent/v1/outputs", body, protocol.OutputReply)
        return reply

    def _confirm(self, tree: OutputTree) -> None:
        self._patiently("/agent/v1/outputs/whole", protocol.whole_request(self._launch, tree.digest), lambda _: None)

    def _patiently(self, path: str, body: bytes, read: Callable[[Any], Any]) -> Any:
        backoff = Backoff()
        while True:
            self._check_wanted()
            try:
                with self._link_lock:
                    answer = self._link.call("POST", path, body, _TIMEOUT_S)
                if answer.is_ok:
                    self._patience.moved(1)
                    return read(answer.data)
                problem = self._judged(answer)
            except (Unanswered, protocol.Malformed) as error:
                problem = str(error)
            self._rest(backoff.next_s(), problem)

    def _judged(self, answer: Answer) -> str:
        """What to say of an answer that may be another one later."""
        if may_pass(answer) or answer.status == _REFUSED_STORAGE:
            return "the server says %s" % answer.complaint()
        if answer.status == _CONFLICT:
            raise _Incomplete(answer.complaint())
        raise Failed("the server does not take them: %s" % answer.complaint())

    # --- patience -------------------------------------------------------------------------------

    def _check_wanted(self) -> None:
        if self._closed.is_set():
            raise Interrupted

    def _rest(self, seconds: float, problem: str) -> None:
        self._words.say_once("outputs", problem)
        self._patience.check(problem)
        self._closed.wait(seconds)
