"""The table of what a job computes: time, $/step and the memory of a GPU follow from it. Nothing here is needed to run
a job; it makes plans better."""

from crucible.model.spec import Method, ModelClass, Optimizer, Precision, Workload
from crucible.spec.kinds import NAME_LENGTH, Number, Text, Whole
from crucible.spec.quantities import Magnitude
from crucible.spec.sections import choice
from crucible.spec.table import Field, Group

_MODEL = Text(
    "a model such as llama-2-7b",
    pattern=r"[A-Za-z0-9][A-Za-z0-9._/:+-]*",
    hint="a name such as resnet50, or an id such as meta-llama/Llama-2-7b-hf",
    max_length=NAME_LENGTH,
)

WORKLOAD = Group(
    make=Workload,
    fields=(
        Field(
            name="model",
            kind=_MODEL,
            example="llama-2-7b",
            doc="name or Hugging Face id of the model; class and parameters of well-known ones need not be given",
            aka=("model_id", "base_model", "architecture"),
        ),
        Field(
            name="model_class",
            kind=choice(
                ModelClass,
                gpt="llm",
                language="llm",
                bert="transformer",
                nlp="transformer",
                cnn="vision",
                image="vision",
                audio="speech",
                asr="speech",
                recsys="recommender",
                dlrm="recommender",
            ),
            example="llm",
            doc="kind of model: those of one kind gain alike from a faster GPU",
            aka=("model_family", "model_type"),
        ),
        Field(
            name="parameters",
            kind=Magnitude(1e15),
            example="7B",
            doc="parameters of the model, all of them",
            aka=("params", "n_params", "num_parameters", "model_size"),
        ),
        Field(
            name="method",
            kind=choice(Method, finetune="full", fine_tune="full", pretrain="full", peft="lora", serve="inference"),
            default="full",
            example="lora",
            doc="full: all parameters are trained; lora, qlora: adapters only; inference: none",
            aka=("finetuning", "training_method", "peft"),
        ),
        Field(
            name="precision",
            kind=choice(Precision, float32="fp32", float16="fp16", half="fp16", bfloat16="bf16", float8="fp8"),
            example="bf16",
            doc="what the model computes in",
            aka=("dtype", "mixed_precision"),
        ),
        Field(
            name="optimizer",
            kind=choice(Optimizer, adamw_8bit="adam8bit", adam_8bit="adam8bit", momentum="sgd"),
            example="adamw",
            doc="counts for memory; adamw if not given",
            aka=("optim",),
        ),
        Field(
            name="batch_size",
            kind=Whole(1, 10_000_000),
            example=8,
            doc="samples that one GPU computes in a step",
            aka=("batch", "micro_batch_size", "per_device_train_batch_size"),
        ),
        Field(
            name="sequence_length",
            kind=Whole(1, 100_000_000),
            example=4096,
            doc="tokens of one sample",
            aka=("seq_len", "max_length", "context_length", "block_size", "max_seq_length"),
        ),
        Field(name="steps", kind=Magnitude(1e15), example=10_000, doc="optimizer steps of the whole run"),
        Field(
            name="tokens",
            kind=Magnitude(1e18),
            example="2B",
            doc="tokens of the whole run, read or written",
            aka=("total_tokens", "train_tokens"),
        ),
        Field(
            name="samples",
            kind=Magnitude(1e15),
            example="1.28M",
            doc="samples of one epoch",
            aka=("dataset_samples", "examples", "num_samples"),
        ),
        Field(
            name="epochs",
            kind=Number(0, 1e9, is_above_least=True),
            example=90,
            doc="passes over the samples; 1 if not given",
            aka=("num_epochs", "num_train_epochs"),
        ),
    ),
)
