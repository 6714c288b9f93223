"""What people of the demo run now: real programs, on machines of the Lab and of this computer."""

from dataclasses import dataclass
from pathlib import Path

from examples.demo.people import ASSISTANT, DETECTION, SEGMENTATION, TRANSLATION

HERE = Path(__file__).resolve().parent
PROGRAMS, SWEEP, INFERENCE = HERE / "programs", HERE.parent / "sweep", HERE.parent / "inference"
# Hours of half seconds: whoever looks finds them at work.
LONG = 20_000
# Machines that nobody can have: the Lab is told so.
SOLD_OUT = "p5.48xlarge"


@dataclass(frozen=True, kw_only=True)
class PresentJob:
    name: str
    user: str
    spec: str
    code: Path = PROGRAMS


def training(project: str, machines: str, *, steps: int = LONG, more: str = "", env: str = "") -> str:
    return f"""\
job:
  project: {project}
  code: .
  entrypoint: learn.py
  env: {{STEPS: "{steps}"{env}}}
  resources: {machines}
  checkpoint: {{keep: 3}}
  retry: {{limit: 0}}
{more}"""


SPOT = "  constraints: {providers: [aws], allow_spot: true}\n"
ON_DEMAND = "  constraints: {providers: [aws]}\n"
HERE_ONLY = "  constraints: {providers: [local]}\n"

RESUMED = PresentJob(
    name="unet-cityscapes-live",
    user="ada",
    spec=training(SEGMENTATION, "{gpus: 1, gpu_type: A10G, estimated_hours: 2.8}", more=SPOT),
)
FAILED = PresentJob(
    name="detr-coco-broken",
    user="chloe",
    spec=training(DETECTION, "{gpus: 1}", more=HERE_ONLY, env=', STEP_SECONDS: "0.05", FAIL_AT: "40"'),
)
COMPLETED = PresentJob(
    name="yolo-smoke-test",
    user="ben",
    spec=training(DETECTION, "{gpus: 1}", steps=60, more=HERE_ONLY, env=', STEP_SECONDS: "0.05"'),
)
WAITING = PresentJob(
    name="assistant-70b-sft",
    user="dora",
    spec=training(
        ASSISTANT,
        "{gpus: 8, gpu_type: H100, estimated_hours: 6}",
        more="  priority: 10\n  constraints: {providers: [aws], budget: 900, deadline: DEADLINE}\n",
    ),
)
HELD = PresentJob(
    name="nmt-fr-en",
    user="farid",
    spec=training(TRANSLATION, "{gpus: 4, gpu_type: A10G, estimated_hours: 3}", more=SPOT),
)
LABELS = PresentJob(
    name="label-texts",
    user="emil",
    code=INFERENCE,
    spec=f"""\
job:
  project: {ASSISTANT}
  type: inference
  code: .
  entrypoint: label.py
  shards: {{lines: texts.jsonl, size: 60, max_errors: 10}}
  execution: {{parallelism: 2}}
{HERE_ONLY}""",
)
COMPARED = PresentJob(
    name="ring-evaluation",
    user="emil",
    code=SWEEP,
    spec=f"""\
job:
  project: {ASSISTANT}
  code: .
  entrypoint: evaluate.py
  evaluation:
    models: [always, linear, nearest]
    datasets: [rings]
    metrics: [accuracy, f1]
    baseline: always
  execution: {{parallelism: 2}}
{HERE_ONLY}""",
)
# Those that follow are left out where the world is to be small.
GANG = PresentJob(
    name="assistant-7b-live",
    user="emil",
    spec=training(
        ASSISTANT, "{gpus: 16, gpu_type: A100-40GB, estimated_hours: 2.8}", more="  secrets: [HF_TOKEN]\n" + SPOT
    ),
)
PAUSED = PresentJob(
    name="nmt-de-en-live",
    user="farid",
    spec=training(TRANSLATION, "{gpus: 4, gpu_type: A10G, estimated_hours: 2.8}", more=ON_DEMAND),
)
CANCELLED = PresentJob(
    name="sam-wrong-config",
    user="chloe",
    spec=training(SEGMENTATION, "{gpus: 1, gpu_type: L4, estimated_hours: 1}", more=SPOT),
)
OWN = PresentJob(name="notebook-gpus", user="ben", spec=training(DETECTION, "{gpus: 3}", more=HERE_ONLY))
QUEUED = PresentJob(name="detr-ablation", user="chloe", spec=training(DETECTION, "{gpus: 2}", more=HERE_ONLY))
SEARCH = PresentJob(
    name="ring-search",
    user="ben",
    code=SWEEP,
    spec=f"""\
job:
  project: {DETECTION}
  code: .
  entrypoint: trial.py
  execution: {{parallelism: 2}}
  sweep:
    method: tpe
    trials: 14
    seed: 7
    parameters:
      lr: {{min: 0.001, max: 3, scale: log}}
      width: {{min: 2, max: 12, whole: true}}
      momentum: {{min: 0, max: 0.9}}
    objective: {{metric: loss, goal: minimize, reading: best}}
{HERE_ONLY}""",
)
FLOW = PresentJob(
    name="assistant-release",
    user="dora",
    spec=f"""\
job:
  project: {ASSISTANT}
  code: .
  constraints: {{providers: [local, aws], allow_spot: true}}
  retry: {{limit: 1, delay: 5s}}
  steps:
    - {{name: tokenize, type: preprocessing, entrypoint: learn.py, env: {{STEPS: "5"}}}}
    - name: train
      needs: tokenize
      entrypoint: learn.py
      env: {{STEPS: "{LONG}"}}
      resources: {{gpus: 1, gpu_type: L4, estimated_hours: 2.8}}
    - {{name: evaluate, type: eval, needs: train, entrypoint: learn.py, env: {{STEPS: "20"}}}}
    - {{name: safety, type: eval, needs: train, entrypoint: learn.py, env: {{STEPS: "20"}}}}
    - {{name: publish, needs: [evaluate, safety], entrypoint: learn.py, env: {{STEPS: "5"}}}}
""",
)

SMALL = (RESUMED, FAILED, COMPLETED, WAITING, HELD, LABELS, COMPARED)
ALL = (OWN, *SMALL, GANG, PAUSED, CANCELLED, QUEUED, SEARCH, FLOW)
