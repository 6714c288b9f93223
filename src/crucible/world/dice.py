"""Chance, from a seed: names as the vendor gives them, and how long things take."""

from random import Random

# Of a spot request's short id.
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"


class Dice:
    """Names come from a stream of their own: with another `salt` the same game is played under other names, as a vendor
    never gives a name twice."""

    def __init__(self, seed: int, salt: str = "") -> None:
        self._random = Random(seed)  # noqa: S311 (a game that can be played again, not a secret)
        self._names = Random(f"{seed}/{salt}")  # noqa: S311

    def id(self, prefix: str) -> str:
        return f"{prefix}-0{self._names.getrandbits(64):016x}"

    def request_id(self) -> str:
        return "sir-" + "".join(self._names.choice(_LETTERS) for _ in range(8))

    def between(self, bounds: tuple[float, float]) -> float:
        return self._random.uniform(*bounds)

    def luck(self) -> float:
        return self._random.random()
