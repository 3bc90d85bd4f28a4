"""A plan as a page with pictures: what it takes, how sure that is, and how a trial may
go.
"""

import math

from discreet.errors import InvalidInputError
from discreet.instance import Bernoulli, Instance
from discreet.planning.plan import Plan
from discreet.planning.ranges import TIGHTEST
from discreet.planning.rows import PlanRow
from discreet.reports import charts
from discreet.reports.arms import shown_words
from discreet.reports.chances import (
    affordable_words,
    best_words,
    bound_cell,
    cheap_words,
    cut_words,
    few_right_words,
    price_words,
)
from discreet.reports.days import days_section, end_day_words, headline
from discreet.reports.page import Bullets, Part, Picture, Pictures, Section, Table, Text, page
from discreet.reports.past import past_notes, past_people, past_words, units_of
from discreet.reports.power import power_section
from discreet.results import Results
from discreet.scale import NUMBERS
from discreet.simulation.paths import RunPath, run_path
from discreet.strategies.units import LEVELS_FROM, to_bits
from discreet.words import (
    FLOOR,
    NO_GUARANTEE,
    NO_PROOF,
    NO_PROOF_WORDS,
    RANGE_WORDS,
    TIGHTEST_WORDS,
    closed,
    counted,
    hint_words,
    known,
    level,
    listed,
    mean_words,
    outcomes_words,
    people,
    price,
    range_cut_words,
    range_heading,
    range_name,
    reason_words,
    trusted,
)

SCALED = (
    "Its means are outcomes on a scale from 0 to 1, and 1 is the better end of the range of "
    "outcomes."
)
"""Of data whose units are not known."""
LONGEST_WAY = 1_000_000
"""People of a trial that is drawn, where their outcomes are drawn one by one."""
MOST_LINES = 6
"""Lines in a picture of distributions: more are hard to tell apart."""


def plan_page(plan: Plan) -> str:
    """The whole page, self-contained."""
    lead = (
        f"At most {100 * plan.delta:.4g} % of the answers may be wrong (the error rate δ), with "
        f"{trusted(plan.trust)}. "
        f"{counted(plan.runs, 'simulated trial')} in each row."
    )
    return page("How many people it takes", plan_sections(plan), lead)


def plan_sections(plan: Plan, trial: bool = True, about: str = "") -> list[Section]:
    """The sections, to be put on a page with others; with `trial` also the way of a
    simulated one. `about` is said of each scenario in place of its means, by whoever
    knows more about them.
    """
    sections = [_answer(plan)]
    for number, name in enumerate(plan.scenarios, 1):
        one = len(plan.scenarios) == 1
        title = "People and privacy" if one else f"People and privacy, scenario {number}"
        sections.append(_scenario(plan, name, title, about or _about(plan, name)))
    if plan.power:
        sections.append(power_section(plan))
    if plan.calendar is not None:
        sections.append(days_section(plan))
    if plan.ranges:
        sections.append(_ranges(plan))
    trial = trial and (plan.calendar is None or plan.calendar.simple)
    way = one_trial(plan) if trial else None
    return [*sections, *([way] if way else []), _reading(plan)]


def _answer(plan: Plan) -> Section:
    items = [_answer_words(plan, row) for row in (*plan.per_epsilon, *plan.no_privacy)]
    items += [
        f"Budget, {entry.strategy}: {affordable_words(plan, entry)}." for entry in plan.affordable
    ]
    hint = [Text(f"{hint_words(plan.hint)}.")] if plan.hint > 0 else []
    take = Text(f"Take {reason_words(plan.recommended.reason)}.")
    numbers = NUMBERS in (plan.outcomes, *(arms.outcomes for arms in plan.scenarios.values()))
    expected = outcomes_words(plan.outcomes, plan.as_bits, LEVELS_FROM)
    outcomes = [Text(f"{expected}.")] if numbers else []
    return Section("The answer", [Bullets(items), take, *hint, *outcomes])


def _answer_words(plan: Plan, row: PlanRow) -> str:
    """What one row comes to."""
    where = "" if len(plan.scenarios) == 1 else f"{row.scenario}; "
    private = "without privacy" if row.epsilon is None else f"at ε = {row.epsilon:g}"
    words = f"{where}{row.strategy.shown} {private}{headline(plan)}: "
    words += f"{people(row.samples.mean)} people on average"
    if row.privacy_cost is not None and row.epsilon is not None:
        words += f", {row.privacy_cost:.3g} times as many as without privacy{price_words(plan)}"
    if row.unstopped_probability >= 0.1:
        most = (
            "do not end"
            if plan.max_people is None
            else f"reach {plan.max_people:,} without an answer"
        )
        words += f"; but {row.unstopped_probability:.0%} of the trials {most}"
    elif row.samples.q90 is not None:
        words += f"; nine of ten trials end within {people(row.samples.q90)}"
    within = "" if plan.max_people is None else f" within {plan.max_people:,} people"
    words += f". Right answers{within}: {row.correct:.1%}.{end_day_words(plan, row)}"
    warning = few_right_words(plan, row)
    return f"{words} Warning: {warning}" if warning else words


def _label(row: PlanRow, several: bool) -> str:
    private = "no privacy" if row.epsilon is None else f"ε = {row.epsilon:g}"
    return f"{private}, {_marked(row)}" if several else private


def _marked(row: PlanRow) -> str:
    """The strategy of a row where room is scarce."""
    return row.strategy.shown.replace(NO_GUARANTEE, NO_PROOF)


def _means_head(instance: Instance) -> str:
    return mean_words(instance.outcomes, instance.bounded).removesuffix(":").capitalize()


def _scenario(plan: Plan, name: str, title: str, about: str) -> Section:
    rows = [row for row in (*plan.no_privacy, *plan.per_epsilon) if row.scenario == name]
    several = len({row.strategy.name for row in rows}) > 1
    pictures = Pictures([_people_picture(plan, rows, several), _done_picture(plan, rows, several)])
    return Section(title, [Text(about), pictures, _table(plan, rows, several)])


def _about(plan: Plan, name: str) -> str:
    """What a scenario assumes."""
    instance = plan.scenarios[name]
    arms = zip(instance.names, instance.means, strict=True)
    shown = listed([f"{closed(arm)} {mean:g}" for arm, mean in arms])
    rates = f"{_means_head(instance)}: {shown}{past_people(instance)}"
    facts = [past_words(instance) or rates, *past_notes(instance)]
    described = "arms" in name and past_words(instance) is None
    about = " ".join(f"{fact}." for fact in ([f"Scenario: {name}", *facts] if described else facts))
    return about + (f" The best: {best_words(plan, name)}." if not instance.unique else "")


def _people_picture(plan: Plan, rows: list[PlanRow], several: bool) -> Picture:
    bars = [_people_row(row, several) for row in rows]
    bound = ""
    if any(row.comparable_bound is not None for row in rows):
        bound = f"; diamond: what no strategy can beat on average{FLOOR if plan.floored else ''}"
    return Picture(
        charts.render(charts.draw_people(bars, limit=plan.max_people)),
        "People by privacy level: median, and the range of eight of ten trials; numbers below",
        f"Median, and the range in which eight of ten trials end{bound}.",
    )


def _people_row(row: PlanRow, several: bool) -> charts.PeopleRow:
    samples = row.samples
    numbers = (samples.q10, samples.median, samples.q90, row.comparable_bound)
    return charts.PeopleRow(_label(row, several), *(math.nan if n is None else n for n in numbers))


def _done_picture(plan: Plan, rows: list[PlanRow], several: bool) -> Picture:
    """How many trials have ended by then; of several strategies the first one, and no
    privacy.
    """
    first = plan.per_epsilon[0].strategy.name
    lines = [row for row in rows if row.epsilon is None or row.strategy.name == first][:MOST_LINES]
    done = charts.distribution({_label(row, several): row.results for row in lines})
    return Picture(
        charts.render(charts.draw_distribution(done)),
        "Share of the trials that have ended, against people enrolled",
        "Share of the trials that have an answer, against the people enrolled by then.",
    )


def _table(plan: Plan, rows: list[PlanRow], several: bool) -> Table:
    head = ["ε", "mean", "median", "10 … 90 %", "right (95 % interval)"]
    if several:
        head.insert(1, "strategy")
    capped = plan.max_people is not None or any(row.unstopped for row in rows)
    if capped:
        head.append("no end" if plan.max_people is None else f"hits {people(plan.max_people)}")
    bounded = any(row.comparable_bound is not None for row in rows)
    head += ["on best", "looks", "price", *(["at least"] if bounded else [])]
    cells = [_cells(row, several, capped, bounded) for row in rows]
    return Table(head, cells, "People a trial takes.")


def _cells(row: PlanRow, several: bool, capped: bool, bounded: bool) -> list[str]:
    samples = row.samples
    low, high = row.correct_interval
    return [
        level(row.epsilon),
        *([_marked(row)] if several else []),
        people(samples.mean),
        people(samples.median),
        f"{people(samples.q10)} … {people(samples.q90)}",
        f"{row.correct:.1%} ({low:.1%} … {high:.1%})",
        *([f"{row.unstopped_probability:.1%}"] if capped else []),
        f"{row.best_share:.0%}",
        known(row.releases, ",.0f"),
        price(row.privacy_cost),
        *([bound_cell(row)] if bounded else []),
    ]


def _ranges(plan: Plan) -> Section:
    rows = [
        [
            range_name(row.name, row.low, row.high),
            people(row.samples.mean),
            people(row.samples.median),
            f"{people(row.samples.q10)} … {people(row.samples.q90)}",
            f"{row.correct:.1%}",
            known(row.times, ".2f"),
        ]
        for row in plan.ranges
    ]
    head = ["range", "mean", "median", "10 … 90 %", "right", "times the given one"]
    runs = counted(plan.ranges[0].runs, "simulated trial")
    caption = f"People a trial takes; {runs} in each row.{range_cut_words(plan.max_people)}"
    title = range_heading(plan.ranges[0].strategy.epsilon)
    tightest = f"{TIGHTEST_WORDS}. " if TIGHTEST in {row.name for row in plan.ranges} else ""
    return Section(title, [Text(f"{tightest}{RANGE_WORDS}."), Table(head, rows, caption)])


def one_trial(plan: Plan) -> Section | None:
    """The way of one simulated trial with the ε to take; None if it cannot be drawn."""
    chosen = plan.example
    if chosen is None:
        return None
    instance, epsilon = plan.scenarios[chosen.scenario], chosen.strategy.epsilon
    bits = isinstance(instance, Bernoulli)
    if not bits and not to_bits(chosen.strategy) and chosen.results.samples[0] > LONGEST_WAY:
        return None
    try:
        most = chosen.results.spec["max_samples"]
        path = run_path(instance, chosen.strategy, plan.seed, max_samples=most)
    except InvalidInputError:  # every sample a release and too many of them, or one global episode
        return None
    parts: list[Part] = [Text(path_words(path)), path_picture(path)]
    if not bits and units_of(instance) is None:
        parts.insert(1, Text(SCALED))
    if epsilon == plan.affordable_epsilon:
        parts.insert(0, Text(f"This ε is what a budget of {plan.budget:,} people affords."))
    if bits and chosen.results.stopped.any() and instance.unique:
        parts.append(_allocation_picture(chosen.results))
    return Section(f"How a trial at ε = {epsilon:.3g} may go", parts)


def _allocation_picture(results: Results) -> Picture:
    return Picture(
        charts.render(charts.draw_allocation(charts.allocation(results))),
        "Share of the people on each arm, and the ideal one",
        "Where the people go, over all simulated trials: mean, the range of eight of ten trials, "
        "and the spread that attains the lower bound.",
    )


def path_words(path: RunPath) -> str:
    """One simulated trial in a sentence."""
    looks = counted(len(path.samples), "interim look")
    looks = "every sample is a release" if path.thinned else looks
    end = f"names {path.names[path.recommendation]}" if path.stopped else "ends without an answer"
    count = people(path.samples[-1])
    return (
        f"The first simulated trial, {path.strategy}: {looks}, and after {count} people it {end}."
    )


def path_picture(path: RunPath) -> Picture:
    """The way of one trial."""
    return Picture(
        charts.render(charts.draw_path(path)),
        "Private means, evidence against each arm and releases, against people enrolled",
        "What the outside world sees: the private means with their uncertainty, how much evidence "
        f"there is against each arm, and when something is released.{shown_words(len(path.names))}",
    )


def _end_words(plan: Plan) -> str:
    """What the column of trials without an answer says, where there is one."""
    if plan.max_people is not None:
        return f" Hits {people(plan.max_people)}: trials that end there without an answer."
    capped = any(row.unstopped for row in (*plan.no_privacy, *plan.per_epsilon))
    return " No end: trials that go on to the cap of simulations." if capped else ""


def _reading(plan: Plan) -> Section:
    rows = (*plan.no_privacy, *plan.per_epsilon)
    means = "mean outcomes" if plan.outcomes == NUMBERS else "success rates"
    near = f", or one within {plan.zeta:g} of it" if plan.zeta else ""
    items = [
        "Mean, median, 10 … 90 %: people that a trial takes; eight of ten trials end in this "
        f"range.{_end_words(plan)}",
        "Right: trials that end (in time) with the right answer. On best: share of the people who "
        f"get the best arm{near}. Looks: times at which results are released.",
        f"Price: how many times as many people as without privacy{price_words(plan)}; bet-se is "
        "compared with bet-se, other strategies with ttucb.",
    ]
    items += [words] if (words := cheap_words(plan.per_epsilon)) else []
    if any(row.comparable_bound is not None for row in rows):
        items.append(
            "At least: what no strategy with this privacy and error rate can beat on average"
            f"{FLOOR if plan.floored else ''}{cut_words(plan)}."
        )
    if any(NO_GUARANTEE in row.strategy.shown for row in rows):
        items.append(f"{NO_PROOF_WORDS[:1].upper()}{NO_PROOF_WORDS[1:]}.")
    items += [
        f"A plan holds for its scenarios: true {means} nearer to each other take more people.",
        f"Simulated with seed {plan.seed}, the same for all rows; the same plan again gives the "
        "same numbers.",
    ]
    return Section("How to read this", [Bullets(items)])
