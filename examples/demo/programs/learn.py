"""Learns to tell two clouds of points apart by logistic regression, slowly: a step of a real model takes its time. Says
how it goes, saves now and then, and goes on from the newest checkpoint. Pure Python."""

import json
import math
import os
import random
import sys
import tempfile
import time

from crucible import train

STEPS = int(os.environ.get("STEPS", "200"))
STEP_SECONDS = float(os.environ.get("STEP_SECONDS", "0.5"))
SAVE_EVERY = int(os.environ.get("SAVE_EVERY", "20"))
FAIL_AT = int(os.environ.get("FAIL_AT", "0"))  # a batch that is broken; 0: none is
FEATURES, BATCH = 12, 64
STOPPED = 143  # asked to stop before the end: not a success


def main() -> int:
    run = train.init()
    step, weights = resume()
    while step < STEPS:
        began = time.monotonic()
        step += 1
        rate = 0.4 * (0.5 + 0.5 * math.cos(math.pi * step / STEPS))
        loss, accuracy = learn(weights, batch(step), rate)
        if run.rank == 0:
            report(step, loss, accuracy, rate, time.monotonic() - began)
        must_stop = train.should_stop()
        if run.rank == 0 and (step % SAVE_EVERY == 0 or step == STEPS or must_stop):
            save(step, weights, loss)
        if must_stop and step < STEPS:
            print(f"stopped at step {step}", flush=True)
            return STOPPED
        time.sleep(max(0.0, STEP_SECONDS - (time.monotonic() - began)))
    print(f"done: {STEPS} steps", flush=True)
    return 0


def resume() -> tuple:
    newest = train.latest_checkpoint()
    if newest is None:
        return 0, [0.0] * (FEATURES + 1)
    print(f"\033[32mresumed from step {newest.step}\033[0m", flush=True)
    with open(newest.path, encoding="utf-8") as file:
        return newest.step, json.load(file)


def batch(step: int) -> list:
    """The same for the same step, on whatever machine it is made."""
    if step == FAIL_AT:
        raise SystemExit(f"error: batch {step} has {BATCH} samples and {BATCH - 1} labels")
    chance = random.Random(step)
    points = []
    for n in range(BATCH):
        label = n % 2
        points.append(([chance.gauss(0.35 if label else -0.35, 1.0) for _ in range(FEATURES)], label))
    return points


def learn(weights: list, points: list, rate: float) -> tuple:
    """One step down the slope: the loss before it, and the share that was told apart."""
    loss, right, slope = 0.0, 0, [0.0] * len(weights)
    for x, label in points:
        score = weights[-1] + sum(weights[n] * value for n, value in enumerate(x))
        chance = 1 / (1 + math.exp(-score))
        loss -= math.log(max(chance if label else 1 - chance, 1e-12)) / len(points)
        right += (chance > 0.5) == bool(label)
        for n, value in enumerate([*x, 1.0]):
            slope[n] += (chance - label) * value / len(points)
    for n, one in enumerate(slope):
        weights[n] -= rate * one
    return loss, right / len(points)


def report(step: int, loss: float, accuracy: float, rate: float, took_s: float) -> None:
    train.log(step, loss=loss, accuracy=accuracy, learning_rate=rate, samples_per_s=BATCH / max(took_s, STEP_SECONDS))
    train.progress(step, STEPS)
    print(f"step {step:>5}/{STEPS}  loss {loss:.4f}  accuracy {accuracy:.3f}  lr {rate:.4f}", flush=True)
    if step % 25 == 0:
        print(f"\033[33mwarning: {step} batches were read from a cold cache\033[0m", file=sys.stderr, flush=True)


def save(step: int, weights: list, loss: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "weights.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(weights, file)
        train.save_checkpoint(path, step, {"loss": round(loss, 4)})


if __name__ == "__main__":
    sys.exit(main())
