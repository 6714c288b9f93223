"""
Example: Running nanoGPT with automatic backend selection

This example shows how to:
1. Let the platform choose the best backend
2. Handle interruptions gracefully
3. Monitor costs across providers

Run it: `python examples/sdk_seed003.py`. The body of `main` is seed 003's example, to the letter; its `async for` needs
a coroutine around it. Without a server configured, one is started on this computer and stays: `crucible server stop`.
"""
# ruff: noqa: SIM115, ASYNC230 (its words, not ours)

import asyncio
import os
from pathlib import Path

from crucible import MLPlatform, Requirements


# fmt: off
async def main():
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
# fmt: on


if __name__ == "__main__":
    os.chdir(Path(__file__).parent)  # where nanogpt_train.py is
    asyncio.run(main())
