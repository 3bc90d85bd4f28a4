"""A simulated run person by person, in the steps of a live run: for arms that drift, of
every family whose loop draws the sum of many people at once.

Drawn from a run's Generator: one reward a person (then the noise of a Gaussian
response); when sums are due, the noise of each in turn. Plain Python, hence slow.
"""

import math
from collections import defaultdict
from collections.abc import Callable

from discreet._types import Ints
from discreet.simulation.engine import Runner, RunResult, make_single_runner
from discreet.simulation.laws import Generator, Laws, draw_gaussian, draw_reward, make_response_laws
from discreet.strategies.run import make_run
from discreet.strategies.strategy import Strategy
from discreet.strategies.units import compute_noise_scale, compute_sum_noise, is_rounded_to_bits


def run_by_participant(
    strategy: Strategy, rng: Generator, laws: Laws, cap: int, pulls: Ints
) -> RunResult:
    """Play one run. Write `pulls`."""
    run = make_run(strategy, pulls.size, cap, strategy.delta)
    send, noise = make_sender(strategy, rng, laws), make_noise_drawer(strategy, rng)
    waiting, rounds = defaultdict[tuple[int, int], float](float), 0
    while not run.stopped:
        if (batch := run.assign_next()) is not None:
            value = send(batch.arm, int(pulls.sum()))
            pulls[batch.arm] += 1
            if run.releases_each_answer:
                run.record_answer(batch.arm, value)
                rounds += 1
            else:
                waiting[batch.arm, batch.phase] += value
        elif due := run.list_due():
            run.release([waiting.pop((arm, phase)) + noise() for arm, phase, _ in due])
            rounds += len(due) if strategy.is_phased and not strategy.has_global_episode else 1
        else:
            break
    return RunResult(int(pulls.sum()), run.recommendation or 0, run.stopped, rounds)


def make_sender(strategy: Strategy, rng: Generator, laws: Laws) -> Callable[[int, int], float]:
    """Make the function that draws what a participant, given by number, sends of an
    arm's reward: the reward, or a randomised response to it.
    """
    answers = is_rounded_to_bits(strategy) and strategy.trust_model.randomised
    sent = make_response_laws(laws, float(strategy.epsilon or 0)) if answers else laws
    spread = compute_noise_scale(strategy)

    def send(arm: int, person: int) -> float:
        value = draw_reward(rng, sent, arm, person)
        return value + spread * rng.standard_normal() if spread > 0.0 else value

    return send


def make_noise_drawer(strategy: Strategy, rng: Generator) -> Callable[[], float]:
    """Make the function that draws the noise of a released sum: none, Laplace or
    Gaussian; on sums of bits the discrete law.
    """
    epsilon, sigma = strategy.trust_model.noise(strategy.epsilon), compute_sum_noise(strategy)
    if sigma > 0:
        bits = is_rounded_to_bits(strategy)
        return lambda: draw_gaussian(rng, sigma) if bits else sigma * rng.standard_normal()
    if epsilon == math.inf:
        return lambda: 0.0
    if is_rounded_to_bits(strategy):
        p = -math.expm1(-epsilon)
        return lambda: float(rng.geometric(p) - rng.geometric(p))
    return lambda: rng.laplace(0.0, 1.0 / epsilon)


def make_participant_runner(strategy: Strategy, laws: Laws, cap: int) -> Runner:
    """Make what plays any strategy that has a live run, on these laws."""
    return make_single_runner(
        lambda rng, pulls: run_by_participant(strategy, rng, laws, cap, pulls)
    )
