"""Trains a small network to tell two interleaved spirals apart, on any number of ranks.

Runs under Crucible, and alone: `python train.py`. The data of a step depend on the step only, and a checkpoint holds
the whole state of the optimizer, so a run that was killed and resumed ends with the same loss as one that was not, bit
for bit."""

import os
import sys
import tempfile
import time

# More threads add up numbers in another order, which changes the last bits.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from allreduce import Gang

from crucible import train

STEPS = int(os.environ.get("STEPS", "500"))
STEP_SECONDS = float(os.environ.get("STEP_SECONDS", "0.025"))  # a step of a real model takes its time; 0 is full speed
SAVE_EVERY = int(os.environ.get("SAVE_EVERY", "50"))

SEED = 7
POINTS = 2048
BATCH = 256  # over all ranks
SHAPES = [(2, 48), (48,), (48, 48), (48,), (48, 1), (1,)]
SIZES = [int(np.prod(shape)) for shape in SHAPES]
LEARNING_RATE, BETA1, BETA2 = 0.005, 0.9, 0.999

STOPPED = 143  # asked to stop before the end: not a success


def main() -> int:
    run = train.init()
    address, port = os.environ.get("MASTER_ADDR", "127.0.0.1"), int(os.environ.get("MASTER_PORT") or 0)
    try:
        gang = Gang(run.rank, run.world_size, run.attempt, address, port)
        return learn(gang, run.rank, run.world_size)
    except (ConnectionError, TimeoutError) as error:
        print(f"rank {run.rank} has no gang: {error}", file=sys.stderr)
        return 1


def learn(gang: Gang, rank: int, world_size: int) -> int:
    points, labels = spirals()
    step, state = resume(gang, rank)
    while step < STEPS:
        began = time.monotonic()
        batch = np.random.default_rng([SEED, step]).integers(POINTS, size=BATCH)[rank::world_size]
        loss, gradient = loss_and_gradient(state[0], points[batch], labels[batch])
        # The wish to stop travels with the gradient: all ranks stop at the same step.
        shared = gang.sum(np.concatenate([gradient, [loss, float(train.should_stop())]]))
        step += 1
        adam(state, shared[:-2] / world_size, step)
        report(step, shared[-2] / world_size, rank)
        must_stop = shared[-1] > 0
        if rank == 0 and (step % SAVE_EVERY == 0 or step == STEPS or must_stop):
            save(step, state, shared[-2] / world_size)
        if must_stop and step < STEPS:
            print(f"stopped at step {step}", flush=True)
            return STOPPED
        time.sleep(max(0.0, STEP_SECONDS - (time.monotonic() - began)))
    if rank == 0:
        print(f"final loss {loss_and_gradient(state[0], points, labels)[0]:.10f}", flush=True)
    return 0


def resume(gang: Gang, rank: int) -> tuple[int, np.ndarray]:
    """The step and the state (weights and Adam's two moments) to go on from; rank 0 looks, and tells the others."""
    found = np.zeros(1 + 3 * sum(SIZES))
    if rank == 0:
        newest = train.latest_checkpoint()
        if newest is None:
            found[1 : 1 + sum(SIZES)] = first_weights()
        else:
            found[0] = newest.step
            found[1:] = np.load(newest.path)["state"].ravel()
            print(f"resumed from step {newest.step}", flush=True)
    told = gang.sum(found)
    return int(told[0]), told[1:].reshape(3, -1).copy()


def save(step: int, state: np.ndarray, loss: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.npz")
        np.savez(path, state=state)
        train.save_checkpoint(path, step, {"loss": loss})


def report(step: int, loss: float, rank: int) -> None:
    if rank == 0:
        train.log(step, loss=loss)
        train.progress(step, STEPS)
        if step % 10 == 0 or step == STEPS:
            print(f"step {step} loss {loss:.6f}", flush=True)


# --- the model --------------------------------------------------------------------------------------------


def spirals() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(SEED)
    turn = np.sqrt(random.uniform(0.02, 1, POINTS)) * 2.5 * np.pi
    labels = np.arange(POINTS) % 2
    angle = turn + np.pi * labels
    points = np.stack([turn * np.cos(angle), turn * np.sin(angle)], axis=1) / 4
    return points + random.normal(0, 0.03, points.shape), labels[:, None].astype(np.float64)


def first_weights() -> np.ndarray:
    random = np.random.default_rng(SEED + 1)
    scales = [1 / np.sqrt(shape[0]) if len(shape) == 2 else 0.0 for shape in SHAPES]
    return np.concatenate([random.normal(0, scale, shape).ravel() for scale, shape in zip(scales, SHAPES, strict=True)])


def loss_and_gradient(weights: np.ndarray, x: np.ndarray, y: np.ndarray) -> tuple[float, np.ndarray]:
    """Mean cross entropy of a network with two hidden layers, and its derivative by every weight."""
    pieces = np.split(weights, np.cumsum(SIZES)[:-1])
    w1, b1, w2, b2, w3, b3 = (piece.reshape(shape) for piece, shape in zip(pieces, SHAPES, strict=True))
    h1 = np.tanh(x @ w1 + b1)
    h2 = np.tanh(h1 @ w2 + b2)
    score = h2 @ w3 + b3
    loss = np.mean(np.logaddexp(0, score) - y * score)
    d3 = (1 / (1 + np.exp(-score)) - y) / len(x)
    d2 = (d3 @ w3.T) * (1 - h2**2)
    d1 = (d2 @ w2.T) * (1 - h1**2)
    parts = [x.T @ d1, d1.sum(0), h1.T @ d2, d2.sum(0), h2.T @ d3, d3.sum(0)]
    return float(loss), np.concatenate([part.ravel() for part in parts])


def adam(state: np.ndarray, gradient: np.ndarray, step: int) -> None:
    weights, mean, square = state
    mean += (1 - BETA1) * (gradient - mean)
    square += (1 - BETA2) * (gradient**2 - square)
    weights -= LEARNING_RATE * (mean / (1 - BETA1**step)) / (np.sqrt(square / (1 - BETA2**step)) + 1e-8)


if __name__ == "__main__":
    sys.exit(main())
