"""A plain PyTorch DDP training that knows nothing of Crucible: env:// initialisation, a checkpoint file of its own.

The data of a step depend on the step only, and the checkpoint holds the whole state: a run that was killed and started
again ends with the same weights, bit for bit."""

import argparse
import hashlib
import os
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

BATCH = 48  # over all processes


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--save-every", type=int, default=10)
    parser.add_argument("--step-seconds", type=float, default=0.0)  # a step of a real model takes its time
    parser.add_argument("--fail-at", type=int, default=-1)  # the last rank breaks there, to see what happens then
    parser.add_argument("--checkpoint", default=os.path.join(os.environ.get("CRUCIBLE_KEEP", "."), "ddp.pt"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    try:
        learn(options, dist.get_rank(), dist.get_world_size())
    finally:
        dist.destroy_process_group()


def learn(options: argparse.Namespace, rank: int, world_size: int) -> None:
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if torch.cuda.is_available() else torch.device("cpu")
    torch.manual_seed(7)
    net = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1)).to(device)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    start = load(options.checkpoint, net, optimizer)
    print(f"rank {rank} of {world_size} begins after step {start}", flush=True)
    model = DistributedDataParallel(net)
    for step in range(start + 1, options.steps + 1):
        x, y = (part[rank::world_size].to(device) for part in batch(step))
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        time.sleep(options.step_seconds)
        if step == options.fail_at and rank == world_size - 1:
            raise RuntimeError(f"rank {rank} was told to break at step {step}")
        if rank == 0 and (step % options.save_every == 0 or step == options.steps):
            save(options.checkpoint, step, net, optimizer)
            print(f"step {step} loss {loss.item():.6f}", flush=True)
    if rank == 0:
        print(f"final weights {digest(net)}", flush=True)


def batch(step: int) -> tuple[torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(step)
    x = torch.randn(BATCH, 8, generator=random)
    return x, torch.sin(x.sum(dim=1, keepdim=True))


def load(path: str, net: torch.nn.Module, optimizer: torch.optim.Optimizer) -> int:
    """The step to go on from. Every process reads the same file."""
    if not os.path.exists(path):
        return 0
    state = torch.load(path, weights_only=True)
    net.load_state_dict(state["net"])
    optimizer.load_state_dict(state["optimizer"])
    return int(state["step"])


def save(path: str, step: int, net: torch.nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Under another name first: whoever looks finds the old one or the new one, never half of it."""
    torch.save({"step": step, "net": net.state_dict(), "optimizer": optimizer.state_dict()}, path + ".part")
    os.replace(path + ".part", path)


def digest(net: torch.nn.Module) -> str:
    content = b"".join(part.detach().cpu().numpy().tobytes() for part in net.state_dict().values())
    return hashlib.sha256(content).hexdigest()[:16]


if __name__ == "__main__":
    main()
