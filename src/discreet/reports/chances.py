"""What a plan says of chances, in a terminal and on a page: the power of so many
people, and the privacy that they afford.
"""

from collections.abc import Sequence

from discreet.planning.budget import MOST_EPSILON, Affordable
from discreet.planning.plan import Plan
from discreet.planning.power import Power
from discreet.planning.rows import PlanRow
from discreet.words import counted, joined, level, people

ALL = 0.995
"""Shares from here on are shown as 100 %."""
FEW_RIGHT = 0.5
"""Share of right answers below which a plan warns."""
Curve = tuple[str, str, list[Power]]
"""What a row of the table of power is called (ε, strategy), and its points."""


def affordable_words(plan: Plan, entry: Affordable) -> str:
    """What a budget affords with one strategy, and how sure that is."""
    if entry.epsilon is None:
        return entry.reason
    right = (
        f"there the answer is right and in time in {entry.correct:.1%} of the trials; "
        f"{plan.probability:.0%} were wanted"
    )
    return (
        f"{plan.budget:,} people suffice down to ε ≈ {entry.epsilon:.3g} ({right}). "
        f"{_interval_words(entry)}"
    )


def _interval_words(entry: Affordable) -> str:
    """Where the true limit lies, as far as simulations tell."""
    low, high = entry.epsilon_interval
    more = "More simulated trials (--runs) give a more precise answer"
    sure = f"With {entry.level:.0%} confidence"
    if low is not None and high is not None:
        return f"{sure} they suffice at ε = {high:.3g} but not at ε = {low:.3g}. {more}"
    if low is not None:
        return (
            f"{sure} they do not suffice at ε = {low:.3g}; so few trials cannot tell at which ε, "
            f"up to {MOST_EPSILON:g}, they do. {more}"
        )
    if high is not None:
        return f"{sure} they suffice at ε = {high:.3g}; a smaller ε may be enough. {more}"
    return f"So few trials cannot tell how accurate this is. {more}"


def power_curves(plan: Plan, scenario: str) -> list[Curve]:
    """The points of each row of a plan in one scenario."""
    found: dict[tuple[str, str], list[Power]] = {}
    for point in plan.power:
        if point.scenario == scenario:
            found.setdefault((level(point.epsilon), point.strategy), []).append(point)
    return [(epsilon, strategy, points) for (epsilon, strategy), points in found.items()]


def power_title(plan: Plan) -> str:
    """The title of a table of power."""
    return f"Trials that end within {plan.power[0].people:,} people, by the true difference"


def power_table(curves: list[Curve]) -> tuple[list[str], list[list[str]]]:
    """Heads and cells: two rows for each curve, a column for each true difference."""
    gaps = sorted({point.shown_gap for _, _, points in curves for point in points})
    several = len({strategy for _, strategy, _ in curves}) > 1
    heads = ["ε", *(["strategy"] if several else []), "answer", *(f"{gap:.3g}" for gap in gaps)]
    rows = []
    for epsilon, strategy, points in curves:
        known = {point.shown_gap: (point.right, point.answered) for point in points}
        for which, answer in enumerate(("right", "any")):
            shares = [f"{known[gap][which]:.0%}" if gap in known else "–" for gap in gaps]
            rows.append([epsilon, *([strategy] if several else []), answer, *shares])
    return heads, rows


def sure_words(plan: Plan, curves: list[Curve]) -> str | None:
    """What is said in place of a table whose cells are all 100 %; None for others."""
    points = [point for _, _, some in curves for point in some]
    least, gaps = min(point.right for point in points), [point.shown_gap for point in points]
    if least < ALL:
        return None
    share = "all" if least == 1 else f"at least {ALL:.1%} of the"
    return (
        f"At every true difference from {min(gaps):.3g} to {max(gaps):.3g} between the best arm "
        f"and the next{_unit_words(plan)}, {share} trials end within {points[0].people:,} people "
        f"with the right answer (at least {min(point.runs for point in points)} simulated at each)."
    )


def _unit_words(plan: Plan) -> str:
    known = any(point.difference is not None for point in plan.power)
    return ", in the units of the outcomes" if known else ""


def power_words(plan: Plan) -> str:
    """How to read a table of power."""
    runs = min(point.runs for point in plan.power)
    words = (
        "Each column is a true difference between the best arm and the next"
        f"{_unit_words(plan)}; the strategy stays as planned. 'right' counts trials that end with "
        f"the right answer, 'any' those with any answer. At least "
        f"{counted(runs, 'simulated trial')} in each cell"
    )
    near = f". An arm within {plan.zeta:g} of the best is a right answer" if plan.zeta else ""
    return f"{words}{near}."


def best_words(plan: Plan, scenario: str) -> str:
    """The best arm of a scenario, or those that share its place."""
    arms = plan.scenarios[scenario]
    best = [
        name for name, mean in zip(arms.names, arms.means, strict=True) if mean == max(arms.means)
    ]
    if len(best) > 4:
        return f"{len(best)} arms alike"
    return joined(best)


def bound_cell(row: PlanRow) -> str:
    """What nobody can beat, in the table of people."""
    bound = row.comparable_bound
    return "–" if bound is None else people(bound)


def cut_words(plan: Plan) -> str:
    """Why some rows have no lower bound, where others have one."""
    rows = (*plan.no_privacy, *plan.per_epsilon)
    if any(row.unstopped and row.lower_bound is not None for row in rows):
        return "; none is shown where the mean is one of trials that were cut short"
    return ""


def price_words(plan: Plan) -> str:
    """What the price is of, where trials are cut short."""
    rows = (*plan.no_privacy, *plan.per_epsilon)
    if plan.max_people is None or not any(row.unstopped for row in rows):
        return ""
    return ", if no trial was cut short at the maximum"


def cheap_words(rows: Sequence[PlanRow]) -> str:
    """Why privacy seems to save people, where the price that is shown is below 1."""
    shown = [row for row in rows if row.privacy_cost is not None and row.epsilon is not None]
    cheap = [row.strategy for row in shown if float(f"{row.privacy_cost:.3g}") < 1]
    if not cheap:
        return ""
    same = {one.shown for one in cheap if one.without_privacy() is not None}
    others = {one.shown for one in cheap} - same
    why = [f"{joined(sorted(same))} has other rounds and other bets with noise than without"]
    why = why if same else []
    if others:
        are = "is" if len(others) == 1 else "are"
        why.append(f"{joined(sorted(others))} {are} compared with another strategy, ttucb")
    return (
        "A price below 1 does not mean that privacy saves people. The noise costs so little here "
        f"that other differences weigh more: {', '.join(why)}, and averages of simulated trials "
        "differ by chance."
    )


def few_right_words(plan: Plan, row: PlanRow) -> str:
    """A warning, where a maximum leaves few trials with the right answer."""
    if plan.max_people is None or row.correct >= FEW_RIGHT:
        return ""
    share = "none" if row.correct == 0 else f"only {row.correct:.0%}"
    return (
        f"{share} of the simulated trials have the right answer within {plan.max_people:,} people. "
        "Raise the maximum, allow a larger ε, or look for a larger difference."
    )
