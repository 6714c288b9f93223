"""Answers prompts in batches with vLLM and writes them beside the prompts."""

import json
import os

import click
from vllm import LLM, SamplingParams


@click.command()
@click.option("--model", default="mistralai/Mistral-7B-Instruct-v0.2")
@click.option("--prompts", default="s3://prompts-bucket/batch-01.jsonl")
@click.option("--out", default="answers.jsonl")
@click.option("--tensor-parallel", default=2, type=int)
def main(model, prompts, out, tensor_parallel):
    llm = LLM(
        model=os.environ.get("MODEL", "mistralai/Mistral-7B-Instruct-v0.2"),
        dtype="float16",
        tensor_parallel_size=2,
        max_model_len=8192,
    )
    with open(prompts) as file:
        rows = [json.loads(line) for line in file]
    answers = llm.generate([row["prompt"] for row in rows], SamplingParams(temperature=0.2, max_tokens=512))
    with open(out, "w") as file:
        for row, answer in zip(rows, answers, strict=True):
            file.write(json.dumps({**row, "answer": answer.outputs[0].text}) + "\n")


if __name__ == "__main__":
    main()
