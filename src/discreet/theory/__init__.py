"""Formulas: what is possible, for an instance and a privacy level. Knows instances
only, never a strategy or a run.

Characteristic times, lower and upper bounds, switch points, the floor of all laws on
[0, 1]; thresholds are in
`discreet.theory.thresholds`, divergences in `discreet.theory.divergences`, everything
of one instance at once is `discreet.bounds`.
"""

from discreet.theory.constants import (
    complexity,
    g1,
    g2,
    private_complexity,
    relaxed_complexity,
    rounds_bound,
    upper_constant_adap_tt,
    upper_constant_adap_tt_star,
    upper_constant_ctb_tt,
    upper_constants,
)
from discreet.theory.floor import floor_bound, floor_by_arm, least_samples
from discreet.theory.times import (
    CharacteristicTime,
    free_epsilon,
    harder,
    inverse_local_factor,
    local_factor,
    lower_bound,
    lower_bound_paper,
    switch_epsilon,
    switch_epsilon_global,
    switch_epsilon_local,
    t_epsilon,
    t_gaussian,
    t_gaussian_beta,
    t_global,
    t_kl,
    t_kl_beta,
    t_local,
    t_relaxed,
    t_relaxed_beta,
    t_tv,
    t_tv2,
    tightest,
)

__all__ = [
    "CharacteristicTime",
    "complexity",
    "floor_bound",
    "floor_by_arm",
    "free_epsilon",
    "g1",
    "g2",
    "harder",
    "inverse_local_factor",
    "least_samples",
    "local_factor",
    "lower_bound",
    "lower_bound_paper",
    "private_complexity",
    "relaxed_complexity",
    "rounds_bound",
    "switch_epsilon",
    "switch_epsilon_global",
    "switch_epsilon_local",
    "t_epsilon",
    "t_gaussian",
    "t_gaussian_beta",
    "t_global",
    "t_kl",
    "t_kl_beta",
    "t_local",
    "t_relaxed",
    "t_relaxed_beta",
    "t_tv",
    "t_tv2",
    "tightest",
    "upper_constant_adap_tt",
    "upper_constant_adap_tt_star",
    "upper_constant_ctb_tt",
    "upper_constants",
]
