"""A plan as the command shows it in a terminal."""

from discreet.planning.budget import Affordable
from discreet.planning.plan import Plan, PlanRow
from discreet.planning.ranges import TIGHTEST
from discreet.reports.days import calendar_words, headline, way_cells
from discreet.reports.past import past_notes, past_people, past_words
from discreet.reports.terminal import plain_console, say, say_once, show_grid
from discreet.scale import NUMBERS
from discreet.strategies.units import LEVELS_FROM
from discreet.words import (
    FLOOR,
    RANGE_WORDS,
    TIGHTEST_WORDS,
    hint_words,
    known,
    level,
    mean_words,
    outcomes_words,
    people,
    price,
    range_heading,
    range_name,
    reason_words,
    trusted,
)


def show_plan(found: Plan) -> None:
    """A plan as a trialist wants it: a table a scenario, what to take, what a budget
    affords.
    """
    every = (*found.no_privacy, *found.per_epsilon)
    several = len({row.strategy.name for row in every}) > 1
    heads: set[str] = set()
    for name, instance in found.scenarios.items():
        more = ", …" if instance.arms > 6 else ""
        means = ", ".join(f"{mean:g}" for mean in instance.means[:6]) + more
        about = f"{name}\n" if name != means else ""
        best = instance.names[instance.best]
        past = past_words(instance)
        rates = f" with {mean_words(instance.outcomes)} {means}{past_people(instance)}"
        say(f"{about}{instance.arms} arms{rates if past is None else f': {past}'}; {best} is best")
        say_once(past_notes(instance))
        heads |= _show_rows(found, [row for row in every if row.scenario == name], several)
    explained = [words for head, words in _readings(found, several).items() if head in heads]
    say(
        f"{found.runs} simulated trials a row, error rate δ = {found.delta:g}, "
        f"{trusted(found.trust)}. {' '.join(explained)}\n"
    )
    if found.calendar is not None:
        _show_ways(found)
    say_once(words for row in found.per_epsilon for words in row.strategy.label.values())
    say(f"Take {reason_words(found.recommended.reason)}.")
    if found.hint > 0:
        say(f"\n{hint_words(found.hint)}.")
    if NUMBERS in (found.outcomes, *(arms.outcomes for arms in found.scenarios.values())):
        say(f"\n{outcomes_words(found.outcomes, found.as_bits, LEVELS_FROM)}.")
    if found.ranges:
        _show_ranges(found)
    for entry in found.affordable:
        say(f"\nBudget, {entry.strategy}: {_affordable_words(found, entry)}.")


def _show_ways(found: Plan) -> None:
    """People and days, a row for each way to enrol."""
    several = len(found.scenarios) > 1
    for name in found.scenarios:
        ways = [way for way in found.ways if way.scenario == name]
        heads = ["\nε", "\nenrolment", "\npeople", "\ndays", "days\n10 … 90 %", "in\nflight"]
        heads += ["\nlooks", "\nright"]
        rows = [way_cells(way) for way in ways]
        if len({way.strategy for way in ways}) > 1:
            heads.insert(1, "\nstrategy")
            rows = [[row[0], way.strategy, *row[1:]] for row, way in zip(rows, ways, strict=True)]
        title = f"People and days, {name}" if several else "People and days"
        show_grid(heads, rows, title, left=["\nenrolment", "\nstrategy"])
    say(f"{calendar_words(found)}\n")


def _readings(found: Plan, several: bool) -> dict[str, str]:
    """What the heads of a table mean."""
    against = " (bet-se compared with bet-se, others with ttucb)" if several else ""
    floor = FLOOR if found.floored else ""
    hits, _, most = _end_head(found).partition("\n")
    end = "go on to the cap of simulations" if found.max_people is None else "end there"
    return {
        "\n10 … 90 %": "'10 … 90 %': eight of ten trials end in this range.",
        "\nright": "'right': trials that end with the right answer.",
        _end_head(found): f"'{hits} {most}': trials that {end} without an answer.",
        "on\nbest": "'on best': share of the people who get the best arm.",
        "\nlooks": "'looks': times at which results are released.",
        "\nprice": f"'price': how many times as many people as without privacy{against}.",
        "at\nleast": f"'at least': what no strategy with this privacy can beat on average{floor}.",
    }


def _end_head(found: Plan) -> str:
    return "no\nend" if found.max_people is None else f"hits\n{people(found.max_people)}"


def _show_ranges(found: Plan) -> None:
    rows = [
        [
            range_name(row.name, row.low, row.high),
            people(row.samples.mean),
            f"{people(row.samples.q10)} … {people(row.samples.q90)}",
            f"{row.correct:.1%}",
            known(row.times, ".2f"),
        ]
        for row in found.ranges
    ]
    title = f"\n{range_heading(found.ranges[0].strategy.epsilon)}"
    show_grid(["range", "mean", "10 … 90 %", "right", "times"], rows, title, left=["range"])
    tightest = f"{TIGHTEST_WORDS}. " if TIGHTEST in {row.name for row in found.ranges} else ""
    say(f"{found.ranges[0].runs} simulated trials a row. {tightest}{RANGE_WORDS}.")


def _affordable_words(found: Plan, entry: Affordable) -> str:
    if entry.epsilon is None:
        return entry.reason
    return (
        f"{found.budget:,} people suffice down to ε ≈ {entry.epsilon:.3g} (found to "
        f"{entry.tolerance:.0%}; right and in time in {entry.correct:.1%} of the trials there, "
        f"{found.probability:.0%} wanted)"
    )


def _show_rows(found: Plan, rows: list[PlanRow], several: bool) -> set[str]:
    """All columns that fit, the more important ones first; their heads."""
    columns = _columns(found, rows, several)
    for head in ("\nlooks", "on\nbest", "at\nleast", "\nprice"):
        widths = (
            max(map(len, [*title.split("\n"), *cells])) + 3 for title, cells in columns.items()
        )
        if sum(widths) + 2 > plain_console().width:
            del columns[head]
    cells = zip(*columns.values(), strict=True)
    title = f"People it takes{headline(found)}"
    show_grid(list(columns), list(cells), title, left=["\nstrategy"])
    return set(columns)


def _columns(found: Plan, rows: list[PlanRow], several: bool) -> dict[str, list[str]]:
    """The cells of each column that has something to say."""
    ends = found.max_people is not None or any(row.unstopped for row in rows)
    columns = {
        "\nε": [level(row.epsilon) for row in rows],
        "\nstrategy": [row.strategy.name for row in rows] if several else [],
        "\nmean": [people(row.samples.mean) for row in rows],
        "\n10 … 90 %": [f"{people(row.samples.q10)} … {people(row.samples.q90)}" for row in rows],
        "\nright": [f"{row.correct:.1%}" for row in rows],
        _end_head(found): [f"{row.unstopped_probability:.1%}" for row in rows] if ends else [],
        "on\nbest": [f"{row.best_share:.0%}" for row in rows],
        "\nlooks": [known(row.releases, ",.0f") for row in rows],
        "\nprice": [price(row.privacy_cost) for row in rows],
        "at\nleast": ["–" if row.lower_bound is None else people(row.lower_bound) for row in rows],
    }
    return {head: cells for head, cells in columns.items() if cells}
