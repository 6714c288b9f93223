"""Inputs that a person, a broken program or an enemy might send: specs in YAML and bodies in JSON, good ones spoiled
and bad ones made up. The same seed makes the same inputs."""

import json
import string
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

ODD_SCALARS = (
    "~", "null", "yes", "no", "010", "0x10", "1e309", "-1", "1:30", ".inf", "-.inf", ".nan", "9" * 40, "''",
    '"\\u0000"', '"\\ud800"', "2027-01-01", "2027-13-45T99:99:99Z", "!!binary aGk=", "!!python/object:os.system x",
    "!!set {a}", "&a x", "*a", "<<: *a", "[", "{", "[]", "{}", "[1, [2, [3]]]", "{a: {b: c}}", "80GB", "80 GB",
    "-5GB", "1e400GB", "$5", "$-5", "s3://", "file:///etc/passwd", "http://169.254.169.254/", "../../../etc",
    "$(touch canary)", "`touch canary`", "'; DROP TABLE jobs; --", "\U0001f525", "ü" * 50, "a" * 5000, "\u202e",
    "%s%n", "|\n      x", ">-\n  y",
)  # fmt: skip
ODD_LINES = (
    "\t", "---", "...", "- ", "? ", ": ", "%YAML 9.9", "<<: *nothing", "job:", "  job: {}", "x" * 300, "\ufeff",
    "\x00", "\x85", "- - - - - -", "&a [*a]", "!<tag:x> y", "'", '"', "|", "#", "@", "`",
)  # fmt: skip
ODD_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 2**31, 2**53, 2**63, 2**64, 10**30, -(10**30), 1.5, 1e308, 1e-320, "", " ", "\x00",
    "\x7f", "null", "a" * 300, "a" * 5000, "\U0001f525", "\u202e", "../x", "%2e%2e", "x\r\ny", [], {}, [[]], [None],
    {"": None}, {"a": []}, "2027-01-01T00:00:00Z", "2027-01-01T00:00:00", "9999-12-31T23:59:59.999999+14:00",
    "not a time",
)  # fmt: skip
WORDS = ("job", "name", "gpus", "team", "budget", "a", "é", "$", "", " ", "__class__", "constructor")


# --- YAML ---------------------------------------------------------------------------------------------


def spoiled_yaml(chance: Random, good: Sequence[str]) -> bytes:
    """Mostly a good spec with a few things wrong; now and then nothing of a spec at all."""
    roll = chance.random()
    if roll < 0.05:
        return chance.randbytes(chance.randrange(400))
    if roll < 0.12:
        signs = " \n:-[]{}'\"#&*!|>%@`?,ajob01~<\t\\"
        return "".join(chance.choices(signs, k=chance.randrange(200))).encode()
    lines = chance.choice(good).splitlines()
    for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
        chance.choice(LINE_SPOILERS)(chance, lines)
    content = "\n".join(lines).encode("utf-8", "replace")
    if chance.random() < 0.1:
        content = _spoiled_bytes(chance, content)
    return content


def _other_scalar(chance: Random, lines: list[str]) -> None:
    at = _some_line(chance, lines)
    head, colon, _ = lines[at].partition(":")
    lines[at] = f"{head}{colon} {chance.choice(ODD_SCALARS)}" if colon else f"{head} {chance.choice(ODD_SCALARS)}"


def _lost_line(chance: Random, lines: list[str]) -> None:
    if len(lines) > 1:
        del lines[_some_line(chance, lines)]


def _twice(chance: Random, lines: list[str]) -> None:
    at = _some_line(chance, lines)
    lines.insert(at, lines[at])


def _moved(chance: Random, lines: list[str]) -> None:
    lines.insert(_some_line(chance, lines), lines.pop(_some_line(chance, lines)))


def _indented(chance: Random, lines: list[str]) -> None:
    at = _some_line(chance, lines)
    lines[at] = " " * chance.randrange(9) + lines[at].lstrip()


def _odd_line(chance: Random, lines: list[str]) -> None:
    lines.insert(_some_line(chance, lines), chance.choice(ODD_LINES))


def _misspelt(chance: Random, lines: list[str]) -> None:
    at = _some_line(chance, lines)
    if lines[at]:
        place = chance.randrange(len(lines[at]))
        lines[at] = lines[at][:place] + chance.choice(string.printable) + lines[at][place + chance.randrange(2) :]


def _unknown_key(chance: Random, lines: list[str]) -> None:
    at = _some_line(chance, lines)
    indent = len(lines[at]) - len(lines[at].lstrip())
    lines.insert(at, f"{' ' * indent}{chance.choice(WORDS)}: {chance.choice(ODD_SCALARS)}")


def _deep(chance: Random, lines: list[str]) -> None:
    depth = chance.choice((5, 40, 400, 3000))
    lines.insert(_some_line(chance, lines), f"  deep: {'[' * depth}{']' * depth}")


def _cut_off(chance: Random, lines: list[str]) -> None:
    del lines[_some_line(chance, lines) + 1 :]
    lines[-1] = lines[-1][: chance.randrange(len(lines[-1]) + 1)]


LINE_SPOILERS = (
    _other_scalar, _other_scalar, _other_scalar, _lost_line, _twice, _moved, _indented, _odd_line, _misspelt,
    _unknown_key, _deep, _cut_off,
)  # fmt: skip


def _some_line(chance: Random, lines: list[str]) -> int:
    if not lines:
        lines.append("")
    return chance.randrange(len(lines))


# --- JSON ---------------------------------------------------------------------------------------------


def spoiled_json(chance: Random, good: Any) -> bytes:
    """`good` with something else somewhere in it, or with its text broken."""
    roll = chance.random()
    if roll < 0.05:
        return chance.randbytes(chance.randrange(200))
    if roll < 0.1:
        depth = chance.choice((10, 1000, 50_000))
        return b"[" * depth + b"]" * depth
    value = good
    for _ in range(chance.choice((1, 1, 2, 4))):
        value = _spoiled(chance, value)
    text = json.dumps(value)
    if chance.random() < 0.05:
        text = text.replace("null", chance.choice(("NaN", "Infinity", "undefined", "1e999")))
    content = text.encode()
    return _spoiled_bytes(chance, content) if chance.random() < 0.1 else content


def _spoiled(chance: Random, value: Any) -> Any:
    if isinstance(value, Mapping) and value and chance.random() < 0.85:
        key = chance.choice(sorted(value))
        roll = chance.random()
        if roll < 0.15:
            return {name: one for name, one in value.items() if name != key}
        if roll < 0.3:
            return {**value, chance.choice(WORDS): chance.choice(ODD_VALUES)}
        return {**value, key: _spoiled(chance, value[key])}
    if isinstance(value, list) and value and chance.random() < 0.7:
        at = chance.randrange(len(value))
        return [*value[:at], _spoiled(chance, value[at]), *value[at + 1 :]]
    return chance.choice(ODD_VALUES)


def _spoiled_bytes(chance: Random, content: bytes) -> bytes:
    at = chance.randrange(len(content) + 1)
    match chance.randrange(3):
        case 0:
            return content[:at]
        case 1:
            return content[:at] + chance.randbytes(chance.randrange(1, 5)) + content[at:]
        case _:
            return content[:at] + content[at + chance.randrange(1, 5) :]


def made_up(chance: Random, schema: Mapping[str, Any], parts: Mapping[str, Any], depth: int = 0) -> Any:
    """Something that a JSON Schema allows, more or less: what is spoiled next must not be refused at its first byte."""
    if "$ref" in schema:
        return made_up(chance, parts[str(schema["$ref"]).rsplit("/", 1)[-1]], parts, depth)
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            return made_up(chance, chance.choice(schema[several]), parts, depth)
    if "enum" in schema:
        return chance.choice(schema["enum"])
    if "const" in schema:
        return schema["const"]
    match schema.get("type"):
        case "object":
            return _made_up_object(chance, schema, parts, depth)
        case "array":
            count = 0 if depth > 4 else chance.randrange(schema.get("minItems", 0), schema.get("minItems", 0) + 3)
            return [made_up(chance, schema.get("items", {}), parts, depth + 1) for _ in range(count)]
        case "string":
            return "2030-01-01T00:00:00Z" if schema.get("format") == "date-time" else chance.choice(("a", "abc", "x-1"))
        case "integer":
            return chance.randrange(int(schema.get("minimum", 0)), int(schema.get("minimum", 0)) + 5)
        case "number":
            return float(schema.get("minimum", 0)) + chance.random()
        case "boolean":
            return chance.random() < 0.5
        case _:
            return None


def _made_up_object(chance: Random, schema: Mapping[str, Any], parts: Mapping[str, Any], depth: int) -> Any:
    required = set(schema.get("required", ()))
    return {
        name: made_up(chance, one, parts, depth + 1)
        for name, one in schema.get("properties", {}).items()
        if name in required or (depth < 5 and chance.random() < 0.6)
    }
