"""What the fields of a spec mean, one small spec at a time."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from crucible.model.errors import InvalidSpec
from crucible.model.spec import (
    Constraints,
    Data,
    Execution,
    Framework,
    JobSpec,
    JobType,
    Locality,
    Method,
    Mode,
    ModelClass,
    Optimizer,
    Precision,
    Replication,
    Resources,
    Retry,
    Strategy,
    Workload,
)
from crucible.model.units import MicroUsd
from crucible.spec import format_problems, load

SEED_000 = Path(__file__).parents[2] / "golden/spec/good/seed000.yaml"


def job(lines: str) -> JobSpec:
    return load(f"job:\n  command: 'true'\n  {lines}\n").spec


def problems(text: str | bytes) -> list[dict[str, Any]]:
    with pytest.raises(InvalidSpec) as caught:
        load(text)
    return list(caught.value.details["problems"])


def refused(lines: str) -> str:
    """The only problem of a job with `lines`, as a line of text."""
    (problem,) = problems(f"job:\n  command: 'true'\n  {lines}\n")
    return format_problems([problem], "f")


def test_the_sample_of_seed_000_means_what_it_says() -> None:
    assert load(SEED_000.read_text()).spec == JobSpec(
        type=JobType.TRAINING,
        framework=Framework.PYTORCH,
        entrypoint="s3://my-bucket/train.py",
        resources=Resources(
            gpus=8, max_gpus_per_node=4, requires_multi_node=True, gpu_memory_gib=80.0, cpu_memory_gib=512.0
        ),
        data=Data(
            dataset="s3://datasets/imagenet", locality=Locality.REQUIRED, replication_policy=Replication.PRE_STAGE
        ),
        constraints=Constraints(
            budget=MicroUsd(100_000_000),
            deadline=datetime(2024, 1, 15, 10, tzinfo=UTC),
            allow_spot=True,
            min_reliability=0.9,
            performance_weight=0.3,
        ),
        execution=Execution(mode=Mode.SINGLE_CLUSTER),
    )


def test_only_a_deadline_that_has_passed_is_a_warning_and_only_with_a_clock() -> None:
    text = SEED_000.read_text()
    assert load(text, now=datetime(2024, 1, 1, tzinfo=UTC)).warnings == ()
    (warning,) = load(text, now=datetime(2026, 1, 1, tzinfo=UTC)).warnings
    assert (warning.line, warning.field) == (17, "job.constraints.deadline")
    assert warning.message == "2024-01-15T10:00:00Z has passed"


def test_a_job_that_asks_for_no_gpus_is_told_that_gpu_fields_have_no_effect() -> None:
    loaded = load("job:\n  command: x\n  resources:\n    gpu_memory: 80GB\n    gpu_type: H100\n")
    assert [(w.line, w.field) for w in loaded.warnings] == [
        (4, "job.resources.gpu_memory"),
        (5, "job.resources.gpu_type"),
    ]


@pytest.mark.parametrize(
    ("written", "gib"),
    [
        ("80GB", 80.0), ("80 GiB", 80.0), ("80", 80.0), ("80.5", 80.5), ("1TB", 1024.0), ("1.5 TiB", 1536.0),
        ("512MB", 0.5), ("512 mib", 0.5), ("80g", 80.0), ("80Gi", 80.0), ('"80 GB"', 80.0), ("0", 0.0),
    ],
)  # fmt: skip
def test_gb_and_gib_are_the_figure_that_vendors_print(written: str, gib: float) -> None:
    assert job(f"resources: {{gpus: 1, gpu_memory: {written}}}").resources.gpu_memory_gib == gib


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("2h", timedelta(hours=2)), ("90m", timedelta(minutes=90)), ("1h30m", timedelta(minutes=90)),
        ("45s", timedelta(seconds=45)), ("90", timedelta(seconds=90)), ("1.5h", timedelta(minutes=90)),
        ("1d 2h 3m 4.5s", timedelta(days=1, hours=2, minutes=3, seconds=4.5)),
    ],
)  # fmt: skip
def test_durations(written: str, expected: timedelta) -> None:
    assert job(f"timeout: {written}").timeout == expected


@pytest.mark.parametrize("written", ["0", "0s", "367d", "1m1h", "h", "1 hour", "-5m", "1h1h", "1e3", "010"])
def test_what_is_no_duration_is_refused(written: str) -> None:
    assert "job.timeout" in refused(f"timeout: {written}")


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("7B", 7e9), ("70e9", 70e9), ("70E+9", 70e9), ("350M", 350e6), ("1.28m", 1.28e6), ("2T", 2e12), ("512k", 512e3),
        ("25557032", 25_557_032.0), ("0.5", 0.5), ('"7B"', 7e9),
    ],
)  # fmt: skip
def test_large_numbers_are_written_as_people_say_them(written: str, value: float) -> None:
    assert job(f"workload: {{parameters: {written}}}").workload.parameters == value


@pytest.mark.parametrize(
    "written", ["0", "0B", "-7B", "7 billion", "1e-3", "7Gb", "1e99", "7e9B", "010", "1_000", ".inf"]
)
def test_what_is_no_large_number_is_refused(written: str) -> None:
    assert "job.workload.parameters" in refused(f"workload: {{parameters: {written}}}")


def test_what_a_job_computes() -> None:
    lines = (
        "workload: {model: meta-llama/Llama-2-7b-hf, model_class: llm, parameters: 6.74B, method: qlora, "
        "precision: bf16, optimizer: adam8bit, batch_size: 4, sequence_length: 4096, steps: 10K, tokens: 2B, "
        "samples: 52002, epochs: 3}"
    )
    assert job(lines).workload == Workload(
        model="meta-llama/Llama-2-7b-hf",
        model_class=ModelClass.LLM,
        parameters=6.74e9,
        method=Method.QLORA,
        precision=Precision.BF16,
        optimizer=Optimizer.ADAM_8BIT,
        batch_size=4,
        sequence_length=4096,
        steps=10_000,
        tokens=2e9,
        samples=52_002,
        epochs=3,
    )


def test_what_steers_a_plan() -> None:
    lines = "{providers: [aws, my_cluster], max_price_per_hour: 12.5, max_price_age: 7d, strategy: own-first}"
    assert job(f"constraints: {lines}").constraints == Constraints(
        providers=("aws", "my_cluster"),
        max_price_per_hour=MicroUsd(12_500_000),
        max_price_age=timedelta(days=7),
        strategy=Strategy.OWN_FIRST,
    )
    assert job("constraints: {providers: gcp}").constraints.providers == ("gcp",)


@pytest.mark.parametrize("written", ["A100-80GB:8", "H100", "RTX 4090:2"])
def test_an_estimate_may_say_where_it_was_measured(written: str) -> None:
    resources = job(f"resources: {{gpus: 8, estimated_hours: 6, estimated_on: '{written}'}}").resources
    assert resources.estimated_on == written


@pytest.mark.parametrize(
    ("lines", "field"),
    [
        ("resources: {gpus: 1, estimated_on: H100}", "job.resources.estimated_on"),
        ("workload: {epochs: 3}", "job.workload.epochs"),
    ],
)
def test_half_a_fact_is_a_warning(lines: str, field: str) -> None:
    (warning,) = load(f"job:\n  command: x\n  {lines}\n").warnings
    assert (warning.field, warning.message) == (field, "has no effect alone")


def test_minutes_and_retries_in_the_words_of_seed_004() -> None:
    spec = job("timeout_minutes: 60\n  retry_count: 5")
    assert spec.timeout == timedelta(hours=1)
    assert spec.retry == Retry(limit=5)


@pytest.mark.parametrize(
    ("written", "micro"),
    [
        ("100", 100_000_000), ("0", 0), ("0.1", 100_000), ("0.000001", 1), ("$99.50", 99_500_000),
        ("100 USD", 100_000_000), ('"$ 5 USD"', 5_000_000), ("1000000000", 10**15), ("0.300000", 300_000),
        ("123456789.123457", 123_456_789_123_457),
    ],
)  # fmt: skip
def test_money_is_exact(written: str, micro: int) -> None:
    assert job(f"constraints: {{budget: {written}}}").constraints.budget == micro


@pytest.mark.parametrize("written", ["1000000000.01", "0.0000001", "-1", "€5", "1e2", "0x10", ".inf", "010", "one"])
def test_what_is_no_amount_is_refused(written: str) -> None:
    assert "job.constraints.budget" in refused(f"constraints: {{budget: {written}}}")


@pytest.mark.parametrize(
    "written",
    [
        "2024-01-15T10:00:00Z",
        "2024-01-15 10:00Z",
        "2024-01-15T15:30:00+05:30",
        "2024-01-15t05:00:00-0500",
        "2024-01-15T10:00:00.000Z",
    ],
)
def test_a_deadline_is_a_point_in_time(written: str) -> None:
    deadline = job(f"constraints: {{deadline: '{written}'}}").constraints.deadline
    assert deadline == datetime(2024, 1, 15, 10, tzinfo=UTC)
    assert deadline.tzinfo is UTC


@pytest.mark.parametrize("written", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "2024-01-15T25:00:00Z"])
def test_a_deadline_outside_the_calendar_is_refused(written: str) -> None:
    assert "is not a date and time that exists" in refused(f"constraints: {{deadline: '{written}'}}")


def test_text_is_taken_as_written() -> None:
    spec = job("name: no\n  env: {A: yes, B: 010, C: 1.50, D: 1:30, E: '', F: true}\n  team: 2024-01-15")
    assert spec.name == "no"
    assert spec.env == {"A": "yes", "B": "010", "C": "1.50", "D": "1:30", "E": "", "F": "true"}
    assert spec.team == "2024-01-15"


@pytest.mark.parametrize(
    ("written", "value"), [("true", True), ("yes", True), ("On", True), ("FALSE", False), ("no", False)]
)
def test_flags_take_the_words_of_yaml(written: str, value: bool) -> None:
    assert job(f"constraints: {{allow_spot: {written}}}").constraints.allow_spot is value


def test_names_of_the_user_are_text_too() -> None:
    spec = job("env: {NULL: a, yes: b, on: c}\n  sharing: {null: 1, 010: 2, no: {~: 3}}")
    assert spec.env == {"NULL": "a", "yes": "b", "on": "c"}
    assert spec.sharing == {"null": 1, "010": 2, "no": {"~": 3}}


def test_a_command_is_text_for_the_shell_or_a_list_of_words() -> None:
    assert load("job: {command: 'echo $A && ls'}").spec.command == ("/bin/sh", "-c", "echo $A && ls")
    assert load("job: {command: [python, -u, x.py, 0.10]}").spec.command == ("python", "-u", "x.py", "0.10")


def test_setup_keeps_a_block_of_shell_in_one_piece() -> None:
    assert job("setup: |\n    for i in 1 2; do\n      echo $i\n    done").setup == (
        "for i in 1 2; do\n  echo $i\ndone\n",
    )
    assert job("setup: [pip install a, pip install b]").setup == ("pip install a", "pip install b")


def test_one_gpu_type_or_several() -> None:
    assert job("resources: {gpus: 1, gpu_type: H100}").resources.gpu_types == ("H100",)
    assert job("resources: {gpus: 1, gpu_type: [RTX 4090, L4]}").resources.gpu_types == ("RTX 4090", "L4")


def test_what_is_handed_on_unread_keeps_its_types() -> None:
    spec = load(
        "job:\n  model:\n    plugin: resnet\n    config:\n      {lr: 1e-4, n: 3, on: yes, t: true, none: null, "
        "time: 1:30, v: '1', d: 2024-01-01, list: [1, [2.5]], x: +7}\n"
    ).spec
    assert spec.model is not None
    assert spec.model.config == {
        "lr": 1e-4, "n": 3, "on": "yes", "t": True, "none": None, "time": "1:30", "v": "1", "d": "2024-01-01",
        "list": [1, [2.5]], "x": 7,
    }  # fmt: skip


@pytest.mark.parametrize(
    "entrypoint",
    [
        "train.py", "./train.py", "src/deep/train.py", "s3://b/train.py", "gs://b/a/b.py", "az://c/x.py",
        "minio://host:9000/bucket/x.py", "Ünïcode.py", "a b.py",
        "git+https://github.com/o/r@" + "0" * 40 + "#a/b.py", "git+ssh://git@host/o/r.git@" + "f" * 40 + "#t.py",
    ],
)  # fmt: skip
def test_entrypoints(entrypoint: str) -> None:
    assert load(f"job: {{entrypoint: '{entrypoint}'}}").spec.entrypoint == entrypoint


@pytest.mark.parametrize(
    "entrypoint",
    [
        "/abs.py", "../up.py", "a/../../b.py", "~/x.py", "-m", "http://x/y.py", "s3://", "s3://bucket/", "s3:///key",
        "S3://b/k", "s3://user:pw@b/k", "s3://b/../k", "minio://host/bucket", "a\\b.py", "file:///x.py",
        "git+https://h/r@" + "0" * 39 + "#x.py", "git+https://h/r@" + "0" * 40, f"git+https://h/r@{'0' * 40}#../x.py",
        f"git+http://h/r@{'0' * 40}#x.py", f"git+https://h/r@{'0' * 40}#-x.py", f"git+file:///r@{'0' * 40}#x",
    ],
)  # fmt: skip
def test_other_entrypoints_are_refused(entrypoint: str) -> None:
    (problem,) = problems(f"job: {{entrypoint: '{entrypoint}'}}")
    assert problem["field"] == "job.entrypoint"
    assert problem["hint"]


def test_an_empty_entrypoint_is_refused() -> None:
    (problem,) = problems("job: {entrypoint: ''}")
    assert problem["field"] == "job.entrypoint"


def test_a_password_in_an_address_is_not_repeated() -> None:
    (problem,) = problems("job: {entrypoint: 'git+https://me:s3cret@h/r@main#x.py'}")
    assert "s3cret" not in str(problem)


@pytest.mark.parametrize("dataset", ["/data", "./data", "file:///data", "s3://bucket", "s3://bucket/", "gs://b/x y"])
def test_datasets(dataset: str) -> None:
    assert job(f"data: {{dataset: '{dataset}'}}").data.dataset == dataset


@pytest.mark.parametrize("dataset", ["data", "../data", "http://x/y", "s3:/x", "s3://", "~/data", "s3://b/../c"])
def test_other_datasets_are_refused(dataset: str) -> None:
    assert "job.data.dataset" in refused(f"data: {{dataset: '{dataset}'}}")


@pytest.mark.parametrize("name", ["a" * 201, " a", "a ", "a\\nb", "a\\tb"])
def test_a_name_is_one_short_line(name: str) -> None:
    assert "job.name" in refused(f'name: "{name}"')


def test_a_newline_at_the_end_of_a_name_is_not_overlooked() -> None:
    assert "job.env" in refused('env: {"A\\n": x}')
    assert "job.data.region" in refused('data: {region: "us-east-1\\n"}')


def test_all_problems_come_at_once_in_order_of_position() -> None:
    found = problems("job:\n  bogus: 1\n  env: {1A: x}\n  resources: {gpus: -1}\n  command: x\n  timeout: never\n")
    assert [p["field"] for p in found] == ["job.bogus", "job.env['1A']", "job.resources.gpus", "job.timeout"]
    assert [(p["line"], p["column"]) for p in found] == [(2, 3), (3, 9), (4, 21), (6, 12)]


def test_one_slip_is_told_once() -> None:
    found = problems("job:\n  command: x\n  resources: {gpus: x, requires_multi_node: true, gpu_memory: 8GB}\n")
    assert [p["field"] for p in found] == ["job.resources.gpus"]


def test_columns_count_characters_not_bytes() -> None:
    text = "job: {name: 'héé→', entrypoint: x.py, gpus: 1}"
    (problem,) = problems(text)
    assert problem["column"] == text.index("gpus") + 1


def test_a_thousand_slips_are_cut_short() -> None:
    text = "job:\n" + "".join(f"  bogus{i}: 1\n" for i in range(1000))
    assert len(problems(text)) == 100


def test_the_message_of_the_error_reads_alone() -> None:
    with pytest.raises(
        InvalidSpec, match=r"^the job spec is not valid: 1:7: job.gpus: unknown field 'gpus' \(it belongs"
    ):
        load("job: {gpus: 1, command: x}")


def test_a_problem_without_position_is_printed_without_one() -> None:
    text = format_problems(
        [{"line": 0, "column": 0, "field": "job.code", "message": "no such file", "hint": ""}], "j.yaml"
    )
    assert text == "j.yaml: job.code: no such file"


@pytest.mark.parametrize("size", [256 * 1024, 256 * 1024 + 1])
def test_a_spec_has_at_most_256_kib(size: int) -> None:
    head = b"job: {command: x}\n#"
    text = head + b"x" * (size - len(head))
    if size <= 256 * 1024:
        assert load(text).spec.command
    else:
        assert "longer than 256 KiB" in problems(text)[0]["message"]


def test_aliases_stand_for_whole_values_up_to_64_times() -> None:
    def text(count: int) -> str:
        return "job: {command: x, sharing: {a: &a 1, b: [" + ", ".join(["*a"] * count) + "]}}"

    assert load(text(64)).spec.sharing == {"a": 1, "b": [1] * 64}
    assert "more than 64 aliases" in problems(text(65))[0]["message"]


def test_an_alias_may_not_hide_depth() -> None:
    deep = "[" * 20 + "1" + "]" * 20
    text = "job: {command: x, sharing: {a: &a " + deep + ", b: " + "[" * 15 + "*a" + "]" * 15 + "}}"
    assert "nested deeper than 32" in problems(text)[0]["message"]
