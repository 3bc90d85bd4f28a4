"""What a plan is made for: success rates that are given, or all that a few words may
mean.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from discreet import theory
from discreet.errors import InvalidInputError
from discreet.instance import Bernoulli, Drifting, Instance
from discreet.sampled import Sampled
from discreet.validate import check_arms, check_levels, check_share, quoted, real
from discreet.words import cut


@dataclass(frozen=True)
class GapScenarios:
    """What "K arms, the best at least `gap` better than the rest, success rates around
    `base`" may mean.

    `shapes` are instances that fit these words, by name. `hardest` says which of them
    is the hardest. Strategies that take a hint are planned with the gap as their hint.
    """

    arms: int
    gap: float
    base: float
    shapes: dict[str, Bernoulli] = field(compare=False)

    def hardest(
        self, epsilons: Sequence[float] = (), trust: str = "global"
    ) -> tuple[str, Bernoulli]:
        """The shape with the largest lower bound, in the geometric mean over no privacy
        and all the privacy levels.

        With the best arm held fixed, all others tied exactly `gap` below it is the
        hardest: raising another arm's mean makes every alternative in which it is best
        cheaper. Where the two success rates lie depends on how "around" is read, and
        outcomes tell the least near 1/2; so the shapes are compared numerically.
        """

        levels = check_levels(epsilons)

        def hardness(shape: Bernoulli) -> float:
            return sum(
                math.log(theory.tightest(shape, epsilon, trust).value)
                for epsilon in (None, *levels)
            )

        return max(self.shapes.items(), key=lambda item: hardness(item[1]))


def gap_scenarios(arms: int, gap: float, base: float) -> GapScenarios:
    """The instances with `arms` arms, the best at least `gap` better than the rest and
    success rates around `base`.

    `base` may be the rate of all arms but the best, of the best, or the middle between
    them. The shapes "one rival" and "ladder" put the other arms further below.
    """
    check_arms(arms)
    gap = check_share("gap", gap)
    if not 0 <= real(base) <= 1:
        raise InvalidInputError(
            f"base is a success rate and must lie in [0, 1]; got {quoted(base)}"
        )
    base = float(base)
    rest, middle = arms - 1, base + gap / 2
    means = {
        "rest at the base": [base + gap] + [base] * rest,
        "base in the middle": [middle] + [base - gap / 2] * rest,
        "best at the base": [base] + [base - gap] * rest,
    }
    if arms > 2:
        pair = [middle, base - gap / 2]
        means["one rival"] = pair + [max(0.0, middle - 2 * gap)] * (arms - 2)
        means["ladder"] = pair + [max(0.0, middle - i * gap) for i in range(2, arms)]
    rounded = {name: [round(mean, 12) for mean in shape] for name, shape in means.items()}
    fitting = {
        name: Bernoulli(shape)
        for name, shape in rounded.items()
        if min(shape) >= 0 and max(shape) <= 1
    }
    if not fitting:
        raise InvalidInputError(
            f"no success rates around {base:g} differ by {gap:g} within [0, 1]: choose a smaller "
            "gap or another base"
        )
    return GapScenarios(arms, gap, base, fitting)


def named_scenarios(
    scenarios: Any, levels: list[float], trust: str, ties: bool = False
) -> dict[str, Instance]:
    """The scenarios by name; `ties` if the best arm may share its place."""
    if isinstance(scenarios, GapScenarios):
        name, hardest = scenarios.hardest(levels, trust)
        described = f"{scenarios.arms} arms, gap {scenarios.gap:g}, base {scenarios.base:g}"
        return {f"{described}: {name}": hardest}
    instances = [scenarios] if isinstance(scenarios, Instance) else scenarios
    listed = isinstance(instances, list | tuple)
    if (
        not listed
        or not instances
        or not all(isinstance(instance, Instance) for instance in instances)
    ):
        raise InvalidInputError(
            "scenarios must be an instance, a list of instances, or what gap_scenarios returns"
        )
    cases: dict[str, Instance] = {}
    for instance in instances:
        if instance.unique or not ties or isinstance(instance, Drifting):
            _ = instance.gaps  # refuses a tie, and arms that drift
        known = isinstance(instance, Sampled) and instance.scale is not None
        arms = map(cut, instance.names) if known else (f"{mean:g}" for mean in instance.means)
        shown = ", ".join(islice(arms, 6))
        name = f"{shown}{', …' if instance.arms > 6 else ''}"
        cases[name if name not in cases else f"{name} ({len(cases) + 1})"] = instance
    return cases
