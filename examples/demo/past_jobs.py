"""What people of the demo ran on the days before: a few kinds of jobs, each as its spec, with how it went."""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from examples.demo.people import ASSISTANT, DETECTION, SEGMENTATION, TRANSLATION
from examples.demo.pretending import NOT_A_NUMBER, Script

SEED = 4
BEGINS_H = 14.0  # of 24 hours: it is all over before the next begin
SEARCH_TRIALS, FEW_TRIALS = 24, 8
SEARCH, WORKFLOW = "detr-search", "assistant-refresh"


@dataclass(frozen=True, kw_only=True)
class PastJob:
    name: str
    user: str
    spec: str
    script: Script
    after_min: float = 0.0  # from the beginning of the day
    cancel_after_min: float | None = None


@dataclass(frozen=True)
class Day:
    begins_h: float  # from the beginning of its 24 hours
    jobs: Sequence[PastJob]


@dataclass(frozen=True, kw_only=True)
class Kind:
    """Jobs of one kind: who runs them, on what, how long."""

    name: str
    users: Sequence[str]
    project: str
    gpu: str
    gpus: int
    minutes: tuple[float, float]
    command: str
    is_spot: bool = True
    type: str = "training"
    loss: tuple[float, float] = (4.0, 1.2)
    per_day: float = 1.0
    estimate: float = 1.0  # what people expect, as a multiple of what it takes


KINDS = (
    Kind(name="unet-cityscapes", users=("ada", "ben"), project=SEGMENTATION, gpu="A10G", gpus=4, minutes=(70, 150),
         command="python train.py --config unet.yaml", loss=(2.3, 0.31)),
    Kind(name="sam-finetune", users=("chloe",), project=SEGMENTATION, gpu="A100-40GB", gpus=8, minutes=(60, 140),
         command="torchrun --nproc-per-node 8 finetune.py --lora", loss=(1.9, 0.42), per_day=0.7),
    Kind(name="detr-coco", users=("ben", "chloe"), project=DETECTION, gpu="L40S", gpus=4, minutes=(80, 170),
         command="python train.py --model detr-r50", loss=(7.8, 2.1), estimate=0.8),
    Kind(name="yolo-distil", users=("ada",), project=DETECTION, gpu="T4", gpus=1, minutes=(40, 90), is_spot=False,
         command="python distil.py --teacher yolo-x", loss=(3.1, 0.9), per_day=0.8),
    Kind(name="assistant-7b-sft", users=("dora", "emil"), project=ASSISTANT, gpu="A100-40GB", gpus=8,
         minutes=(100, 220), command="torchrun --nproc-per-node 8 sft.py --model 7b", loss=(2.2, 1.05), estimate=1.2),
    Kind(name="assistant-reward", users=("emil",), project=ASSISTANT, gpu="L4", gpus=4, minutes=(50, 100),
         command="python reward.py --pairs 120k", loss=(0.7, 0.28), per_day=0.7),
    Kind(name="nmt-de-en", users=("farid",), project=TRANSLATION, gpu="A10G", gpus=8, minutes=(90, 160),
         command="fairseq-train data-bin --arch transformer_big", loss=(9.4, 3.2)),
    Kind(name="nightly-bleu", users=("nightly-eval",), project=TRANSLATION, gpu="L4", gpus=1, minutes=(15, 30),
         command="python evaluate.py --suite nightly", is_spot=False, loss=(1.0, 0.8)),
)  # fmt: skip


def days(count: int) -> list[Day]:
    """The same every time. The oldest first; the last day ends a while before now."""
    dice = random.Random(SEED)
    found = [[a_job(kind, number, dice) for kind in KINDS if is_run(kind, number, dice)] for number in range(count)]
    found[max(0, count - 3)].append(search(SEARCH_TRIALS))
    found[max(0, count - 2)].append(workflow())
    return [Day(BEGINS_H, jobs) for jobs in found]


def a_short_day() -> list[Day]:
    """One job of each sort."""
    dice = random.Random(SEED)
    return [Day(BEGINS_H, [*(a_job(kind, 0, dice) for kind in KINDS[:3]), search(FEW_TRIALS), workflow()])]


def is_run(kind: Kind, number: int, dice: random.Random) -> bool:
    """Little is done on two days of seven."""
    return dice.random() < kind.per_day * (0.35 if number % 7 in (4, 5) else 1.0)


def a_job(kind: Kind, number: int, dice: random.Random) -> PastJob:
    minutes = dice.uniform(*kind.minutes)
    script = Script(minutes=minutes, loss_from=kind.loss[0], loss_to=kind.loss[1] * dice.uniform(0.95, 1.1))
    cancel_after = None
    match dice.random():
        case luck if luck < 0.10:
            script = replace(script, fails_at=dice.uniform(0.05, 0.6))
        case luck if luck < 0.15:
            script = replace(script, fails_at=dice.uniform(0.2, 0.9), last_words=NOT_A_NUMBER)
        case luck if luck < 0.22:
            cancel_after = minutes * dice.uniform(0.2, 0.7)
    return PastJob(
        name=f"{kind.name}-{number + 1:02d}",
        user=dice.choice(kind.users),
        spec=spec_of(kind, minutes),
        script=script,
        after_min=dice.uniform(0, 200),
        cancel_after_min=cancel_after,
    )


def spec_of(kind: Kind, minutes: float) -> str:
    return f"""\
job:
  type: {kind.type}
  project: {kind.project}
  command: {kind.command}
  resources:
    gpus: {kind.gpus}
    gpu_type: {kind.gpu}
    estimated_hours: {minutes / 60 * kind.estimate:.1f}
  constraints:
    providers: [aws]
    allow_spot: {str(kind.is_spot).lower()}
  checkpoint:
    keep: 3
  retry:
    limit: 0
"""


# --- jobs of many tasks --------------------------------------------------------------------------------------------


def search(trials: int) -> PastJob:
    spec = f"""\
job:
  type: hpo
  project: {DETECTION}
  command: python train.py --model detr-r50 --epochs 3
  resources:
    gpus: 1
    gpu_type: A10G
    estimated_hours: 0.2
  constraints:
    providers: [aws]
    allow_spot: true
  execution:
    parallelism: 8
  sweep:
    method: random
    trials: {trials}
    seed: 3
    parameters:
      learning_rate: {{min: 0.00001, max: 0.01, scale: log}}
      dropout: {{min: 0.0, max: 0.5}}
      batch_size: [8, 16, 32, 64]
      optimizer: [adamw, sgd]
    objective: {{metric: loss, goal: minimize}}
"""
    script = Script(minutes=11, loss_from=7.8, save_every_min=60, worth=worth)
    return PastJob(name=SEARCH, user="ben", spec=spec, script=script)


def worth(params: Mapping[str, Any]) -> float:
    """The valley that the search looks for: a rate of about 3e-4, some dropout, adamw."""
    off = math.log10(float(params["learning_rate"])) + 3.5
    rest = 0.9 * abs(float(params["dropout"]) - 0.15) + 0.25 * (params["optimizer"] == "sgd")
    return float(1.9 + 0.55 * off * off + rest + 0.12 * abs(math.log2(float(params["batch_size"])) - 5))


def workflow() -> PastJob:
    spec = f"""\
job:
  project: {ASSISTANT}
  resources: {{gpus: 1, gpu_type: L4, estimated_hours: 0.4}}
  constraints: {{providers: [aws], allow_spot: true}}
  steps:
    - {{name: tokenize, type: preprocessing, command: python tokenize.py}}
    - {{name: deduplicate, type: preprocessing, needs: tokenize, command: python dedup.py}}
    - name: pretrain
      needs: deduplicate
      command: torchrun pretrain.py
      resources: {{gpus: 4, gpu_type: A10G, estimated_hours: 0.5}}
    - {{name: distil, needs: pretrain, command: python distil.py}}
    - {{name: evaluate, type: eval, needs: pretrain, command: python evaluate.py}}
    - {{name: report, type: eval, needs: [distil, evaluate], command: python report.py}}
"""
    return PastJob(name=WORKFLOW, user="dora", spec=spec, script=Script(minutes=22))
