"""A release of a live trial: what is summed of outcomes, the noise on it, the ε it
costs, and what the record says about it.
"""

from collections.abc import Callable, Sequence
from typing import Any

from discreet.strategies.run import Place, Run, Totals
from discreet.strategies.scales import sum_noise
from discreet.trials import mechanisms
from discreet.trials.outcomes import to_units
from discreet.trials.protocol import Protocol
from discreet.trials.record import Release
from discreet.trials.store.session import Session


def totals_of(batch: Place, run: Run, grid: int, session: Session) -> tuple[Totals, int]:
    """What is summed of a batch, and of how many outcomes."""
    if run.sums_only:
        total, count = session.unseal_sum(batch.arm, batch.phase)
        return Totals(total), count
    units = session.unseal(batch.arm, batch.phase)
    if run.due_grid(grid) != grid:
        units = [to_units(one / grid, 1) for one in units]
    return run.totals(units), len(units)


def noise_of(protocol: Protocol, grid: int) -> Callable[[Totals], Totals]:
    """What makes a release of what was summed, in these units."""
    epsilon, sigma = float(protocol.strategy.epsilon or 0), sum_noise(protocol.strategy)
    if not protocol.strategy.trust_model.noised:
        return lambda total: total
    if sigma > 0:
        return lambda total: mechanisms.gaussian_totals(total, sigma, grid)
    return lambda total: mechanisms.noisy_totals(total, epsilon, grid)


def spent(protocol: Protocol, run: Run) -> float | None:
    """The ε, or ρ, that the next release states: that of its noise, or of the answers
    it is made of.
    """
    strategy = protocol.strategy
    epsilon, sigma = float(strategy.epsilon or 0), sum_noise(strategy)
    if sigma > 0:
        return mechanisms.gaussian_cost(sigma, run.due_grid(protocol.grid), strategy.gamma)
    if strategy.trust_model.noised:
        return mechanisms.sum_epsilon(epsilon, run.due_grid(protocol.grid), run.fine)
    if strategy.trust_model.randomised:
        return mechanisms.response_epsilon(epsilon, strategy.gamma, run.middle)
    return None


def released(
    made: Sequence[Release], cost: float | None, unit: float, pairs: bool, level: str
) -> dict[str, Any]:
    """What the record says about a release, of `pairs` with closeness, and its cost by
    the name of the `level`; a batch that only enters the margin of another arm has no
    number and costs nothing of its own.
    """
    releases = [
        {
            "arm": one.arm,
            "phase": one.phase,
            "count": one.size,
            "sum": one.sum,
            level: None if one.sum is None else cost,
            **({"near": one.near} if pairs else {}),
        }
        for one in made
    ]
    says: dict[str, Any] = {"releases": releases, "unit": unit}
    if any(one.sum is None for one in made):
        says["margin"] = next(one.arm for one in made if one.sum is not None)
    return says
