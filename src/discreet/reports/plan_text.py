"""A plan as the command shows it in a terminal."""

from collections.abc import Iterable

from discreet.planning.plan import Plan
from discreet.planning.ranges import TIGHTEST
from discreet.planning.rows import PlanRow
from discreet.reports.chances import (
    affordable_words,
    best_words,
    bound_cell,
    cheap_words,
    cut_words,
    few_right_words,
    power_curves,
    power_table,
    power_title,
    power_words,
    price_words,
    sure_words,
)
from discreet.reports.days import (
    END_HEADS,
    calendar_words,
    end_cells,
    headline,
    slower_words,
    way_cells,
)
from discreet.reports.past import past_notes, past_people, past_words
from discreet.reports.terminal import plain_console, say, say_once, show_grid
from discreet.scale import NUMBERS
from discreet.strategies.units import LEVELS_FROM
from discreet.words import (
    FLOOR,
    RANGE_WORDS,
    TIGHTEST_WORDS,
    counted,
    hint_words,
    known,
    level,
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
        about = f"Scenario: {name}\n" if name != means and past_words(instance) is None else ""
        best = f"{best_words(found, name)} {'is' if instance.unique else 'are'} best"
        past = past_words(instance)
        called = mean_words(instance.outcomes, instance.bounded)
        rates = f" with {called} {means}{past_people(instance)}"
        say(f"{about}{instance.arms} arms{rates if past is None else f': {past}'}; {best}")
        say_once(past_notes(instance))
        heads |= _show_rows(found, [row for row in every if row.scenario == name], several)
    explained = [words for head, words in _readings(found, several).items() if head in heads]
    say(
        f"{counted(found.runs, 'simulated trial')} in each row, error rate δ = {found.delta:g}, "
        f"{trusted(found.trust)}. {' '.join(explained)}\n"
    )
    for row in found.per_epsilon:
        if warning := few_right_words(found, row):
            say(f"Warning: {row.strategy.shown}, ε = {level(row.epsilon)}: {warning}\n")
    if found.calendar is not None:
        _show_ways(found)
    _show_power(found)
    say_once(words for row in found.per_epsilon for words in row.strategy.label.values())
    say(f"Take {reason_words(found.recommended.reason)}.")
    if found.hint > 0:
        say(f"\n{hint_words(found.hint)}.")
    if NUMBERS in (found.outcomes, *(arms.outcomes for arms in found.scenarios.values())):
        say(f"\n{outcomes_words(found.outcomes, found.as_bits, LEVELS_FROM)}.")
    if found.ranges:
        _show_ranges(found)
    for entry in found.affordable:
        say(f"\nBudget, {entry.strategy}: {affordable_words(found, entry)}.")


def _show_ways(found: Plan) -> None:
    """People and days, a row for each way to enrol."""
    several = len(found.scenarios) > 1
    for name in found.scenarios:
        ways = [way for way in found.ways if way.scenario == name]
        heads = ["\nε", "\nenrolment", "\npeople", "\ndays", "days\n10 … 90 %"]
        heads += ["in\nflight", "\nlooks", "\nright"]
        rows = [way_cells(way) for way in ways]
        if len({way.strategy for way in ways}) > 1:
            heads.insert(1, "\nstrategy")
            rows = [[row[0], way.strategy, *row[1:]] for row, way in zip(rows, ways, strict=True)]
        title = f"People and days, {name}" if several else "People and days"
        show_grid(heads, rows, title, left=["\nenrolment", "\nstrategy"])
        if found.start is not None:
            ends = [[level(way.epsilon), way.strategy, *end_cells(way)] for way in ways]
            show_grid(["ε", "strategy", *END_HEADS], ends, "When it ends", left=["strategy"])
    if words := slower_words(found):
        say(words)
    say(f"{calendar_words(found)}\n")


def _show_power(found: Plan) -> None:
    """How likely answers are, a row for each privacy level."""
    if found.max_people is None and found.budget is None:
        say(
            "With --max-people there is also a table of power: how likely an answer within that "
            "many people is, for several true differences.\n"
        )
        return
    tables = False
    for name in found.scenarios:
        curves = power_curves(found, name)
        if not curves:
            say(f"No power is shown for {name}: the arms tie, and have no difference to vary.\n")
            continue
        which = f", {name}" if len(found.scenarios) > 1 else ""
        if sure := sure_words(found, curves):
            say(f"{name}: {sure}\n" if which else f"{sure}\n")
            continue
        tables = True
        for strategy in dict.fromkeys(strategy for _, strategy, _ in curves):
            heads, rows = power_table([one for one in curves if one[1] == strategy])
            while _width(zip(heads, *rows, strict=True)) > plain_console().width:
                heads, rows = heads[:-1], [row[:-1] for row in rows]
            title = f"{power_title(found)}, {strategy}{which}"
            show_grid(heads, rows, title, left=["answer"])
    if tables:
        say(f"{power_words(found)}\n")


def _readings(found: Plan, several: bool) -> dict[str, str]:
    """What the heads of a table mean."""
    against = " (bet-se compared with bet-se, others with ttucb)" if several else ""
    floor = FLOOR if found.floored else ""
    cheap = f" {words}" if (words := cheap_words(found.per_epsilon)) else ""
    near = f", or one within {found.zeta:g} of it" if found.zeta else ""
    cut = "" if found.max_people is None else ", of trials that end at the maximum too"
    hits, _, most = _end_head(found).partition("\n")
    end = "go on to the cap of simulations" if found.max_people is None else "end there"
    return {
        "\nmean": f"'mean': people on average{cut}.",
        "\n10 … 90 %": "'10 … 90 %': eight of ten trials end in this range.",
        "\nright": "'right': trials that end with the right answer.",
        _end_head(found): f"'{hits} {most}': trials that {end} without an answer.",
        "on\nbest": f"'on best': share of the people who get the best arm{near}.",
        "\nlooks": "'looks': times at which results are released.",
        "\nprice": "'price': how many times as many people as without privacy"
        f"{against}{price_words(found)}.{cheap}",
        "at\nleast": f"'at least': what no strategy with this privacy can beat on average{floor}"
        f"{cut_words(found)}.",
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
    runs = counted(found.ranges[0].runs, "simulated trial")
    say(f"{runs} in each row.{range_cut_words(found.max_people)} {tightest}{RANGE_WORDS}.")


def _show_rows(found: Plan, rows: list[PlanRow], several: bool) -> set[str]:
    """All columns that fit, the more important ones first; their heads."""
    columns = _columns(found, rows, several)
    for head in ("\nlooks", "on\nbest", "at\nleast", "\nprice"):
        cells = ([*title.split("\n"), *column] for title, column in columns.items())
        if _width(cells) > plain_console().width:
            columns.pop(head, None)
    title, rows_shown = (
        f"How many people it takes{headline(found)}",
        zip(*columns.values(), strict=True),
    )
    show_grid(list(columns), list(rows_shown), title, left=["\nstrategy"])
    return set(columns)


def _width(columns: Iterable[Iterable[str]]) -> int:
    """Signs that a table of these columns takes."""
    return sum(max(map(len, column)) + 3 for column in columns) + 2


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
        "at\nleast": [bound_cell(row) for row in rows],
    }
    return {head: cells for head, cells in columns.items() if set(cells) - {"–"}}
