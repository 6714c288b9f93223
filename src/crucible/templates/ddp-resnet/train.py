"""Trains a ResNet on images with PyTorch DDP: each process has its part of every batch. Rank 0 saves; all begin with
what it saved, and stop together. Alone: torchrun --standalone --nproc-per-node 2 train.py"""

import argparse
import os
import sys
import tempfile
from collections.abc import Iterable

import torch
import torch.distributed as dist
from resnet import ResNet
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

from crucible import train

STOPPED = 143  # asked to stop before the end: not a success
CLASSES = 4
SIDE = 16
SEED = 7


def main() -> int:
    options = parsed()
    has_gpu = torch.cuda.is_available()
    dist.init_process_group("nccl" if has_gpu else "gloo")
    try:
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if has_gpu else torch.device("cpu")
        return learn(options, device)
    finally:
        dist.destroy_process_group()


def learn(options: argparse.Namespace, device: torch.device) -> int:
    rank, size = dist.get_rank(), dist.get_world_size()
    images, labels = loaded(options)
    torch.manual_seed(SEED)
    net = ResNet(images.shape[1], int(labels.max()) + 1, options.width, options.depth).to(device)
    optimizer = OPTIMIZERS[options.optimizer](net.parameters(), lr=options.lr)
    step = resume(net, optimizer, device)
    say(rank, f"{size} processes, {len(labels)} images, begins after step {step}")
    model = DistributedDataParallel(net, device_ids=[device.index] if device.type == "cuda" else None)
    each = max(1, len(labels) // options.batch)
    total = options.epochs * each
    while step < total:
        order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(step // each))
        chosen = order[step % each * options.batch :][: options.batch][rank::size]
        loss = functional.cross_entropy(model(images[chosen].to(device)), labels[chosen].to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        is_stopping, is_time = agreed(device)
        if rank == 0:
            report(step, total, loss.item())
            if is_time or step == total:
                save(net, optimizer, step)
        if is_stopping and step < total:
            return STOPPED
    if rank == 0:
        finish(net, images, labels, device)
    return 0


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default="")
    for name, usual in (("epochs", 2), ("batch", 32), ("depth", 1), ("width", 8), ("images", 128)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--optimizer", choices=sorted(OPTIMIZERS), default="sgd")
    return parser.parse_args()


def sgd(parameters: Iterable[torch.nn.Parameter], lr: float) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=lr, momentum=0.9, weight_decay=1e-4)


OPTIMIZERS = {"sgd": sgd, "adamw": torch.optim.AdamW}


def loaded(options: argparse.Namespace) -> tuple[torch.Tensor, torch.Tensor]:
    if not options.data:
        return made_up(options.images)
    path = os.path.join(os.environ.get("DATASET", ""), options.data)
    stored = torch.load(path, weights_only=True)
    return stored["images"].float(), stored["labels"].long()


def made_up(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Noise with a bright bar in it; where the bar lies is the class."""
    chance = torch.Generator().manual_seed(SEED)
    images = torch.randn((count, 3, SIDE, SIDE), generator=chance)
    labels = torch.arange(count) % CLASSES
    for number, label in enumerate(labels.tolist()):
        images[number, :, label * SIDE // CLASSES] += 2.0
    return images, labels


def agreed(device: torch.device) -> tuple[bool, bool]:
    """Rank 0's answers count for all: to stop, to save."""
    wish = torch.tensor([train.should_stop(), train.should_checkpoint()], dtype=torch.int32, device=device)
    dist.broadcast(wish, src=0)
    return bool(wish[0]), bool(wish[1])


def resume(net: ResNet, optimizer: torch.optim.Optimizer, device: torch.device) -> int:
    newest = train.latest_checkpoint()
    if newest is None:
        return 0
    state = torch.load(newest.path, map_location=device, weights_only=True)
    net.load_state_dict(state["net"])
    optimizer.load_state_dict(state["optimizer"])
    return int(newest.step)


def save(net: ResNet, optimizer: torch.optim.Optimizer, step: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "state.pt")
        torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict()}, path)
        train.save_checkpoint(path, step)


def report(step: int, total: int, loss: float) -> None:
    train.log(step, loss=loss)
    train.progress(step, total)
    if step % 4 == 0 or step == total:
        say(0, f"step {step} of {total} loss {loss:.4f}")


@torch.no_grad()
def finish(net: ResNet, images: torch.Tensor, labels: torch.Tensor, device: torch.device) -> None:
    torch.save(net.state_dict(), os.path.join(os.environ.get("CRUCIBLE_OUTPUT", "."), "resnet.pt"))
    net.eval()
    right = (net(images[:256].to(device)).argmax(dim=1).cpu() == labels[:256]).float().mean().item()
    train.log(accuracy=right)
    say(0, f"final accuracy {right:.3f}")


def say(rank: int, text: str) -> None:
    if rank == 0:
        print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
