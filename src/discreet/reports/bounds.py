"""What `discreet bounds` shows to people in a terminal."""

import math
from typing import TYPE_CHECKING

from discreet.reports.charts.style import arms_shown, short_names
from discreet.reports.terminal import plain_console, say, show_grid
from discreet.wording import full_people, ratio

if TYPE_CHECKING:
    from discreet.theory.bounds import Bounds
    from discreet.theory.times import CharacteristicTime

BITS = "once each outcome is rounded at random to a bit"


def show_bounds(found: "Bounds") -> None:
    """Samples at this δ, regimes, what privacy costs, and how samples are spread. For
    arms that are not Bernoulli first the floor, then the same for outcomes rounded to
    bits.
    """
    instance, bits = found.instance, found.rounded_to_bits
    if not instance.bounded:
        _show_gaussian(found)
        return
    least = (
        "With an error rate of 1/2 or more no samples are needed, so the lower bounds say nothing."
    )
    if found.delta < 0.5:
        laws = " that keeps this error rate however rewards are spread over [0, 1]" if bits else ""
        count = full_people(found.lower_bound if found.floor is None else found.floor)
        least = f"Without privacy every strategy{laws} needs at least {count} samples on average."
    best = instance.names[instance.best]
    say(f"{instance.arms} arms, {best} is best; error rate δ = {found.delta:g}\n{least}\n")
    if bits:
        _show_floors(found)
    _show_lower_bounds(found)
    _show_allocation(found)
    _show_words(found)


def _show_gaussian(found: "Bounds") -> None:
    """Of arms whose rewards have no bounds, and that no privacy is for."""
    instance = found.instance
    best = instance.names[instance.best]
    say(
        f"{instance.arms} Gaussian arms with σ = {instance.sigma:g}, {best} is best; error rate "
        f"δ = {found.delta:g}\nEvery strategy that keeps this error rate for all Gaussian arms "
        f"with this σ needs at least {full_people(found.lower_bound)} samples on average.\n"
    )
    _show_allocation(found)
    say(
        "For unbounded rewards there are no bounds with privacy. --json has every quantity, and "
        "the docs page 'Theory and proofs' says where each comes from."
    )


def _show_words(found: "Bounds") -> None:
    bits = found.rounded_to_bits
    switch, free = found.switch_epsilon, found.free_epsilon
    cost = f"is free at ε = {free:.4g} and above" if free < math.inf else "is never quite free"
    whose = (
        "No strategy needs fewer samples than these on average: they are the characteristic "
        "time T times kl(1−δ, δ)"
    )
    if bits:
        whose = (
            "Only the floors hold for every strategy. The other numbers are for strategies that "
            "round each outcome to a bit, as ctb-tt and (with yes-no outcomes) bet-se do; a "
            "strategy that uses the outcomes as numbers may need fewer samples"
        )
    say(
        f"{_sentence(BITS) if bits else 'With'} a trusted collector (global DP) privacy matters "
        f"most below ε ≈ {switch['global']:.4g} and {cost}; with nobody trusted (local DP) it "
        f"matters most below ε ≈ {switch['local']:.4g}. The price is how many times as many "
        f"samples are needed as without privacy. {whose}; --json has every quantity, and the "
        "docs page 'Theory and proofs' says where each comes from.",
    )


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}, with"


def _show_floors(found: "Bounds") -> None:
    rows = [
        [f"{row.epsilon:g}", full_people(row.floor_global or 0), full_people(row.floor_local or 0)]
        for row in found.per_epsilon
    ]
    title = "The floor: at least this many samples on average under ε-privacy"
    show_grid(["\nε", "collector\ntrusted", "nobody\ntrusted"], rows, title)


def _show_lower_bounds(found: "Bounds") -> None:
    """Regimes only where there is room for them."""
    shown = 3 if plain_console().width >= 76 else 2
    heads = ["\nε"]
    for trust in ("collector\ntrusted", "nobody\ntrusted"):
        heads += [trust, "\nprice", "privacy\nregime"][:shown]
    rows = []
    for row in found.per_epsilon:
        collector = (full_people(row.lower_bound_global), ratio(row.cost_global), row.regime_global)
        nobody = (full_people(row.lower_bound_local_both), ratio(row.cost_local), row.regime_local)
        rows.append([f"{row.epsilon:g}", *collector[:shown], *nobody[:shown]])
    title = "At least this many samples on average under ε-privacy"
    if found.rounded_to_bits:
        title += f",\n{BITS} ({full_people(found.lower_bound)} without privacy)"
    show_grid(heads, rows, title, left=["privacy\nregime"])


def _show_allocation(found: "Bounds") -> None:
    """As many levels of ε as fit, and the best arms if there are many."""
    instance = found.instance
    times: list[tuple[str, CharacteristicTime]] = [("no\nprivacy", found.t_kl)]
    times += [(f"global\nε = {row.epsilon:g}", row.t_epsilon) for row in found.per_epsilon]
    shown = arms_shown(instance.means)
    names = short_names([instance.names[arm] for arm in shown])
    fitting = max(1, (plain_console().width - 14 - max(map(len, names))) // 13)
    rows = []
    for name, arm in zip(names, shown, strict=True):
        shares = [f"{time.allocation[arm]:.1%}" for _, time in times[:fitting]]
        rows.append([name, f"{instance.means[arm]:g}", *shares])
    heads = ["\narm", "\nmean", *(head for head, _ in times[:fitting])]
    of = " of such bits" if found.rounded_to_bits else ""
    show_grid(heads, rows, f"How an ideal strategy{of} spreads its samples", left=["\narm"])
    if len(times) > fitting:
        more = len(times) - fitting
        levels = "one more level" if more == 1 else f"{more} more levels"
        say(f"(to see {levels} of ε, use a wider window or --json)\n")
    if len(shown) < instance.arms:
        say(f"(the best {len(shown)} of {instance.arms} arms)\n")
