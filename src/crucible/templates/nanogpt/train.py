"""Trains a small GPT on the letters of a text. The batch of a step depends on the step only and a checkpoint holds the
whole state, so a run that was killed goes on as if nothing had happened. Runs alone too: python train.py --steps 20"""

import argparse
import os
import sys
import tempfile
from dataclasses import asdict

import torch
from model import Gpt, Shape

from crucible import train

STOPPED = 143  # asked to stop before the end: not a success


def main() -> int:
    options = parsed()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    text = read(options.data)
    letters = sorted(set(text))
    data = torch.tensor([letters.index(letter) for letter in text])
    if len(data) <= options.context + 1:
        raise SystemExit(f"{options.data} has {len(data)} letters: too few for a context of {options.context}")
    torch.manual_seed(1337)
    model = Gpt(Shape(len(letters), options.context, options.layers, options.heads, options.width)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.lr)
    step = resume(model, optimizer, device)
    loss = torch.tensor(0.0)
    while step < options.steps:
        loss = model.loss(*batch(data, step, options, device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        report(step, options.steps, loss.item())
        is_stopping = train.should_stop()
        if train.should_checkpoint() or step == options.steps:
            save(model, optimizer, step)
        if is_stopping and step < options.steps:
            print(f"stopped at step {step}", flush=True)
            return STOPPED
    leave(model, letters)
    print(f"it writes: {sample(model, letters, device)!r}")
    print(f"final loss {loss.item():.6f}", flush=True)
    return 0


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default="sonnet.txt")
    for name, usual in (("steps", 60), ("batch", 8), ("context", 32), ("layers", 2), ("heads", 4), ("width", 32)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--lr", type=float, default=0.003)
    return parser.parse_args()


def read(name: str) -> str:
    """A file beside this one, of the job's dataset, or by its full path."""
    for folder in ("", os.environ.get("DATASET", "")):
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            with open(path, encoding="utf-8") as file:
                return file.read()
    raise SystemExit(f"there is no text {name} here, nor in $DATASET")


def batch(
    data: torch.Tensor, step: int, options: argparse.Namespace, device: torch.device
) -> tuple[torch.Tensor, torch.Tensor]:
    """Pieces of the text, and the same pieces one letter on."""
    chance = torch.Generator().manual_seed(step)
    starts = torch.randint(len(data) - options.context, (options.batch, 1), generator=chance)
    where = starts + torch.arange(options.context)
    return data[where].to(device), data[where + 1].to(device)


def resume(model: Gpt, optimizer: torch.optim.Optimizer, device: torch.device) -> int:
    newest = train.latest_checkpoint()
    if newest is None:
        return 0
    state = torch.load(newest.path, map_location=device, weights_only=True)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    print(f"resumed from step {newest.step}", flush=True)
    return int(newest.step)


def save(model: Gpt, optimizer: torch.optim.Optimizer, step: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "state.pt")
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)
        train.save_checkpoint(path, step)


def leave(model: Gpt, letters: list[str]) -> None:
    """The model as the job's output: what the template fine-tune begins with."""
    path = os.path.join(os.environ.get("CRUCIBLE_OUTPUT", "."), "model.pt")
    torch.save({"shape": asdict(model.shape), "letters": "".join(letters), "model": model.state_dict()}, path)


def report(step: int, total: int, loss: float) -> None:
    train.log(step, loss=loss)
    train.progress(step, total)
    if step % 10 == 0 or step == total:
        print(f"step {step} loss {loss:.6f}", flush=True)


@torch.no_grad()
def sample(model: Gpt, letters: list[str], device: torch.device, count: int = 60) -> str:
    chance = torch.Generator(device=device).manual_seed(1)
    text = torch.zeros((1, 1), dtype=torch.long, device=device)
    for _ in range(count):
        chances = torch.softmax(model(text[:, -model.shape.context :])[:, -1], dim=1)
        text = torch.cat([text, torch.multinomial(chances, 1, generator=chance)], dim=1)
    return "".join(letters[number] for number in text[0].tolist())


if __name__ == "__main__":
    sys.exit(main())
