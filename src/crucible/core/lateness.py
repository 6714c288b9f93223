"""How likely the hours that interruptions cost stay below a limit. The number of interruptions of a piece of work is
geometric and what each costs is independent of the others, so the sum has exact moments; its distribution is exact for
none and one, and fitted to the moments for more. docs/cost-model.md derives it. No warnings, whatever the numbers."""

from dataclasses import dataclass, fields

import numpy as np

from crucible.core.offers import Floats

STEEPEST = 40.0  # exponents end here: nothing ends after e^40 interruptions, and squares of that are still finite
NEVER = 1e9  # expected interruptions; what needs more does not end
UNLIKELY = 1e-9  # a probability that no answer can show
TINY = 1e-300  # keeps zero out of a denominator whose numerator is zero as well
SHARP = 1e-18  # variance in hours² below which a curve is a step
SINGLY = 32  # interruptions are told apart up to so many; what has more is smooth enough for one curve
REBOOTS = 6  # up to so many interruptions it shows in the curve that a boot failed as well
BLOCK = 512  # rows at a time: what is computed of them stays in the processor's cache


@dataclass(frozen=True, slots=True)
class Pieces:
    """Work between checkpoints."""

    count: Floats  # that end with a checkpoint; one more does not
    length: Floats  # of each of those, checkpoint included
    last: Floats
    total: Floats  # hours if nothing happens


@dataclass(frozen=True, slots=True)
class Losses:
    """The hours that interruptions cost beyond `Pieces.total`."""

    none: Floats  # probability of no interruption
    one: Floats  # of one during work, whatever happens during its restart
    number: Floats  # of those during work
    number_var: Floats
    clean: Floats  # mean hours of one whose first boot succeeds, and their variance
    clean_var: Floats
    boots: Floats  # probability that a boot succeeds
    again: Floats  # mean hours of a boot that does not, and their variance
    again_var: Floats


def losses(pieces: Pieces, hazard: Floats, boot: Floats, wait: Floats) -> Losses:
    """A piece is tried until it passes without interruption: e^(hazard × length) times in the mean. So is a boot."""
    n, span = pieces.count, np.stack([pieces.length, pieces.last, boot])
    risk = np.minimum(hazard * span, STEEPEST)
    full, last, reboots = np.expm1(risk)  # expected interruptions of one
    mean, var = _cut_short(risk)
    mean, var = mean * span, var * span * span
    number = n * full + last
    share = n * full / np.maximum(number, TINY)
    vain = share * mean[0] + (1 - share) * mean[1]
    vain_var = share * var[0] + (1 - share) * var[1] + share * (1 - share) * (mean[0] - mean[1]) ** 2
    none = np.exp(-hazard * pieces.total)
    hit = -np.expm1(-risk)
    return Losses(
        none=none,
        one=none * (n * hit[0] + hit[1]),
        number=number,
        number_var=number + n * full * full + last * last,
        clean=vain + boot + wait,
        clean_var=vain_var,
        boots=1 / (1 + reboots),
        again=wait + mean[2],
        again_var=var[2],
    )


def _cut_short(risk: Floats) -> tuple[Floats, Floats]:
    """Mean and variance of the share that was done of what was interrupted; `risk` is hazard times length."""
    risk = np.maximum(risk, 1e-3)  # half done with less, within a ten-thousandth; the formulas lose their digits there
    inverse = 1 / np.expm1(risk)
    mean = 1 / risk
    return mean - inverse, mean * mean - inverse * (1 + inverse)


def in_time(pieces: Pieces, hazard: Floats, lost: Losses, restart: Floats, late: Floats) -> Floats:
    """The probability that the losses stay within `late` hours. `restart`: a clean one."""
    sure = np.where(late >= 0, lost.none, 0.0) + _once(pieces, hazard, lost, np.maximum(late - restart, 0))
    columns = [getattr(lost, field.name) for field in fields(Losses)]
    reach = lost.number + 4 * np.sqrt(lost.number_var) + 3 * lost.number_var / np.maximum(lost.number, TINY)
    few = reach <= SINGLY
    more = np.empty_like(late)
    for rows, chance in ((np.flatnonzero(few), _few), (np.flatnonzero(~few), _many)):
        for block in (rows[start : start + BLOCK] for start in range(0, len(rows), BLOCK)):
            more[block] = chance(Losses(*(column[block] for column in columns)), late[block])
    return np.minimum(sure + more * (late >= restart), 1.0)  # what was interrupted is late by a restart at least


def _once(pieces: Pieces, hazard: Floats, lost: Losses, left: Floats) -> Floats:
    """Work is interrupted once and the boot succeeds: exact."""
    full = np.expm1(-hazard * np.minimum(left, pieces.length))
    last = np.expm1(-hazard * np.minimum(left, pieces.last))
    return lost.none * lost.boots * -(pieces.count * full + last)


def _few(lost: Losses, late: Floats) -> Floats:
    """Everything beyond `_once`, by the number of interruptions during work: close to negative binomial, with the exact
    mean and variance."""
    k = np.arange(1.0, SINGLY + 1)[:, np.newaxis]
    weight = _weights(lost, k)
    each, var = _each(lost)
    chance = _normal(late - k[REBOOTS:] * each, k[REBOOTS:] * var)
    late_ones: Floats = np.einsum("kr,kr->r", weight[REBOOTS:], chance)
    return late_ones + _apart(lost, late, weight[:REBOOTS], k[:REBOOTS])


def _weights(lost: Losses, k: Floats) -> Floats:
    number, number_var = lost.number, lost.number_var
    size = number * number / np.maximum(number_var - number, 1e-9 * number + TINY)
    ratio = number / np.maximum(size + number, TINY)
    none = np.exp(-size * np.log1p(number / np.maximum(size, TINY)))
    one = none * size * ratio
    weight = (1 / k) * (ratio * size) + (1 - 1 / k) * ratio
    weight[0] = one * _more(lost) / np.maximum(1 - none - one, UNLIKELY)
    np.cumprod(weight, axis=0, out=weight)
    weight[0] = lost.one
    return weight


def _apart(lost: Losses, late: Floats, weight: Floats, k: Floats) -> Floats:
    """`k` interruptions, with a boot that failed and without: it moves the sum by a whole wait."""
    boots = lost.boots**k
    failed = k * (1 / lost.boots - 1)
    some = np.maximum(1 - boots, UNLIKELY)
    mean = failed / some  # boots that failed, given that one did
    var = failed * (1 / lost.boots + failed) / some - mean * mean
    hours, hours_var = k * lost.clean, k * lost.clean_var
    dirty = _normal(late - hours - mean * lost.again, hours_var + mean * lost.again_var + var * lost.again**2)
    clean = _normal(late - hours, hours_var) * (k > 1)  # `_once` has the others
    chance: Floats = np.sum(weight * (boots * clean + (1 - boots) * dirty), axis=0)
    return chance


def _many(lost: Losses, late: Floats) -> Floats:
    """Everything beyond `_once`, as a gamma variable with the mean, the variance and about the skewness."""
    more = _more(lost)
    some = np.maximum(more, UNLIKELY)
    number = (lost.number - lost.one) / some  # given that there are two or more
    number_var = (lost.number_var + lost.number * lost.number - lost.one) / some - number * number
    each, var = _each(lost)
    deviation = np.sqrt(number * var + number_var * each * each)
    growth = lost.number_var / lost.number
    skew = number_var * each * ((2 * growth - 1) * each * each + 3 * var) / deviation**3
    chance = _gamma((late - number * each) / deviation, np.clip(skew, 1e-3, 2.0))
    rest = np.where(lost.number > NEVER * lost.boots, 0.0, 1 - lost.none - lost.one * lost.boots)
    return rest * chance


def _more(lost: Losses) -> Floats:
    """The probability of two or more during work."""
    return np.maximum(1 - lost.none - lost.one, 0)


def _each(lost: Losses) -> tuple[Floats, Floats]:
    """Mean and variance of the hours of one, its restart as it comes."""
    failed = 1 / lost.boots - 1
    mean = lost.clean + failed * lost.again
    return mean, lost.clean_var + failed * (lost.again_var + lost.again**2 / lost.boots)


def _gamma(z: Floats, skew: Floats) -> Floats:
    """Of a standardised gamma variable, after Wilson and Hilferty."""
    ratio = np.cbrt(np.maximum(1 + z * skew / 2, 0))
    return _curve((ratio - 1) * 6 / skew + skew / 6)


def _normal(excess: Floats, var: Floats) -> Floats:
    deviation = np.maximum(var, SHARP)
    np.sqrt(deviation, out=deviation)
    return _curve(np.divide(excess, deviation, out=deviation))


def _curve(z: Floats) -> Floats:
    """The normal distribution within 0.0002; a true error function takes ten times as long."""
    bent = z * z
    bent *= 0.03528
    bent += 0.7988
    bent *= z
    np.tanh(bent, out=bent)
    bent *= 0.5
    bent += 0.5
    return bent
