"""One linear model of the logarithms of all measured rates: what a GPU's data sheet explains, what is left per GPU,
what is left per GPU and kind of model, and what is lost when several GPUs or machines work together. What was never
measured keeps its prior, and a wide error."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from crucible.core.offers import Codebook, Floats
from crucible.model.catalog import Benchmark, Gpu
from crucible.model.offer import Fabric
from crucible.model.spec import ModelClass

_TFLOPS, _BANDWIDTH = 312.0, 2039.0  # an A100-80GB: only the scale of the features

# Mean and standard deviation of each sort of coefficient before any data, in natural logarithms. The means are the
# roofline's (half computing, half memory) and usual losses per doubling; the deviations say how far data may pull.
_PRIORS: Mapping[str, tuple[float, float]] = {
    "series": (0.0, 30.0),  # whatever it is: each benchmark has its own unit
    "tflops": (0.5, 0.3),
    "bandwidth": (0.5, 0.3),
    "tflops.class": (0.0, 0.15),
    "bandwidth.class": (0.0, 0.15),
    "chip": (0.0, 0.2),
    "gpu": (0.0, 0.08),  # beside others of its chip
    "gpu.class": (0.0, 0.12),
    "gpu.series": (0.0, 0.1),
    "fp32": (-0.5, 0.5),
    "fp32.old": (-1.2, 0.5),  # chips without bf16 compute single precision outside their tensor cores
    "gpu.fp32": (0.0, 0.2),
    "link.nvlink": (-0.02, 0.05),
    "link.pcie": (-0.06, 0.05),
    "link.class": (0.0, 0.05),
    "link.series": (0.0, 0.03),
    "fabric.high": (-0.10, 0.1),
    "fabric.standard": (-0.35, 0.2),
    "fabric.class": (0.0, 0.1),
    "fabric.series": (0.0, 0.08),
}
_NOISE = 0.06  # between two measurements of the same thing

# GPUs that are the same chip with other memory or in another box: what is learned of one holds for the others.
_CHIPS = {"H200": "H100", "GH200": "H100", "B300": "B200", "GB200": "B200", "A10G": "A10", "T4g": "T4", "L40S": "L40"}

Terms = Sequence[tuple[str, float]]  # a coefficient as "sort:name", and what it is multiplied by


@dataclass(frozen=True, slots=True)
class Kind:
    """What the speed of a GPU depends on besides the GPU."""

    model_class: ModelClass | None = None  # None: nobody says which
    precision: str = "bf16"
    is_inference: bool = False
    series: str = ""  # of the measured rates: that of the very model, if there is one

    @property
    def label(self) -> str:
        return f"{self.model_class or 'any'}{'/inference' if self.is_inference else ''}"


def kind_of(row: Benchmark) -> Kind:
    return Kind(ModelClass(row.model_class), row.precision, row.is_inference, series_of(row))


def series_of(row: Benchmark) -> str:
    """Rates of one series can be compared. Precisions of inference are what each GPU does best."""
    return f"{row.source}|{row.model}|{'inference' if row.is_inference else row.precision}"


def speed_terms(gpu: Gpu, kind: Kind) -> Terms:
    is_narrow = kind.precision in ("fp8", "fp4", "int8")
    peak = gpu.tflops_fp8 if is_narrow and gpu.tflops_fp8 else gpu.tflops
    computing, memory = float(np.log(peak / _TFLOPS)), float(np.log(gpu.bandwidth_gbps / _BANDWIDTH))
    terms = [
        ("tflops:", computing),
        ("bandwidth:", memory),
        (f"tflops.class:{kind.label}", computing),
        (f"bandwidth.class:{kind.label}", memory),
        (f"chip:{chip_of(gpu)}", 1.0),
        (f"gpu:{gpu.name}", 1.0),
        (f"gpu.class:{gpu.name} {kind.label}", 1.0),
        (f"gpu.series:{gpu.name} {kind.series}", 1.0),
    ]
    if kind.precision == "fp32":
        terms += [("fp32:" if gpu.has_bf16 else "fp32.old:", 1.0), (f"gpu.fp32:{gpu.name}", 1.0)]
    return terms


def chip_of(gpu: Gpu) -> str:
    """A100 for A100-80GB-PCIe."""
    stem = gpu.name.partition("-")[0]
    return _CHIPS.get(stem, stem)


def link_terms(gpu: Gpu, kind: Kind) -> Terms:
    """What is lost per doubling of the GPUs of a machine."""
    is_switched = gpu.link.lower().startswith(("nvlink", "infinity", "ici"))
    link = "link.nvlink:" if is_switched else "link.pcie:"
    return [(link, 1.0), (f"link.class:{kind.label}", 1.0), (f"link.series:{kind.series}", 1.0)]


def fabric_terms(fabric: Fabric, kind: Kind) -> Terms:
    """What is lost per doubling of the machines."""
    name = f"fabric.{fabric.name.lower()}:"
    return [(name, 1.0), (f"fabric.class:{kind.label}", 1.0), (f"fabric.series:{kind.series}", 1.0)]


def row_terms(row: Benchmark, gpu: Gpu) -> Terms:
    kind = kind_of(row)
    inside, across = float(np.log2(row.gpus)), float(np.log2(row.nodes))
    return [
        (f"series:{kind.series}", 1.0),
        *speed_terms(gpu, kind),
        *((name, inside * factor) for name, factor in link_terms(gpu, kind) if inside),
        *((name, across * factor) for name, factor in fabric_terms(row.fabric, kind) if across),
    ]


@dataclass(frozen=True, slots=True)
class Fit:
    """Bayesian linear regression with independent normal priors."""

    codes: Mapping[str, int]
    mean: Floats
    covariance: Floats
    design: Floats
    rest: Floats  # of the rows: measured minus fitted

    @staticmethod
    def of(rows: Sequence[Benchmark], facts: Mapping[str, Gpu]) -> "Fit":
        terms = [row_terms(row, facts[row.gpu]) for row in rows]
        names = Codebook(name for entries in terms for name, _ in entries).names
        codes = {name: code for code, name in enumerate(names)}
        design = np.zeros((len(rows), len(names)))
        for index, entries in enumerate(terms):
            for name, factor in entries:
                design[index, codes[name]] += factor
        priors = np.array([prior(name) for name in names]).reshape(len(names), 2)
        rate = np.array([row.rate / (row.gpus * row.nodes) for row in rows], dtype=np.float64)
        rest = np.log(rate) - design @ priors[:, 0]
        information = design.T @ design / _NOISE**2 + np.diag(priors[:, 1] ** -2.0)
        covariance = np.asarray(np.linalg.inv(information), dtype=np.float64)
        pull = covariance @ (design.T @ rest) / _NOISE**2
        return Fit(codes, priors[:, 0] + pull, covariance, design, rest - design @ pull)

    def predict(self, questions: Iterable[Terms]) -> tuple[Floats, Floats]:
        """Value and standard error of each sum of terms. A coefficient without data has its prior's."""
        asked = list(questions)
        values, unseen = np.zeros(len(asked)), np.zeros(len(asked))
        known = np.zeros((len(asked), len(self.codes)))
        for index, terms in enumerate(asked):
            for name, factor in _summed(terms).items():
                if name in self.codes:
                    known[index, self.codes[name]] += factor
                else:
                    mean, deviation = prior(name)
                    values[index] += mean * factor
                    unseen[index] += (deviation * factor) ** 2
        used = np.flatnonzero(known.any(axis=0))  # a few of hundreds
        known = known[:, used]
        seen = (known @ self.covariance[np.ix_(used, used)] * known).sum(axis=1)
        return values + known @ self.mean[used], np.sqrt(np.maximum(seen, 0.0) + unseen)

    def held_out(self, group: Sequence[int]) -> Floats:
        """By how much, as logarithms, the rows of `group` would be missed by a model that never saw them."""
        chosen = self.design[list(group)]
        hat = chosen @ self.covariance @ chosen.T / _NOISE**2
        return np.asarray(np.linalg.solve(np.eye(len(group)) - hat, self.rest[list(group)]), dtype=np.float64)


def _summed(terms: Terms) -> Mapping[str, float]:
    """What stands on both sides of a comparison cancels out, known or not."""
    total: dict[str, float] = {}
    for name, factor in terms:
        total[name] = total.get(name, 0.0) + factor
    return total


def prior(name: str) -> tuple[float, float]:
    return _PRIORS[name.partition(":")[0]]
