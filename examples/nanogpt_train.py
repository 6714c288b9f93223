"""Trains a small GPT on the letters of a sonnet: attention, layer norms and their derivatives written out in numpy.

Runs under Crucible, and alone: `python nanogpt_train.py`. The batch of a step depends on the step only, and a
checkpoint holds the whole state of the optimizer, so a run that was killed and resumed ends with the same loss as one
that was not, bit for bit."""

import os
import sys
import tempfile
import time

# More threads add up numbers in another order, which changes the last bits.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from crucible import train

STEPS = int(os.environ.get("STEPS", "300"))
STEP_SECONDS = float(os.environ.get("STEP_SECONDS", "0.02"))  # a step of a real model takes its time; 0 is full speed
SAVE_EVERY = int(os.environ.get("SAVE_EVERY", "50"))  # steps; and as often as the job asks for
SAVE_SECONDS = float(os.environ.get("CRUCIBLE_CHECKPOINT_INTERVAL_S", "inf"))

SEED = 1337
BATCH, CONTEXT, WIDTH, HEADS, LAYERS = 8, 32, 32, 4, 2
LEARNING_RATE, BETA1, BETA2 = 0.003, 0.9, 0.99
STOPPED = 143  # asked to stop before the end: not a success

# Shakespeare, sonnet 18.
TEXT = """\
Shall I compare thee to a summer's day?
Thou art more lovely and more temperate:
Rough winds do shake the darling buds of May,
And summer's lease hath all too short a date;
Sometime too hot the eye of heaven shines,
And often is his gold complexion dimm'd;
And every fair from fair sometime declines,
By chance or nature's changing course untrimm'd;
But thy eternal summer shall not fade,
Nor lose possession of that fair thou ow'st;
Nor shall death brag thou wander'st in his shade,
When in eternal lines to time thou grow'st:
So long as men can breathe or eyes can see,
So long lives this, and this gives life to thee.
"""
LETTERS = sorted(set(TEXT))
DATA = np.array([LETTERS.index(letter) for letter in TEXT])


def main() -> int:
    step, state = resume()
    saved_at = time.monotonic()
    while step < STEPS:
        began = time.monotonic()
        loss, gradient = loss_and_gradient(state[0], *batch(step))
        step += 1
        adam(state, gradient, step)
        report(step, loss)
        must_stop = train.should_stop()
        is_time = step % SAVE_EVERY == 0 or time.monotonic() - saved_at >= SAVE_SECONDS
        if is_time or step == STEPS or must_stop:
            save(step, state, loss)
            saved_at = time.monotonic()
        if must_stop and step < STEPS:
            print(f"stopped at step {step}", flush=True)
            return STOPPED
        time.sleep(max(0.0, STEP_SECONDS - (time.monotonic() - began)))
    print(f"it writes: {sample(state[0], 'Shall', 60)!r}")
    print(f"final loss {loss_and_gradient(state[0], *batch(STEPS))[0]:.10f}", flush=True)
    return 0


def resume() -> tuple[int, np.ndarray]:
    """The step and the state (weights and Adam's two moments) to go on from."""
    newest = train.latest_checkpoint()
    if newest is None:
        return 0, np.stack([first_weights(), *np.zeros((2, SIZE))])
    print(f"resumed from step {newest.step}", flush=True)
    return newest.step, np.load(newest.path, allow_pickle=False)["state"]


def save(step: int, state: np.ndarray, loss: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.npz")
        np.savez(path, state=state)
        train.save_checkpoint(path, step, {"loss": loss})


def report(step: int, loss: float) -> None:
    train.log(step, loss=loss)
    train.progress(step, STEPS)
    if step % 10 == 0 or step == STEPS:
        print(f"step {step} loss {loss:.6f}", flush=True)


def batch(step: int) -> tuple[np.ndarray, np.ndarray]:
    """Pieces of the text, and the same pieces one letter on."""
    starts = np.random.default_rng([SEED, step]).integers(len(DATA) - CONTEXT, size=BATCH)
    where = starts[:, None] + np.arange(CONTEXT)
    return DATA[where], DATA[where + 1]


def adam(state: np.ndarray, gradient: np.ndarray, step: int) -> None:
    weights, mean, square = state
    mean += (1 - BETA1) * (gradient - mean)
    square += (1 - BETA2) * (gradient**2 - square)
    weights -= LEARNING_RATE * (mean / (1 - BETA1**step)) / (np.sqrt(square / (1 - BETA2**step)) + 1e-8)


# --- the model --------------------------------------------------------------------------------------------

SHAPES: dict[str, tuple[int, ...]] = {"letters": (len(LETTERS), WIDTH), "places": (CONTEXT, WIDTH), "scale": (WIDTH,)}
for _layer in range(LAYERS):
    SHAPES |= {
        f"{_layer}.scale1": (WIDTH,),
        f"{_layer}.qkv": (WIDTH, 3 * WIDTH),
        f"{_layer}.join": (WIDTH, WIDTH),
        f"{_layer}.scale2": (WIDTH,),
        f"{_layer}.up": (WIDTH, 4 * WIDTH),
        f"{_layer}.down": (4 * WIDTH, WIDTH),
    }
SIZE = sum(int(np.prod(shape)) for shape in SHAPES.values())


def views(flat: np.ndarray) -> dict[str, np.ndarray]:
    """The matrices that live in one long vector."""
    found, start = {}, 0
    for name, shape in SHAPES.items():
        size = int(np.prod(shape))
        found[name] = flat[start : start + size].reshape(shape)
        start += size
    return found


def first_weights() -> np.ndarray:
    random = np.random.default_rng(SEED)
    flat = np.empty(SIZE)
    for name, view in views(flat).items():
        view[:] = 1.0 if "scale" in name else random.normal(0, 0.08, view.shape)
    return flat


def loss_and_gradient(flat: np.ndarray, x: np.ndarray, y: np.ndarray) -> tuple[float, np.ndarray]:
    """Mean cross entropy of the next letter, and its derivative by every weight."""
    w, gradient = views(flat), np.zeros(SIZE)
    d = views(gradient)
    hidden, kept = w["letters"][x] + w["places"][: x.shape[1]], []
    for layer in range(LAYERS):
        hidden, attention = attend(hidden, w, layer)
        hidden, mlp = think(hidden, w, layer)
        kept.append((attention, mlp))
    normal, norm = normalise(hidden, w["scale"])
    share = softmax(normal @ w["letters"].T)
    picked = np.take_along_axis(share, y[..., None], -1)
    loss = float(-np.mean(np.log(picked)))

    d_scores = share.copy()
    np.put_along_axis(d_scores, y[..., None], picked - 1, -1)
    d_scores /= y.size
    d["letters"] += np.einsum("btv,btc->vc", d_scores, normal)
    d_hidden = back_normalise(d_scores @ w["letters"], norm, d["scale"])
    for layer in reversed(range(LAYERS)):
        attention, mlp = kept[layer]
        d_hidden = back_think(d_hidden, mlp, w, d, layer)
        d_hidden = back_attend(d_hidden, attention, w, d, layer)
    np.add.at(d["letters"], x, d_hidden)
    d["places"][: x.shape[1]] += d_hidden.sum(0)
    return loss, gradient


def attend(hidden: np.ndarray, w: dict, layer: int) -> tuple[np.ndarray, tuple]:
    """Every letter looks back at the letters before it, through several heads at once."""
    normal, norm = normalise(hidden, w[f"{layer}.scale1"])
    q, k, v = (heads(part) for part in np.split(normal @ w[f"{layer}.qkv"], 3, -1))
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    share = softmax(np.where(np.tri(scores.shape[-1], dtype=bool), scores, -1e30))
    mixed = unheads(share @ v)
    return hidden + mixed @ w[f"{layer}.join"], (norm, normal, q, k, v, share, mixed)


def back_attend(d_out: np.ndarray, kept: tuple, w: dict, d: dict, layer: int) -> np.ndarray:
    norm, normal, q, k, v, share, mixed = kept
    d[f"{layer}.join"] += np.einsum("btc,btd->cd", mixed, d_out)
    d_mixed = heads(d_out @ w[f"{layer}.join"].T)
    d_share = d_mixed @ v.swapaxes(-1, -2)
    d_scores = share * (d_share - (d_share * share).sum(-1, keepdims=True)) / np.sqrt(q.shape[-1])
    parts = d_scores @ k, d_scores.swapaxes(-1, -2) @ q, share.swapaxes(-1, -2) @ d_mixed
    d_qkv = np.concatenate([unheads(part) for part in parts], -1)
    d[f"{layer}.qkv"] += np.einsum("btc,btd->cd", normal, d_qkv)
    return d_out + back_normalise(d_qkv @ w[f"{layer}.qkv"].T, norm, d[f"{layer}.scale1"])


def think(hidden: np.ndarray, w: dict, layer: int) -> tuple[np.ndarray, tuple]:
    """Every letter for itself."""
    normal, norm = normalise(hidden, w[f"{layer}.scale2"])
    active = np.maximum(normal @ w[f"{layer}.up"], 0)
    return hidden + active @ w[f"{layer}.down"], (norm, normal, active)


def back_think(d_out: np.ndarray, kept: tuple, w: dict, d: dict, layer: int) -> np.ndarray:
    norm, normal, active = kept
    d[f"{layer}.down"] += np.einsum("btc,btd->cd", active, d_out)
    d_active = (d_out @ w[f"{layer}.down"].T) * (active > 0)
    d[f"{layer}.up"] += np.einsum("btc,btd->cd", normal, d_active)
    return d_out + back_normalise(d_active @ w[f"{layer}.up"].T, norm, d[f"{layer}.scale2"])


def normalise(hidden: np.ndarray, scale: np.ndarray) -> tuple[np.ndarray, tuple]:
    centred = hidden - hidden.mean(-1, keepdims=True)
    width = np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
    return centred / width * scale, (centred / width, width, scale)


def back_normalise(d_out: np.ndarray, kept: tuple, d_scale: np.ndarray) -> np.ndarray:
    unit, width, scale = kept
    d_scale += (d_out * unit).sum((0, 1))
    d_unit = d_out * scale
    return (d_unit - d_unit.mean(-1, keepdims=True) - unit * (d_unit * unit).mean(-1, keepdims=True)) / width


def softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def heads(hidden: np.ndarray) -> np.ndarray:
    return hidden.reshape(*hidden.shape[:2], HEADS, -1).swapaxes(1, 2)


def unheads(mixed: np.ndarray) -> np.ndarray:
    return mixed.swapaxes(1, 2).reshape(mixed.shape[0], mixed.shape[2], -1)


def sample(flat: np.ndarray, start: str, length: int) -> str:
    """What it thinks comes next, letter by letter, always the likeliest."""
    w, letters = views(flat), [LETTERS.index(letter) for letter in start]
    while len(letters) < length:
        x = np.array([letters[-CONTEXT:]])
        hidden = w["letters"][x] + w["places"][: x.shape[1]]
        for layer in range(LAYERS):
            hidden = think(attend(hidden, w, layer)[0], w, layer)[0]
        letters.append(int(np.argmax(normalise(hidden, w["scale"])[0][0, -1] @ w["letters"].T)))
    return "".join(LETTERS[letter] for letter in letters)


if __name__ == "__main__":
    sys.exit(main())
