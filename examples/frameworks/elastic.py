"""A PyTorch training for machines that come and go: started by an elastic torchrun, it begins again from its newest
checkpoint whenever the number of processes changes. The global batch stays the same, whoever computes which part."""

import hashlib
import os
import tempfile
import time

import torch
import torch.distributed as dist

from crucible import train

STEPS = int(os.environ.get("STEPS", "100"))
SAVE_EVERY = int(os.environ.get("SAVE_EVERY", "5"))
STEP_SECONDS = float(os.environ.get("STEP_SECONDS", "0"))
BATCH = 48
STOPPED = 143


def main() -> int:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world_size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(7)
    net = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    step = resume(net, optimizer, rank)
    print(f"rank {rank} of {world_size} begins after step {step}", flush=True)
    while step < STEPS:
        step += 1
        loss, must_stop = learn(net, optimizer, step, rank, world_size)
        if rank == 0:
            train.log(step, loss=loss)
            train.progress(step, STEPS)
            if step % SAVE_EVERY == 0 or step == STEPS or must_stop:
                save(net, optimizer, step)
                print(f"step {step} loss {loss:.6f} with {world_size}", flush=True)
        if must_stop and step < STEPS:
            return STOPPED
        time.sleep(STEP_SECONDS)
    if rank == 0:
        print(f"final loss {loss:.8f} weights {digest(net)}", flush=True)
    dist.destroy_process_group()
    return 0


def learn(
    net: torch.nn.Module, optimizer: torch.optim.Optimizer, step: int, rank: int, world_size: int
) -> tuple[float, bool]:
    """One step over the whole batch: the loss, and whether anybody was asked to stop."""
    random = torch.Generator().manual_seed(step)
    x = torch.randn(BATCH, 8, generator=random)
    y = torch.sin(x.sum(dim=1, keepdim=True))
    optimizer.zero_grad()
    # A sum over our part, divided by the whole batch: parts of any size add up to the same mean.
    loss = torch.nn.functional.mse_loss(net(x[rank::world_size]), y[rank::world_size], reduction="sum") / BATCH
    loss.backward()
    shared = torch.cat([part.grad.flatten() for part in net.parameters()])
    shared = torch.cat([shared, torch.tensor([loss.item(), float(train.should_stop())])])
    dist.all_reduce(shared)
    at = 0
    for part in net.parameters():
        part.grad.copy_(shared[at : at + part.numel()].view_as(part))
        at += part.numel()
    optimizer.step()
    return float(shared[-2]), bool(shared[-1] > 0)


def resume(net: torch.nn.Module, optimizer: torch.optim.Optimizer, rank: int) -> int:
    """Everybody looks for a checkpoint, and whoever has the newest tells the others: rank 0 may be another after every
    change of members, and machines that have just come have what was in storage then."""
    newest = train.latest_checkpoint()
    steps = [torch.tensor(0) for _ in range(dist.get_world_size())]
    dist.all_gather(steps, torch.tensor(newest.step if newest is not None else 0))
    owner = max(range(len(steps)), key=lambda one: int(steps[one]))
    if not steps[owner]:
        return 0
    told: list[object] = [None]
    if newest is not None and rank == owner:
        told = [(newest.step, torch.load(newest.path, weights_only=True))]
    dist.broadcast_object_list(told, src=owner)
    step, state = told[0]
    net.load_state_dict(state["net"])
    optimizer.load_state_dict(state["optimizer"])
    return int(step)


def save(net: torch.nn.Module, optimizer: torch.optim.Optimizer, step: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "state.pt")
        torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict()}, path)
        train.save_checkpoint(path, step)


def digest(net: torch.nn.Module) -> str:
    content = b"".join(part.detach().numpy().tobytes() for part in net.state_dict().values())
    return hashlib.sha256(content).hexdigest()[:16]


if __name__ == "__main__":
    raise SystemExit(main())
