"""What GPUs this computer has, by asking nvidia-smi. An answer that is missing, late or garbled means none, with the
reason: a computer without GPUs is the usual case, not an error."""

import subprocess
import threading
from collections.abc import Sequence
from dataclasses import dataclass

from crucible.core.gpu_names import model_name

QUERY = ("nvidia-smi", "--query-gpu=index,name,memory.total", "--format=csv,noheader,nounits")
# nvidia-smi answers within a second, or hangs on a broken driver.
TIMEOUT_S = 5.0
# Sixteen GPUs fill about a kibibyte.
MAX_ANSWER_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class Gpu:
    index: str
    model: str  # "H100"
    memory_gib: float


@dataclass(frozen=True, slots=True)
class Detection:
    gpus: tuple[Gpu, ...]
    reason: str | None = None  # why there are none


def detect_gpus(timeout_s: float = TIMEOUT_S) -> Detection:
    """Blocks for at most `timeout_s`."""
    try:
        answer = ask(QUERY, timeout_s)
    except FileNotFoundError:
        return Detection((), "nvidia-smi is not installed")
    except TimeoutError:
        return Detection((), f"nvidia-smi gave no answer within {timeout_s:g} s: the driver may hang")
    except OSError as error:
        return Detection((), f"nvidia-smi cannot be started: {error.strerror}")
    except subprocess.CalledProcessError as error:
        return Detection((), f"nvidia-smi ended with code {error.returncode}: {first_line(error.output)}")
    return parse(answer.decode("utf-8", "replace"))


def parse(answer: str) -> Detection:
    """All lines or none: half an answer would give out GPUs under wrong numbers."""
    gpus: list[Gpu] = []
    for line in filter(None, map(str.strip, answer.splitlines())):
        fields = [field.strip() for field in line.split(",")]
        if len(fields) != 3 or not fields[0].isdecimal() or not fields[2].isdecimal():
            return Detection((), f"nvidia-smi answered what is not understood: {line[:100]!r}")
        gpus.append(Gpu(str(int(fields[0])), model_name(fields[1]), float(round(int(fields[2]) / 1024))))
    if len({gpu.index for gpu in gpus}) != len(gpus):
        return Detection((), "nvidia-smi gave one number to two GPUs")
    return Detection(tuple(gpus), None if gpus else "nvidia-smi lists no GPU")


def ask(argv: Sequence[str], timeout_s: float) -> bytes:
    """Standard output of a program. Raises OSError, TimeoutError, CalledProcessError. A program that cannot even be
    killed (it waits inside the driver) is left to a thread of its own."""
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    answer: list[bytes] = []

    def listen() -> None:
        with process:
            assert process.stdout is not None
            answer.append(process.stdout.read(MAX_ANSWER_BYTES))

    listener = threading.Thread(target=listen, name="nvidia-smi", daemon=True)
    listener.start()
    listener.join(timeout_s)
    if listener.is_alive():
        process.kill()
        raise TimeoutError
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, list(argv), b"".join(answer))
    return b"".join(answer)


def first_line(output: bytes) -> str:
    lines = output.decode("utf-8", "replace").strip().splitlines()
    return lines[0][:200] if lines else "no output"
