"""Everything the theory says of one instance: how many samples, how to spread them,
when privacy is free.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from discreet.frames import Tabular
from discreet.gaussian import Gaussian
from discreet.instance import Bernoulli, Instance, check_bounded, check_instance
from discreet.scale import YES_NO
from discreet.theory import constants, times
from discreet.theory.floor import floor_bound
from discreet.theory.times import CharacteristicTime
from discreet.validate import check_levels

LEFT_OUT = ("floor", "floor_global", "floor_local", "t_tv", "t_tv2")
"""What is not written where there is none."""


@dataclass(frozen=True, eq=False)
class PrivateBounds:
    """What holds at one privacy level ε. Times and constants multiply log(1/δ); bounds
    are numbers of samples.

    `lower_bound_local` follows from the local time T*_ℓ alone; as ε-local DP implies
    ε-global DP, a local strategy also obeys the global bound, and
    `lower_bound_local_both` is the larger of the two. The costs say how many times as
    many samples are needed as without privacy.

    Everything except the floors is for Bernoulli arms, or for strategies that round
    each outcome to a bit. The floors, which exist for arms that are not Bernoulli, hold
    for every strategy.
    """

    epsilon: float
    t_local: CharacteristicTime
    t_global: CharacteristicTime
    t_epsilon: CharacteristicTime
    t_relaxed: CharacteristicTime
    t_relaxed_beta: CharacteristicTime
    lower_bound_local: float
    lower_bound_global: float
    lower_bound_local_both: float
    lower_bound_local_paper: float
    lower_bound_global_paper: float
    cost_local: float
    cost_global: float
    regime_local: str
    regime_global: str
    upper_constant: dict[str, float]
    private_complexity: float
    relaxed_complexity: float
    randomised_complexity: float
    ctb_tt_order: float
    floor_global: float | None = None
    floor_local: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain types for JSON; times as numbers, their allocations under
        `allocation`.
        """
        return _plain(vars(self))


@dataclass(frozen=True, eq=False)
class Bounds(
    Tabular,
    rows="per_epsilon",
    shown="epsilon floor_global floor_local lower_bound_global lower_bound_local_both cost_global "
    "cost_local best delta floor lower_bound rounded_to_bits",
):
    """The characteristic times of an instance, and its bounds at an error rate δ and
    some privacy levels.

    If the arms are not Bernoulli, `floor` is a lower bound for all strategies that keep
    their error rate for all laws on [0, 1]. The times and the other bounds are then
    those of the arms after each outcome is rounded at random to a bit
    (`rounded_to_bits`): they hold for strategies that round in this way, and others may
    take fewer samples.

    Gaussian arms have no private quantities: no total variation, no switch points, and
    privacy is never free.
    """

    instance: Instance
    delta: float
    beta: float
    sigma: float
    t_kl: CharacteristicTime
    t_kl_beta: CharacteristicTime
    t_gaussian: CharacteristicTime
    t_gaussian_beta: CharacteristicTime
    t_tv: CharacteristicTime | None
    t_tv2: CharacteristicTime | None
    complexity: float
    lower_bound: float
    lower_bound_paper: float
    switch_epsilon: dict[str, float]
    free_epsilon: float
    upper_constant: dict[str, float]
    batches_limit: float
    per_epsilon: tuple[PrivateBounds, ...]
    floor: float | None = None

    @property
    def rounded_to_bits(self) -> bool:
        """Whether everything except the floors is about outcomes rounded to bits."""
        return self.floor is not None

    def to_dict(self) -> dict[str, Any]:
        """Plain types for JSON; an infinite `free_epsilon` (privacy is never free)
        becomes null. If the arms are not Bernoulli, there are also the floors, and a
        note that the rest is about bits.
        """
        fields = dict(vars(self))
        fields["instance"] = self.instance.describe()
        fields["best"] = self.instance.names[self.instance.best]
        fields["free_epsilon"] = self.free_epsilon if math.isfinite(self.free_epsilon) else None
        fields["per_epsilon"] = [row.to_dict() for row in self.per_epsilon]
        if self.rounded_to_bits:
            fields["rounded_to_bits"] = True
        return _plain(fields)


def bounds(
    instance: Instance,
    epsilons: Sequence[float] = (),
    delta: float = 0.05,
    beta: float = 0.5,
    sigma: float | None = None,
) -> Bounds:
    """All quantities of `theory` for an instance: without privacy, and for each ε of
    `epsilons`.

    The leader's share in the β-times is `beta` (β). The standard deviation in the
    Gaussian times is `sigma` (σ): if left out, 1/2, or that of the arms if they are
    Gaussian. If the arms are not Bernoulli, only the floor holds for every strategy;
    the rest holds once each outcome is rounded to a bit. Gaussian arms take no ε.
    """
    levels = check_levels(epsilons)
    arms = _arms(instance)
    if levels:
        check_bounded(arms)
    sigma = arms.sigma if sigma is None else sigma
    t_kl, t_gaussian = times.t_kl(arms), times.t_gaussian(arms, sigma)
    t_beta = times.t_gaussian_beta(arms, beta, sigma)
    plain = Bounds(
        instance=instance,
        delta=delta,
        beta=beta,
        sigma=sigma,
        t_kl=t_kl,
        t_kl_beta=times.t_kl_beta(arms, beta),
        t_gaussian=t_gaussian,
        t_gaussian_beta=t_beta,
        t_tv=None,
        t_tv2=None,
        complexity=constants.complexity(arms, sigma),
        lower_bound=times.lower_bound(t_kl, delta),
        lower_bound_paper=times.lower_bound_paper(t_kl, delta),
        switch_epsilon={},
        free_epsilon=math.inf,
        upper_constant={
            "ttucb": t_beta.value,
            "ttucb-ids": t_gaussian.value,
            "ttucb-batched": 2 * t_beta.value,
        },
        batches_limit=constants.batches_limit(arms, beta, sigma),
        per_epsilon=(),
    )
    if arms.bounded:
        plain = _with_private(plain)
    rows = tuple(_at(plain, epsilon) for epsilon in levels)
    return Bounds(**{**vars(plain), "per_epsilon": rows})


def _with_private(plain: Bounds) -> Bounds:
    """With what is about privacy at any ε, and the floor."""
    arms, t_kl = _arms(plain.instance), plain.t_kl
    t_tv, t_tv2 = times.t_tv(arms), plain.t_gaussian.scaled(1 / (2 * plain.sigma**2))
    yes_no = plain.instance.outcomes == YES_NO
    return replace(
        plain,
        t_tv=t_tv,
        t_tv2=t_tv2,
        switch_epsilon={
            "local": times.inverse_local_factor(t_tv2.value / t_kl.value),
            "global": t_tv.value / t_kl.value,
        },
        free_epsilon=times.free_epsilon(arms, t_kl),
        floor=None if yes_no else floor_bound(plain.instance, plain.delta),
    )


def _arms(instance: Instance) -> Instance:
    """The arms that the times are for: Bernoulli or Gaussian ones."""
    known = isinstance(instance, Bernoulli | Gaussian)
    return instance if known else check_instance(instance).as_bernoulli()


def _at(plain: Bounds, epsilon: float) -> PrivateBounds:
    instance, delta, beta, sigma = _arms(plain.instance), plain.delta, plain.beta, plain.sigma
    t_local, t_global, t_epsilon = (
        time(instance, epsilon, plain.t_kl)
        for time in (times.t_local, times.t_global, times.t_epsilon)
    )
    t_relaxed_beta = times.t_relaxed_beta(instance, epsilon, beta, sigma)
    hardest = times.harder(t_local, t_epsilon)
    floors: dict[str, float] = {}
    if plain.rounded_to_bits:
        for trust in ("global", "local"):
            floors[f"floor_{trust}"] = floor_bound(plain.instance, delta, epsilon, trust)
    return PrivateBounds(
        epsilon=float(epsilon),
        t_local=t_local,
        t_global=t_global,
        t_epsilon=t_epsilon,
        t_relaxed=times.t_relaxed(instance, epsilon, sigma),
        t_relaxed_beta=t_relaxed_beta,
        lower_bound_local=times.lower_bound(t_local, delta),
        lower_bound_global=times.lower_bound(t_epsilon, delta),
        lower_bound_local_both=times.lower_bound(hardest, delta),
        lower_bound_local_paper=times.lower_bound_paper(t_local, delta),
        lower_bound_global_paper=times.lower_bound_paper(t_global, delta),
        cost_local=hardest.value / plain.t_kl.value,
        cost_global=t_epsilon.value / plain.t_kl.value,
        regime_local="high" if epsilon < plain.switch_epsilon["local"] else "low",
        regime_global=_global_regime(epsilon, plain),
        upper_constant=constants.upper_constants(
            instance, epsilon, plain.t_gaussian_beta, t_relaxed_beta, beta, sigma
        ),
        private_complexity=constants.private_complexity(instance, epsilon, sigma),
        relaxed_complexity=constants.relaxed_complexity(instance, epsilon, sigma),
        randomised_complexity=constants.randomised_complexity(instance, epsilon, sigma),
        ctb_tt_order=constants.ctb_tt_order(instance, epsilon),
        **floors,
    )


def _global_regime(epsilon: float, plain: Bounds) -> str:
    if epsilon >= plain.free_epsilon:
        return "free"
    return "high" if epsilon < plain.switch_epsilon["global"] else "low"


def _plain(fields: dict[str, Any]) -> dict[str, Any]:
    """Times as numbers, their allocations gathered under one key, and neither floors
    nor times where there are none.
    """
    fields = {key: some for key, some in fields.items() if some is not None or key not in LEFT_OUT}
    times = {key: value for key, value in fields.items() if isinstance(value, CharacteristicTime)}
    result = {key: value.value if key in times else value for key, value in fields.items()}
    return {**result, "allocation": {key: time.allocation.tolist() for key, time in times.items()}}
