"""LoRA fine-tuning of a Llama with the Trainer of transformers."""

from dataclasses import dataclass, field

import torch
from datasets import load_dataset
from peft import LoraConfig, get_peft_model
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    DataCollatorForLanguageModeling,
    HfArgumentParser,
    Trainer,
    TrainingArguments,
)


@dataclass
class ScriptArguments:
    model_name: str = field(default="meta-llama/Llama-2-7b-hf")
    dataset_name: str = field(default="tatsu-lab/alpaca")
    max_seq_length: int = field(default=2048)


(script_args,) = HfArgumentParser(ScriptArguments).parse_args_into_dataclasses()

tokenizer = AutoTokenizer.from_pretrained(script_args.model_name)
tokenizer.pad_token = tokenizer.eos_token
model = AutoModelForCausalLM.from_pretrained(script_args.model_name, torch_dtype=torch.bfloat16)
model = get_peft_model(model, LoraConfig(r=16, lora_alpha=32, lora_dropout=0.05, task_type="CAUSAL_LM"))

data = load_dataset(script_args.dataset_name, split="train")
data = data.map(
    lambda row: tokenizer(row["text"], truncation=True, max_length=script_args.max_seq_length),
    remove_columns=data.column_names,
)

args = TrainingArguments(
    output_dir="out",
    per_device_train_batch_size=4,
    gradient_accumulation_steps=8,
    num_train_epochs=3,
    learning_rate=2e-4,
    bf16=True,
    logging_steps=10,
    save_steps=200,
    gradient_checkpointing=True,
    optim="adamw_torch",
)
trainer = Trainer(
    model=model,
    args=args,
    train_dataset=data,
    data_collator=DataCollatorForLanguageModeling(tokenizer, mlm=False),
)
trainer.train(resume_from_checkpoint=True)
model.save_pretrained("out/adapter")
