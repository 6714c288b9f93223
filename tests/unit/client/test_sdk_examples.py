"""The example is the seed's, to the letter, and the model it trains is right."""

import ast
import importlib.util
import textwrap
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[3] / "examples"

# Seed 003, example_nanogpt_hybrid.py, from its first statement after the imports on.
SEED = """\
# Initialize platform
platform = MLPlatform()

# Define requirements
requirements = Requirements(
    gpu_memory_gb=16,
    duration_hours_estimated=3,
    checkpoint_frequency_minutes=30,
    interruptible=True,  # Allows spot instances
    max_cost_usd=10.00
)

# Submit with auto-selection
job = platform.submit(
    code=open('nanogpt_train.py').read(),
    requirements=requirements,
    preferences={
        'optimize_for': 'cost',  # or 'speed'
        'allowed_backends': None  # All backends
    }
)

# Monitor across backends
async for status in job.monitor():
    print(f"Backend: {status.backend}")
    print(f"Progress: {status.progress}%")
    print(f"Cost so far: ${status.cost:.2f}")

    if status.backend_changed:
        print(f"Migrated from {status.previous_backend} to {status.backend}")
"""


def test_the_body_of_the_example_is_the_seeds() -> None:
    source = (EXAMPLES / "sdk_seed003.py").read_text()
    (main,) = [node for node in ast.parse(source).body if isinstance(node, ast.AsyncFunctionDef)]
    body = "\n".join(source.splitlines()[main.lineno : main.end_lineno])
    assert textwrap.dedent(body) + "\n" == SEED
    assert "\nfrom crucible import MLPlatform, Requirements\n" in source


@pytest.fixture(scope="module")
def gpt() -> ModuleType:
    spec = importlib.util.spec_from_file_location("nanogpt_train", EXAMPLES / "nanogpt_train.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_gradient_is_the_slope_of_the_loss(gpt: ModuleType) -> None:
    random = np.random.default_rng(0)
    weights = gpt.first_weights() + random.normal(0, 0.05, gpt.SIZE)
    x, y = gpt.batch(3)
    gradient = gpt.loss_and_gradient(weights, x, y)[1]
    start, step = 0, 1e-5
    for name, shape in gpt.SHAPES.items():
        size = int(np.prod(shape))
        for index in random.integers(start, start + size, 3):
            up, down = weights.copy(), weights.copy()
            up[index] += step
            down[index] -= step
            slope = (gpt.loss_and_gradient(up, x, y)[0] - gpt.loss_and_gradient(down, x, y)[0]) / (2 * step)
            assert gradient[index] == pytest.approx(slope, rel=1e-4, abs=1e-8), name
        start += size


def test_it_learns_and_a_letter_never_sees_what_follows(gpt: ModuleType) -> None:
    state = np.stack([gpt.first_weights(), *np.zeros((2, gpt.SIZE))])
    losses = []
    for step in range(60):
        loss, gradient = gpt.loss_and_gradient(state[0], *gpt.batch(step))
        gpt.adam(state, gradient, step + 1)
        losses.append(loss)
    assert np.mean(losses[-5:]) < 0.75 * np.mean(losses[:5])
    hidden = gpt.views(state[0])["letters"][gpt.batch(0)[0]]
    changed = hidden.copy()
    changed[:, 20:] += 1.0
    before, after = (gpt.attend(one, gpt.views(state[0]), 0)[0] for one in (hidden, changed))
    assert np.array_equal(before[:, :20], after[:, :20]) and not np.array_equal(before[:, 20:], after[:, 20:])
