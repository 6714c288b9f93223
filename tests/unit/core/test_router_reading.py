"""What the router can read (C9): any text, however it is written or broken; and what it makes of it."""

import json
from itertools import pairwise

import pytest

from crucible.core.architectures import Architectures
from crucible.core.router.analysis import Analysis, analyse
from crucible.core.router.findings import Confidence, What, winners
from crucible.core.router.source import SourceFile
from crucible.model.catalog import Architecture


def known(name: str, model_class: str, parameters: float) -> Architecture:
    return Architecture(
        name=name,
        aliases=(),
        model_class=model_class,
        parameters=parameters,
        active=parameters,
        hidden=None,
        layers=None,
        heads=None,
    )


KNOWN = Architectures([known("resnet50", "vision", 25.6e6), known("gpt2", "llm", 124e6)])


def read(text: str, name: str = "train.py") -> Analysis:
    return analyse([SourceFile(name, text)], KNOWN)


def value(text: str, what: What, name: str = "train.py") -> object:
    finding = winners(read(text, name).findings).get(what)
    return None if finding is None else finding.value


TRAINING = """\
import torch
batch_size = 64
model.cuda()
loss.backward()
"""


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff" + TRAINING,
        TRAINING.replace("\n", "\r\n"),
        TRAINING.replace("\n", "\r"),
        TRAINING.replace("import torch", "import torch\x00"),
        TRAINING.encode().decode("latin-1") + "# \xe9\udcff\n",
        TRAINING + "\f\n",
    ],
    ids=["byte order mark", "windows", "old mac", "nul", "not unicode", "form feed"],
)
def test_how_a_file_is_written_does_not_matter(text: str) -> None:
    assert value(text, What.BATCH_SIZE) == 64
    assert value(text, What.GPU) == "needed"
    assert value(text, What.JOB_KIND) == "training"


def test_python_2_is_read_but_for_its_old_lines() -> None:
    text = (
        "import torch\ntry:\n    print 'hello'\n    loss.backward()\nexcept IOError, e:\n    print e\nbatch_size = 8\n"
    )
    found = read(text)
    assert value(text, What.JOB_KIND) == "training"
    assert value(text, What.BATCH_SIZE) == 8
    assert found.notes[0].startswith("train.py:3: not Python 3")


def test_a_mistake_costs_one_line_and_is_told_with_its_place() -> None:
    found = read("import torch\nx = = 1\nbatch_size = 8\n")
    assert found.notes == ("train.py:2: not Python 3: invalid syntax",)
    assert winners(found.findings)[What.BATCH_SIZE].line == 3


@pytest.mark.parametrize(
    "monster",
    [
        "x = " + "-" * 50_000 + "1",
        "x = " + "(" * 5_000 + ")" * 5_000,
        "x = a" + ".b" * 30_000,
        "x = " + "+".join(["1"] * 20_000),
        "x = " + "9" * 30_000,
        "x = " + "[" * 190 + "]" * 190,
        "x = " + "lambda: " * 4_000 + "1",
        "x = '" + "\\d" * 10_000 + "'",
        "x = '''" + "a\n" * 30_000,
        "if 1:\n" * 50,
        "x = 10 ** 10 ** 10 ** 10",
        "x = " + "'a' * 10**9 * " * 50 + "1",
    ],
    ids=[
        "minus",
        "brackets",
        "attributes",
        "sum",
        "digits",
        "lists",
        "lambdas",
        "escapes",
        "unfinished text",
        "blocks",
        "tower",
        "product",
    ],
)
def test_what_is_made_to_break_a_reader_only_loses_itself(monster: str) -> None:
    text = f"import torch\nbatch_size = 16\n{monster}\n"
    assert value(text, What.BATCH_SIZE) == 16
    assert value(text, What.FRAMEWORK) == "torch"


def test_names_that_lead_to_each_other_end() -> None:
    lines = [f"v{i} = v{i + 1} + v{i + 1} * v{i + 1}" for i in range(60)]
    text = "\n".join(["batch_size = v0", *lines, "v60 = 1", "v0 = v0 + 1", "a = b", "b = a", "epochs = a"])
    assert read(text).entry == "train.py"


def test_a_notebook_is_its_code_cells() -> None:
    cells = [
        {"cell_type": "markdown", "source": ["batch_size = 1"]},
        {"cell_type": "code", "source": ["%time\n", "!nvidia-smi\n", "import torch\n"]},
        {"cell_type": "code", "source": "batch_size = 32\nloss.backward()"},
    ]
    found = read(json.dumps({"cells": cells}), "lab.ipynb")
    batch = winners(found.findings)[What.BATCH_SIZE]
    assert (batch.value, batch.file, batch.line) == (32, "lab.ipynb cell 2", 1)


@pytest.mark.parametrize("text", ["", "[]", '{"cells": 7}', '{"cells": [7]}', "[" * 100_000, "{"])
def test_what_is_no_notebook_is_said(text: str) -> None:
    assert "not a notebook" in read(text, "lab.ipynb").notes[0]


def test_nothing_to_read_is_said() -> None:
    assert analyse([], KNOWN).notes == ("there is no Python file or notebook to read",)
    assert analyse([SourceFile("a.txt", "import torch")], KNOWN).findings == ()


def test_only_the_start_and_what_it_imports_is_read() -> None:
    files = [
        SourceFile("train.py", "from lab.net import Net\nfrom lab import sizes\nbatch_size = sizes.BATCH\n"),
        SourceFile("lab/net.py", "import torch\nclass Net(torch.nn.Module): pass\n"),
        SourceFile("lab/sizes.py", "BATCH = 4 * 8\n"),
        SourceFile("serve.py", "import tensorflow\nbatch_size = 1\n"),
    ]
    found = analyse(files, KNOWN)
    assert found.files == ("train.py", "lab/net.py", "lab/sizes.py")
    assert winners(found.findings)[What.BATCH_SIZE].value == 32
    assert winners(found.findings)[What.BATCH_SIZE].file == "lab/sizes.py"
    assert analyse(files, KNOWN, "serve.py").files == ("serve.py",)


# --- values -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "expected", "confidence"),
    [
        ("B = 4\nDataLoader(d, batch_size=B * 2)", 8, Confidence.HIGH),
        ("p.add_argument('--batch-size', default=24)\nDataLoader(d, batch_size=a.batch_size)", 24, Confidence.MEDIUM),
        ("p.add_argument('-b', '--bs', dest='batch', default=24)\nDataLoader(d, a.batch)", 24, Confidence.MEDIUM),
        ("flags.DEFINE_integer('bs', 48, 'help')\nDataLoader(d, batch_size=FLAGS.bs)", 48, Confidence.MEDIUM),
        (
            "@click.option('--size', default=6)\ndef main(size=6):\n    DataLoader(d, batch_size=size)",
            6,
            Confidence.MEDIUM,
        ),
        ("@dataclass\nclass C:\n    size: int = 12\nDataLoader(d, batch_size=C().size)", 12, Confidence.MEDIUM),
        ("cfg = {'size': 20}\nDataLoader(d, batch_size=cfg['size'])", 20, Confidence.HIGH),
        ("DataLoader(d, batch_size=int(os.environ.get('B', '40')))", 40, Confidence.MEDIUM),
        ("DataLoader(d, batch_size=given or 10)", 10, Confidence.MEDIUM),
        ("B = 4\nB = 8\nDataLoader(d, batch_size=B)", 4, Confidence.LOW),
    ],
)
def test_a_number_is_found_where_it_is_written(lines: str, expected: int, confidence: Confidence) -> None:
    found = read(f"import os\nfrom torch.utils.data import DataLoader\n{lines}\n")
    batch = winners(found.findings)[What.BATCH_SIZE]
    assert (batch.value, batch.confidence) == (expected, confidence)


def test_what_changes_while_it_runs_is_not_known() -> None:
    text = "from torch.utils.data import DataLoader\nfor b in (1, 2):\n    DataLoader(d, batch_size=b)\n"
    assert value(text, What.BATCH_SIZE) is None


def test_a_configuration_that_is_given_goes_before_its_defaults() -> None:
    text = "class C:\n    n_layer: int = 12\n    n_embd: int = 64\n    vocab_size: int = 100\nc = C_Config(n_layer=2)\n"
    found = winners(read(text).findings)[What.PARAMETERS]
    assert found.value == 2 * (12 * 64 * 64 + 13 * 64) + 100 * 64


def test_the_surer_of_two_findings_counts_and_both_are_told() -> None:
    text = "from torch.utils.data import DataLoader\nbatch_size = 5\nDataLoader(d, batch_size=9)\n"
    told = [f.value for f in read(text).findings if f.what is What.BATCH_SIZE]
    assert told == [9, 5]


# --- models -----------------------------------------------------------------------------------------------

TORCH = "import torch.nn as nn\n"


@pytest.mark.parametrize(
    ("layers", "parameters"),
    [
        ("nn.Linear(10, 20)", 220),
        ("nn.Linear(10, 20, bias=False)", 200),
        ("nn.Linear(in_features=10, out_features=20)", 220),
        ("nn.Conv2d(3, 8, 3)", 224),
        ("nn.Conv2d(3, 8, kernel_size=(1, 5))", 128),
        ("nn.Conv2d(8, 8, 3, groups=8)", 80),
        ("nn.Embedding(100, 16)", 1600),
        ("nn.LSTM(10, 20)", 2560),
        ("nn.GRU(10, 20, num_layers=2, bidirectional=True)", 11280),
        ("nn.MultiheadAttention(64, 8)", 16640),
        ("nn.TransformerEncoderLayer(512, 8)", 3152384),
        ("nn.BatchNorm2d(32)", 64),
    ],
)
def test_layers_have_the_parameters_that_torch_gives_them(layers: str, parameters: int) -> None:
    assert value(f"{TORCH}model = nn.Sequential({layers})\n", What.PARAMETERS) == parameters


def test_own_classes_are_followed_with_their_arguments_and_loops() -> None:
    text = (
        f"{TORCH}class Block(nn.Module):\n    def __init__(self, n):\n        self.l = nn.Linear(n, n, bias=False)\n"
        "class Net(nn.Module):\n    def __init__(self, n, depth=3):\n"
        "        self.blocks = nn.ModuleList([Block(n) for _ in range(depth)])\n"
        "        for i in range(2):\n            self.add(Block(2 * n))\n"
        "model = Net(n=10)\n"
    )
    assert value(text, What.PARAMETERS) == 3 * 100 + 2 * 400


def test_a_keras_list_of_layers_is_followed_from_its_input() -> None:
    known_ones = "Input((8, 8, 1)), Conv2D(4, 3, strides=2, padding='same'), MaxPool2D(), Flatten(), Dense(10)"
    text = f"import keras\nfrom keras.layers import *\nm = keras.Sequential([{known_ones}, Slid(1), Pair()])\n"
    found = winners(read(text).findings)[What.PARAMETERS]
    assert found.value == (9 * 4 + 4) + (2 * 2 * 4 * 10 + 10)
    assert "2 could not be read" in found.why


def test_tied_weights_are_counted_once() -> None:
    text = (
        f"{TORCH}class Net(nn.Module):\n    def __init__(self):\n        self.words = nn.Embedding(50, 8)\n"
        "        self.head = nn.Linear(8, 50, bias=False)\n        self.words.weight = self.head.weight\nnet = Net()\n"
    )
    assert value(text, What.PARAMETERS) == 400


def test_a_layer_that_cannot_be_read_makes_a_lower_bound() -> None:
    found = winners(read(f"{TORCH}m = nn.Sequential(nn.Linear(10, 10), nn.Linear(10, unknown))\n").findings)
    assert found[What.PARAMETERS].confidence is Confidence.LOW
    assert "at least" in found[What.PARAMETERS].why


def test_classes_that_contain_each_other_end() -> None:
    text = (
        f"{TORCH}class A(nn.Module):\n    def __init__(self):\n        self.b = [B() for _ in range(9)]\n"
        "        self.l = nn.Linear(2, 2)\n"
        "class B(nn.Module):\n    def __init__(self):\n        self.a = [A() for _ in range(9)]\nm = A()\n"
    )
    assert read(text).findings


@pytest.mark.parametrize(
    ("line", "parameters"),
    [
        ("AutoModel.from_pretrained('openai-community/gpt2')", 124e6),
        ("torchvision.models.resnet50()", 25.6e6),
        ("timm.create_model('resnet50')", 25.6e6),
        ("AutoModel.from_pretrained('EleutherAI/pythia-1.4b')", 1.4e9),
        ("AutoModel.from_pretrained('x/some-8x7B-chat')", 56e9),
        ("vllm.LLM('x/thing-350m')", 350e6),
        ("AutoTokenizer.from_pretrained('gpt2')", None),
        ("AutoModel.from_pretrained('./out/checkpoint')", None),
    ],
)
def test_a_model_is_known_by_its_name(line: str, parameters: float | None) -> None:
    text = f"import timm, torchvision, vllm\nfrom transformers import AutoModel, AutoTokenizer\nm = {line}\n"
    assert value(text, What.PARAMETERS) == parameters


# --- habits -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "what", "expected"),
    [
        ("import torch\ntorch.autocast('cuda', dtype=torch.bfloat16)", What.PRECISION, "bf16"),
        ("import torch\nmodel.half()", What.PRECISION, "fp16"),
        ("from transformers import TrainingArguments\nTrainingArguments(fp16=True)", What.PRECISION, "fp16"),
        ("import lightning as L\nL.Trainer(precision='bf16-mixed')", What.PRECISION, "bf16"),
        ("import lightning as L\nL.Trainer(devices=4, num_nodes=2)", What.GPUS, 8),
        ("import lightning as L\nL.Trainer(strategy='fsdp')", What.DISTRIBUTED, "fsdp"),
        ("import horovod.torch as hvd\nhvd.init()", What.DISTRIBUTED, "horovod"),
        ("import os\nos.environ['LOCAL_RANK']", What.DISTRIBUTED, "torchrun"),
        ("import deepspeed\ndeepspeed.initialize(model=m)", What.DISTRIBUTED, "deepspeed"),
        (
            "import tensorflow as tf\ntf.distribute.MultiWorkerMirroredStrategy()",
            What.DISTRIBUTED,
            "multi_worker_mirrored",
        ),
        ("import bitsandbytes as bnb\nbnb.optim.AdamW8bit(p)", What.OPTIMIZER, "adam8bit"),
        ("import torch\nopt = torch.optim.SGD(p)\nopt.load_state_dict(s)", What.RESUME, True),
        ("import torch\nfor e in x:\n    torch.save(m, 'f')", What.CHECKPOINTING, True),
        ("import torch\ntorch.save(m, 'f')", What.CHECKPOINTING, False),
        ("from crucible import train\ntrain.save_checkpoint('m', 1)", What.CHECKPOINTING, True),
        ("from crucible import train\ntrain.latest_checkpoint()", What.RESUME, True),
        ("from datasets import load_dataset\nload_dataset('imdb')", What.DATASET_SIZE_GB, 0.084),
        ("import torchvision\ntorchvision.datasets.CIFAR10('d', download=True)", What.INTERNET, True),
        ("path = 's3://bucket/records'", What.DATASET, "s3://bucket/records"),
        ("# patient records, HIPAA\nx = 1", What.PRIVACY, "patient"),
        ("import jax\njax.value_and_grad(f)", What.JOB_KIND, "training"),
        ("import xgboost as xgb\nxgb.train(p, d, num_boost_round=500)", What.STEPS, 500),
        ("import xgboost as xgb\nxgb.XGBClassifier(device='gpu')", What.GPU, "needed"),
        ("from sklearn.preprocessing import StandardScaler\nStandardScaler().fit(x)", What.JOB_KIND, None),
        ("import pandas as pd\npd.read_csv('a.csv').to_parquet('b')", What.JOB_KIND, "preprocessing"),
        ("for epoch in tqdm(range(7)):\n    pass", What.EPOCHS, 7),
        ("import flax", What.FRAMEWORK, "flax"),
        ("import json", What.FRAMEWORK, "none"),
    ],
)
def test_a_habit_is_recognised(text: str, what: What, expected: object) -> None:
    assert value(text, what) == expected


def test_every_finding_names_a_line_that_is_there() -> None:
    text = TRAINING + "import transformers\nmodel = transformers.AutoModel.from_pretrained('gpt2')\n"
    lines = text.split("\n")
    for finding in read(text).findings:
        assert finding.evidence == lines[finding.line - 1].strip()
        assert finding.why


def test_constants_of_another_file_are_not_taken_for_each_other() -> None:
    widths = [10 + n for n in range(100)]
    settings = "".join(f"WIDTH_{width} = {width}\n" for width in widths)
    pairs = list(pairwise(widths))
    layers = ", ".join(f"nn.Linear(settings.WIDTH_{a}, settings.WIDTH_{b})" for a, b in pairs)
    text = f"import settings\nfrom torch import nn\nmodel = nn.Sequential({layers})\nloss.backward()\n"
    files = [SourceFile("train.py", text), SourceFile("settings.py", settings)]
    found = winners(analyse(files, KNOWN, "train.py").findings)[What.PARAMETERS]
    assert found.value == sum(a * b + b for a, b in pairs)
