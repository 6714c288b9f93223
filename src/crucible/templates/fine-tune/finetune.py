"""Fine-tunes a GPT: beside every linear layer stands an adapter of low rank, and only those learn. What is left is the
adapters, and the loss before and after. Runs alone too: python finetune.py --steps 20"""

import argparse
import os
import sys
import tempfile

import torch
from model import Gpt, Shape
from torch import nn

from crucible import train

STOPPED = 143  # asked to stop before the end: not a success
TINY = {"context": 16, "layers": 2, "heads": 2, "width": 32}
TINY_STEPS = 30


class Adapted(nn.Module):
    """What the layer says, and a correction; at first there is none."""

    def __init__(self, layer: nn.Linear, rank: int) -> None:
        super().__init__()
        self.layer = layer.requires_grad_(False)
        self.narrow = nn.Parameter(torch.randn(layer.in_features, rank) / layer.in_features**0.5)
        self.wide = nn.Parameter(torch.zeros(rank, layer.out_features))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x) + x @ self.narrow @ self.wide


def main() -> int:
    options = parsed()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    text = read(options.data)
    model, letters = base(options.base, text, device)
    data = torch.tensor([letters.index(letter) for letter in text if letter in letters], device=device)
    if len(data) <= model.shape.context + 1:
        raise SystemExit(f"{options.data} has {len(data)} letters that the model knows: too few to learn from")
    adapters = adapt(model, options.rank, device)
    optimizer = torch.optim.AdamW(adapters.values(), lr=options.lr)
    before = loss_of(model, data)
    step = resume(adapters, optimizer, device)
    while step < options.steps:
        loss = model.loss(*batch(data, step, options.batch, model.shape.context))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        report(step, options.steps, loss.item())
        is_stopping = train.should_stop()
        if train.should_checkpoint() or step == options.steps:
            save({"adapters": adapters, "optimizer": optimizer.state_dict()}, step)
        if is_stopping and step < options.steps:
            print(f"stopped at step {step}", flush=True)
            return STOPPED
    torch.save(adapters, os.path.join(os.environ.get("CRUCIBLE_OUTPUT", "."), "adapters.pt"))
    count = sum(part.numel() for part in adapters.values())
    print(f"{count} numbers learned; loss before {before:.4f}, after {loss_of(model, data):.4f}", flush=True)
    return 0


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--base", default="")
    parser.add_argument("--data", default="examples.txt")
    for name, usual in (("steps", 40), ("batch", 8), ("rank", 4)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--lr", type=float, default=0.01)
    return parser.parse_args()


def read(name: str) -> str:
    """A file beside this one, of the job's dataset, or by its full path."""
    for folder in ("", os.environ.get("DATASET", "")):
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            with open(path, encoding="utf-8") as file:
                return file.read()
    raise SystemExit(f"there is no text {name} here, nor in $DATASET")


def base(path: str, text: str, device: torch.device) -> tuple[Gpt, str]:
    """The model to begin with, and the letters that it knows."""
    torch.manual_seed(1337)
    if not path:
        return tiny(text, device), "".join(sorted(set(text)))
    stored = torch.load(path, map_location=device, weights_only=True)
    model = Gpt(Shape(**stored["shape"])).to(device)
    model.load_state_dict(stored["model"])
    return model, stored["letters"]


def tiny(text: str, device: torch.device) -> Gpt:
    """Of the same letters in a random order: it knows how often each comes, and nothing else."""
    letters = sorted(set(text))
    data = torch.tensor([letters.index(letter) for letter in text], device=device)
    shuffled = data[torch.randperm(len(data), generator=torch.Generator().manual_seed(7)).to(device)]
    model = Gpt(Shape(len(letters), **TINY)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for step in range(TINY_STEPS):
        loss = model.loss(*batch(shuffled, step, 8, model.shape.context))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


def adapt(model: Gpt, rank: int, device: torch.device) -> dict[str, torch.Tensor]:
    """Puts an adapter into every linear layer; the rest learns no more. Returns what does."""
    model.requires_grad_(False)
    for parent in [part for part in model.modules() if not isinstance(part, Adapted)]:
        for name, layer in list(parent.named_children()):
            if isinstance(layer, nn.Linear):
                setattr(parent, name, Adapted(layer, rank).to(device))
    return {name: part for name, part in model.named_parameters() if part.requires_grad}


def batch(data: torch.Tensor, step: int, size: int, context: int) -> tuple[torch.Tensor, torch.Tensor]:
    chance = torch.Generator().manual_seed(step)
    starts = torch.randint(len(data) - context, (size, 1), generator=chance)
    where = (starts + torch.arange(context)).to(data.device)
    return data[where], data[where + 1]


@torch.no_grad()
def loss_of(model: Gpt, data: torch.Tensor) -> float:
    return float(model.loss(*batch(data, 10**6, 32, model.shape.context)))


def resume(adapters: dict[str, torch.Tensor], optimizer: torch.optim.Optimizer, device: torch.device) -> int:
    newest = train.latest_checkpoint()
    if newest is None:
        return 0
    state = torch.load(newest.path, map_location=device, weights_only=True)
    with torch.no_grad():
        for name, part in adapters.items():
            part.copy_(state["adapters"][name])
    optimizer.load_state_dict(state["optimizer"])
    print(f"resumed from step {newest.step}", flush=True)
    return int(newest.step)


def save(state: dict, step: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "state.pt")
        torch.save(state, path)
        train.save_checkpoint(path, step)


def report(step: int, total: int, loss: float) -> None:
    train.log(step, loss=loss)
    train.progress(step, total)
    if step % 10 == 0 or step == total:
        print(f"step {step} loss {loss:.6f}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
