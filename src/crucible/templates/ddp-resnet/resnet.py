"""A residual network: three stages of blocks, each with twice the channels of the one before."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, out, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(out), nn.BatchNorm2d(out)])
        is_same = channels == out and stride == 1
        self.past = nn.Identity() if is_same else nn.Conv2d(channels, out, 1, stride, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.norms[0](self.first(x)))
        return torch.relu(self.norms[1](self.second(y)) + self.past(x))


class ResNet(nn.Module):
    def __init__(self, channels: int, classes: int, width: int, depth: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, width, 3, 1, 1, bias=False)
        blocks = []
        for stage in range(3):
            out = width << stage
            for number in range(depth):
                before = out if number else max(width, out // 2)
                blocks.append(Block(before, out, stride=2 if stage and not number else 1))
        self.blocks = nn.Sequential(*blocks)
        self.last = nn.Linear(width << 2, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.blocks(self.first(x)).mean(dim=(2, 3)))
