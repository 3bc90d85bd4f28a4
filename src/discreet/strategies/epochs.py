"""A run of DP-SE (Sajed and Sheffet). Leaf functions like decision.py's, compiled by kernel.py."""

from discreet.arrays import Flags, Floats, Ints
from discreet.simulation.laws import Generator, Laws, draw_sum
from discreet.strategies.decision import best_arm, drop_far, epoch_length, epoch_radius


def spread(samples: int, left: int, active: Flags, pulls: Ints) -> None:
    """Count the samples of an epoch cut off by the cap: round robin over the active arms."""
    place = 0
    for arm in range(pulls.size):
        if active[arm]:
            pulls[arm] += samples // left + (1 if place < samples % left else 0)
            place += 1


def dpse_loop(
    rng: Generator,
    laws: Laws,
    epsilon: float,
    delta: float,
    max_samples: int,
    mean: Floats,
    active: Flags,
    pulls: Ints,
    trace: Floats,
) -> tuple[int, int, bool, int]:
    """One run of DP-SE; `mean` and `active` are room to compute in.

    An epoch that would pass the cap is cut off there and releases nothing.
    """
    arms = pulls.size
    for arm in range(arms):
        mean[arm], active[arm], pulls[arm] = 0.0, True, 0
    samples, rounds, left = 0, 0, arms
    while left > 1:
        length = epoch_length(left, rounds + 1, epsilon, delta)
        if length > (max_samples - samples) // left:
            spread(max_samples - samples, left, active, pulls)
            samples = max_samples
            break
        for arm in range(arms):
            if active[arm]:
                total = draw_sum(rng, laws, arm, length)
                mean[arm] = total / length + rng.laplace(0.0, 1.0 / (epsilon * length))
                pulls[arm] += length
        samples += left * length
        rounds += 1
        left = drop_far(mean, active, epoch_radius(left, rounds, length, epsilon, delta))
        if rounds <= trace.shape[0]:
            row = trace[rounds - 1]
            row[0], row[1], row[2], row[3] = samples, left, length, rounds
            for arm in range(arms):
                row[4 + arm] = mean[arm]
    return samples, best_arm(mean, active), left == 1, rounds
