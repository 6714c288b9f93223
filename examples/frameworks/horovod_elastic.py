"""A Horovod Elastic training: its state is kept in memory by every worker and handed to newcomers. The global batch
stays the same, whoever computes which part."""

import os
import time

import horovod.torch as hvd
import torch

STEPS = int(os.environ.get("STEPS", "60"))
STEP_SECONDS = float(os.environ.get("STEP_SECONDS", "0.1"))
BATCH = 48


def main() -> None:
    torch.set_num_threads(1)
    hvd.init()
    torch.manual_seed(7)
    net = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    state = hvd.elastic.TorchState(model=net, optimizer=optimizer, step=0)

    @hvd.elastic.run
    def learn(state: hvd.elastic.TorchState) -> None:
        while state.step < STEPS:
            state.step += 1
            loss = one_step(net, optimizer, state.step)
            if hvd.rank() == 0:
                print(f"step {state.step} loss {loss:.6f} with {hvd.size()}", flush=True)
            time.sleep(STEP_SECONDS)
            state.commit()
        if hvd.rank() == 0:
            print(f"final loss {loss:.8f}", flush=True)

    learn(state)


def one_step(net: torch.nn.Module, optimizer: torch.optim.Optimizer, step: int) -> float:
    random = torch.Generator().manual_seed(step)
    x = torch.randn(BATCH, 8, generator=random)
    y = torch.sin(x.sum(dim=1, keepdim=True))
    own = slice(hvd.rank(), None, hvd.size())
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(net(x[own]), y[own], reduction="sum") / BATCH
    loss.backward()
    # Sums of parts of any size add up to the mean of the whole batch.
    for number, part in enumerate(net.parameters()):
        hvd.allreduce_(part.grad, op=hvd.Sum, name=f"gradient {number}")
    optimizer.step()
    return float(hvd.allreduce(loss.detach(), op=hvd.Sum, name="loss"))


if __name__ == "__main__":
    main()
