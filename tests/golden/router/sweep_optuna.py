"""A search over the shape of a small network with Optuna."""

import optuna
import torch
import torch.nn as nn
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
BATCHSIZE = 128
EPOCHS = 10


def build(trial):
    parts, width = [], 28 * 28
    for i in range(trial.suggest_int("n_layers", 1, 3)):
        out = trial.suggest_int(f"units_{i}", 4, 128)
        parts += [nn.Linear(width, out), nn.ReLU()]
        width = out
    return nn.Sequential(nn.Flatten(), *parts, nn.Linear(width, 10))


def objective(trial):
    model = build(trial).to(DEVICE)
    kind = trial.suggest_categorical("optimizer", ["Adam", "SGD"])
    optimizer = getattr(torch.optim, kind)(model.parameters(), lr=trial.suggest_float("lr", 1e-5, 1e-1, log=True))
    data = datasets.FashionMNIST("data", train=True, download=True, transform=transforms.ToTensor())
    train_loader = DataLoader(data, batch_size=BATCHSIZE, shuffle=True)
    correct = 0
    for _ in range(EPOCHS):
        for x, y in train_loader:
            optimizer.zero_grad()
            logits = model(x.to(DEVICE))
            nn.functional.cross_entropy(logits, y.to(DEVICE)).backward()
            optimizer.step()
            correct += (logits.argmax(1) == y.to(DEVICE)).sum().item()
    return correct / len(data)


if __name__ == "__main__":
    study = optuna.create_study(direction="maximize", storage="sqlite:///trials.db", load_if_exists=True)
    study.optimize(objective, n_trials=100)
    print(study.best_trial.params)
