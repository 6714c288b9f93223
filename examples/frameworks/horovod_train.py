"""A Horovod training of fixed size: one worker saves with crucible.train, all begin from what it saved."""

import hashlib
import os
import tempfile
import time

import horovod.torch as hvd
import torch

from crucible import train

STEPS = int(os.environ.get("STEPS", "40"))
SAVE_EVERY = int(os.environ.get("SAVE_EVERY", "10"))
STEP_SECONDS = float(os.environ.get("STEP_SECONDS", "0"))
BATCH = 48


def main() -> None:
    torch.set_num_threads(1)
    hvd.init()
    torch.manual_seed(7)
    net = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(net.parameters(), lr=0.05), net.named_parameters())
    newest = train.latest_checkpoint() if hvd.rank() == 0 else None
    if newest is not None:
        net.load_state_dict(torch.load(newest.path, weights_only=True))
    step = int(hvd.broadcast(torch.tensor(newest.step if newest else 0), root_rank=0))
    hvd.broadcast_parameters(net.state_dict(), root_rank=0)
    print(f"worker {hvd.rank()} of {hvd.size()} begins after step {step}", flush=True)
    while step < STEPS:
        step += 1
        random = torch.Generator().manual_seed(step)
        x = torch.randn(BATCH, 8, generator=random)
        y = torch.sin(x.sum(dim=1, keepdim=True))
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(net(x[hvd.rank() :: hvd.size()]), y[hvd.rank() :: hvd.size()])
        loss.backward()
        optimizer.step()
        if hvd.rank() == 0:
            train.progress(step, STEPS)
            if step % SAVE_EVERY == 0:
                save(net, step)
                print(f"step {step} loss {loss.item():.6f}", flush=True)
        time.sleep(STEP_SECONDS)
    if hvd.rank() == 0:
        content = b"".join(part.detach().numpy().tobytes() for part in net.state_dict().values())
        print(f"final weights {hashlib.sha256(content).hexdigest()[:16]}", flush=True)
    hvd.shutdown()


def save(net: torch.nn.Module, step: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "net.pt")
        torch.save(net.state_dict(), path)
        train.save_checkpoint(path, step)


if __name__ == "__main__":
    main()
