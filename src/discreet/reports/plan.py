"""A plan as a page with pictures: what it takes, how sure that is, and how a trial may
go.
"""

import math
from collections.abc import Callable, Iterable, Sequence

from discreet.accrual import MONTH
from discreet.errors import InvalidInputError
from discreet.instances import Bernoulli, Instance
from discreet.planning.plan import Plan
from discreet.planning.power import MOST_EPSILON, Affordable, Power
from discreet.planning.rows import PlanRow, Way
from discreet.planning.scenarios import TIGHTEST
from discreet.reports import charts
from discreet.reports.charts.style import shown_words
from discreet.reports.document import (
    Document,
    Figure,
    FigureRow,
    List,
    Paragraph,
    Part,
    Section,
    Table,
)
from discreet.reports.html import render
from discreet.reports.past import past_notes, past_people, past_words, units_of
from discreet.reports.terminal import plain_console, say, say_once, show_grid
from discreet.results import Results
from discreet.scale import NUMBERS
from discreet.simulation.paths import RunPath, run_path
from discreet.strategies.units import MIN_LEVELS_EPSILON, is_rounded_to_bits
from discreet.wording import (
    FLOOR,
    NO_GUARANTEE,
    NO_PROOF,
    NO_PROOF_WORDS,
    RANGE_WORDS,
    TIGHTEST_WORDS,
    closed,
    counted,
    cut,
    day_words,
    joined,
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
    target_difference_words,
    trusted,
)

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
    near = (
        f". An arm within {plan.indifference_zone:g} of the best is a right answer"
        if plan.indifference_zone
        else ""
    )
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
    if plan.max_participants is None or not any(row.unstopped for row in rows):
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
    if plan.max_participants is None or row.correct >= FEW_RIGHT:
        return ""
    share = "none" if row.correct == 0 else f"only {row.correct:.0%}"
    return (
        f"{share} of the simulated trials have the right answer within {plan.max_participants:,} "
        "people. "
        "Raise the maximum, allow a larger ε, or look for a larger difference."
    )


MAX_POWER_LINES = 6
"""Lines in a picture: more are hard to tell apart."""
SEEN = 0.02
"""The least difference of two shares that can be seen in the picture."""


def power_section(plan: Plan) -> Section:
    """A picture and a table for each scenario."""
    parts: list[Part] = []
    several = len(plan.scenarios) > 1
    for name, instance in plan.scenarios.items():
        curves = power_curves(plan, name)
        if curves and (sure := sure_words(plan, curves)):
            parts.append(Paragraph(f"{name}: {sure}" if several else sure))
        elif curves:
            title = power_title(plan) + (f", {name}" if several else "")
            last = curves[0][2][-1]
            width = last.shown_gap / last.gap
            parts.append(_picture(plan, curves, float(instance.gaps.min()) * width))
            parts.append(Table(*power_table(curves), f"{title}."))
    if any(isinstance(part, Table) for part in parts):
        parts.insert(0, Paragraph(power_words(plan)))
    return Section("How likely an answer is", parts)


def _picture(plan: Plan, curves: list[Curve], planned: float) -> Figure:
    """Of several strategies the first one, and no privacy."""
    first = plan.per_epsilon[0].strategy.name
    shown = [one for one in curves if one[0] == "none" or one[1] == first][:MAX_POWER_LINES]
    several = len({strategy for _, strategy, _ in curves}) > 1
    lines = [_line(one, several) for one in shown]
    people = plan.power[0].people
    return Figure(
        lambda: charts.render(charts.draw_power(lines, planned)),
        "Share of the trials that end with the right answer, and with any, against the true "
        "difference; numbers below",
        f"Share of the trials that end within {people:,} people with the right answer (marks, "
        "with 95 % intervals) and with any answer (thin lines without marks), against the true "
        f"difference between the best arm and the next.{_alike_words(shown)}",
    )


def _alike_words(curves: list[Curve]) -> str:
    """Why there seems to be one line of each two, where no eye can tell them apart."""
    wrong = max(point.answered - point.right for _, _, points in curves for point in points)
    if wrong >= SEEN:
        return ""
    return " The two coincide, as hardly any answer is wrong."


def _line(curve: Curve, several: bool) -> charts.PowerLine:
    epsilon, strategy, points = curve
    label = "no privacy" if epsilon == "none" else f"ε = {epsilon}"
    return charts.PowerLine(
        f"{label}, {cut(strategy)}" if several else label,
        tuple(point.shown_gap for point in points),
        tuple(point.right for point in points),
        tuple(point.right_interval[0] for point in points),
        tuple(point.right_interval[1] for point in points),
        tuple(point.answered for point in points),
    )


END_HEADS = ["enrolment", "expected end", "10 … 90 %"]
HEADS = ["ε", "enrolment", "people", "days", "days, 10 … 90 %", "in flight", "looks", "right"]


def way_cells(way: Way) -> list[str]:
    """The cells of one way to enrol."""
    return [
        level(way.epsilon),
        way.enrolment,
        people(way.people.mean),
        known(way.days.mean, ",.0f"),
        f"{known(way.days.q10, ',.0f')} … {known(way.days.q90, ',.0f')}",
        f"{way.in_flight:,.0f}",
        f"{way.releases:,.0f}",
        f"{way.correct:.1%}",
    ]


def end_cells(way: Way) -> list[str]:
    """When a trial ends, where its first day is known."""
    end = way.end or {}
    band = f"{day_words(end.get('q10'))} … {day_words(end.get('q90'))}"
    return [way.enrolment, day_words(end.get("mean")), band]


def headline(plan: Plan) -> str:
    """Which way to enrol the people of a plan's rows are about; empty without days."""
    return "" if plan.calendar is None else f", {plan.calendar.enrolment} enrolment"


def end_day_words(plan: Plan, row: PlanRow) -> str:
    """How long the trials of a row take, for each way to enrol, and when they end."""
    said = []
    for way in plan.ways:
        key = (way.scenario, way.epsilon, way.strategy)
        if key == (row.scenario, row.epsilon, row.strategy.name) and way.days.mean is not None:
            end = (way.end or {}).get("mean")
            until = "" if end is None else f", until {day_words(end)}"
            days = counted(f"{way.days.mean:,.0f}", "day")
            said.append(f"with {way.enrolment} enrolment it takes {days} on average{until}")
    words = "; ".join(said)
    return f" {words[:1].upper()}{words[1:]}." if said else ""


def calendar_words(plan: Plan) -> str:
    """The calendar of a plan, and how to read what it comes to."""
    calendar = plan.calendar
    if calendar is None:
        return ""
    last = "" if calendar.last is None else f" (those after {calendar.last:g} count as the worst)"
    month = f"{calendar.accrual * MONTH:,.4g} a month"
    coming = counted(f"{calendar.accrual:.3g}", "person comes", "people come")
    begin = "" if plan.start is None else f"Enrolment begins on {day_words(plan.start)}. "
    words = f"{begin}{coming} a day ({month}); outcomes are told after {calendar.delay.words}{last}"
    if calendar.lost:
        words += (
            f"; {calendar.lost:.1%} of the successes are late or never told, and count as the "
            "worst outcome"
        )
    when = "by the clock" if calendar.clock else "as soon as they are complete"
    words += (
        f". Rounds are released {when}. 'Waiting': nobody is assigned until then, and people who "
        "come in the meantime are turned away."
    )
    if any(way.enrolment == "continuous" for way in plan.ways):
        words += " 'Continuous': everybody who comes is assigned."
    else:
        words += (
            " With continuous enrolment, which bet-se offers where outcomes have a deadline, "
            "nobody is turned away, and the trial may end sooner."
        )
    return (
        f"{words} 'In flight': people who are assigned, but whose outcomes are not released, "
        "when the trial ends."
    )


def slower_words(plan: Plan) -> str:
    """Why some trials take longer without privacy than with it, where they do."""
    waiting = [way for way in plan.ways if way.enrolment == "waiting" and way.days.mean is not None]
    for bare in (way for way in waiting if way.epsilon is None):
        for way in reversed([way for way in waiting if way.epsilon is not None]):
            same = way.scenario == bare.scenario and way.releases < bare.releases
            if same and (way.days.mean or 0) < (bare.days.mean or 0):
                return (
                    "With waiting enrolment a trial without privacy takes longer here, however "
                    f"many people it saves: it has {counted(f'{bare.releases:,.0f}', 'look')}, "
                    f"not {way.releases:,.0f} (ε = {way.epsilon:g}), and at each of them nobody "
                    "is enrolled until the last outcomes are told."
                )
    return ""


def days_section(plan: Plan) -> Section:
    """People and days of each way to enrol, and when the trial ends."""
    parts: list[Part] = [Paragraph(calendar_words(plan)), _ends_picture(plan)]
    parts.append(_ways_table(plan, HEADS, way_cells, "People and days a trial takes."))
    parts += [Paragraph(words)] if (words := slower_words(plan)) else []
    if plan.start is not None:
        heads = ["ε", *END_HEADS]
        parts.append(_ways_table(plan, heads, dated_cells, "The day on which a trial ends."))
    return Section("People and days", parts)


def dated_cells(way: Way) -> list[str]:
    """The cells of one way to enrol in the table of days on the calendar."""
    return [level(way.epsilon), *end_cells(way)]


def _ways_table(
    plan: Plan, heads: list[str], cells: Callable[[Way], list[str]], caption: str
) -> Table:
    """A row for each way to enrol, with scenario and strategy where there are some."""
    differs = [
        head for head in ("scenario", "strategy") if len({vars(way)[head] for way in plan.ways}) > 1
    ]
    rows = [[*(vars(way)[head] for head in differs), *cells(way)] for way in plan.ways]
    return Table([*differs, *heads], rows, caption)


def _ends_picture(plan: Plan) -> Figure:
    """When trials end, a bar for each way to enrol."""
    several = len(plan.scenarios) > 1, len({way.strategy for way in plan.ways}) > 1
    rows = []
    for way in plan.ways:
        private = "no privacy" if way.epsilon is None else f"ε = {way.epsilon:g}"
        words = [way.scenario if several[0] else "", private, way.strategy if several[1] else ""]
        label = ", ".join(cut(word) for word in (*words, way.enrolment) if word)
        low, mean, high = (
            math.nan if number is None else number
            for number in (way.days.q10, way.days.mean, way.days.q90)
        )
        rows.append(charts.EndRow(label, low, mean, high, way.enrolment == "continuous"))
    ahead = any(row.continuous for row in rows)
    hollow = " Hollow marks on blue: continuous enrolment." if ahead else ""
    return Figure(
        lambda: charts.render(charts.draw_ends(rows, plan.start)),
        "When the trial ends, for each way to enrol: on average, and the range of eight of ten "
        "trials; numbers below",
        "When the trial ends: on average (mark), and the range in which eight of ten trials end."
        f"{hollow}",
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
    if found.target_difference > 0:
        say(f"\n{target_difference_words(found.target_difference)}.")
    if NUMBERS in (found.outcomes, *(arms.outcomes for arms in found.scenarios.values())):
        say(f"\n{outcomes_words(found.outcomes, found.as_bits, MIN_LEVELS_EPSILON)}.")
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
    if found.max_participants is None and found.budget is None:
        say(
            "With --max-participants there is also a table of power: how likely an answer within "
            "that many people is, for several true differences.\n"
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
    near = f", or one within {found.indifference_zone:g} of it" if found.indifference_zone else ""
    cut = "" if found.max_participants is None else ", of trials that end at the maximum too"
    hits, _, most = _end_head(found).partition("\n")
    end = "go on to the cap of simulations" if found.max_participants is None else "end there"
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
    return (
        "no\nend" if found.max_participants is None else f"hits\n{people(found.max_participants)}"
    )


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
    say(f"{runs} in each row.{range_cut_words(found.max_participants)} {tightest}{RANGE_WORDS}.")


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
    ends = found.max_participants is not None or any(row.unstopped for row in rows)
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


SCALED = (
    "Its means are outcomes on a scale from 0 to 1, and 1 is the better end of the range of "
    "outcomes."
)
"""Of data whose units are not known."""
LONGEST_WAY = 1_000_000
"""People of a trial that is drawn, where their outcomes are drawn one by one."""
MAX_LINES = 6
"""Lines in a picture of distributions: more are hard to tell apart."""


def plan_page(plan: Plan) -> str:
    """The whole page, self-contained."""
    lead = (
        f"At most {100 * plan.delta:.4g} % of the answers may be wrong (the error rate δ), with "
        f"{trusted(plan.trust)}. "
        f"{counted(plan.runs, 'simulated trial')} in each row."
    )
    return render(Document("How many people it takes", plan_sections(plan), lead))


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
    target_difference = (
        [Paragraph(f"{target_difference_words(plan.target_difference)}.")]
        if plan.target_difference > 0
        else []
    )
    take = Paragraph(f"Take {reason_words(plan.recommended.reason)}.")
    numbers = NUMBERS in (plan.outcomes, *(arms.outcomes for arms in plan.scenarios.values()))
    expected = outcomes_words(plan.outcomes, plan.as_bits, MIN_LEVELS_EPSILON)
    outcomes = [Paragraph(f"{expected}.")] if numbers else []
    return Section("The answer", [List(items), take, *target_difference, *outcomes])


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
            if plan.max_participants is None
            else f"reach {plan.max_participants:,} without an answer"
        )
        words += f"; but {row.unstopped_probability:.0%} of the trials {most}"
    elif row.samples.q90 is not None:
        words += f"; nine of ten trials end within {people(row.samples.q90)}"
    within = "" if plan.max_participants is None else f" within {plan.max_participants:,} people"
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
    pictures = FigureRow([_people_picture(plan, rows, several), _done_picture(plan, rows, several)])
    return Section(title, [Paragraph(about), pictures, _table(plan, rows, several)])


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


def _people_picture(plan: Plan, rows: list[PlanRow], several: bool) -> Figure:
    bars = [_people_row(row, several) for row in rows]
    bound = ""
    if any(row.comparable_bound is not None for row in rows):
        bound = f"; diamond: what no strategy can beat on average{FLOOR if plan.floored else ''}"
    return Figure(
        lambda: charts.render(charts.draw_people(bars, limit=plan.max_participants)),
        "People by privacy level: median, and the range of eight of ten trials; numbers below",
        f"Median, and the range in which eight of ten trials end{bound}.",
    )


def _people_row(row: PlanRow, several: bool) -> charts.PeopleRow:
    samples = row.samples
    numbers = (samples.q10, samples.median, samples.q90, row.comparable_bound)
    return charts.PeopleRow(_label(row, several), *(math.nan if n is None else n for n in numbers))


def _done_picture(plan: Plan, rows: list[PlanRow], several: bool) -> Figure:
    """How many trials have ended by then; of several strategies the first one, and no
    privacy.
    """
    first = plan.per_epsilon[0].strategy.name
    lines = [row for row in rows if row.epsilon is None or row.strategy.name == first][:MAX_LINES]
    done = charts.distribution({_label(row, several): row.results for row in lines})
    return Figure(
        lambda: charts.render(charts.draw_distribution(done)),
        "Share of the trials that have ended, against people enrolled",
        "Share of the trials that have an answer, against the people enrolled by then.",
    )


def _table(plan: Plan, rows: list[PlanRow], several: bool) -> Table:
    head = ["ε", "mean", "median", "10 … 90 %", "right (95 % interval)"]
    if several:
        head.insert(1, "strategy")
    capped = plan.max_participants is not None or any(row.unstopped for row in rows)
    if capped:
        head.append(
            "no end" if plan.max_participants is None else f"hits {people(plan.max_participants)}"
        )
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
    caption = f"People a trial takes; {runs} in each row.{range_cut_words(plan.max_participants)}"
    title = range_heading(plan.ranges[0].strategy.epsilon)
    tightest = f"{TIGHTEST_WORDS}. " if TIGHTEST in {row.name for row in plan.ranges} else ""
    return Section(title, [Paragraph(f"{tightest}{RANGE_WORDS}."), Table(head, rows, caption)])


def one_trial(plan: Plan) -> Section | None:
    """The way of one simulated trial with the ε to take; None if it cannot be drawn."""
    chosen = plan.example
    if chosen is None:
        return None
    instance, epsilon = plan.scenarios[chosen.scenario], chosen.strategy.epsilon
    bits = isinstance(instance, Bernoulli)
    if (
        not bits
        and not is_rounded_to_bits(chosen.strategy)
        and chosen.results.samples[0] > LONGEST_WAY
    ):
        return None
    try:
        most = chosen.results.spec["max_samples"]
        path = run_path(instance, chosen.strategy, plan.seed, max_samples=most)
    except InvalidInputError:  # every sample a release and too many of them, or one global episode
        return None
    parts: list[Part] = [Paragraph(path_words(path)), path_picture(path)]
    if not bits and units_of(instance) is None:
        parts.insert(1, Paragraph(SCALED))
    if epsilon == plan.affordable_epsilon:
        parts.insert(0, Paragraph(f"This ε is what a budget of {plan.budget:,} people affords."))
    if bits and chosen.results.stopped.any() and instance.unique:
        parts.append(_allocation_picture(chosen.results))
    return Section(f"How a trial at ε = {epsilon:.3g} may go", parts)


def _allocation_picture(results: Results) -> Figure:
    return Figure(
        lambda: charts.render(charts.draw_allocation(charts.allocation(results))),
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


def path_picture(path: RunPath) -> Figure:
    """The way of one trial."""
    return Figure(
        lambda: charts.render(charts.draw_path(path)),
        "Private means, evidence against each arm and releases, against people enrolled",
        "What the outside world sees: the private means with their uncertainty, how much evidence "
        f"there is against each arm, and when something is released.{shown_words(len(path.names))}",
    )


def _end_words(plan: Plan) -> str:
    """What the column of trials without an answer says, where there is one."""
    if plan.max_participants is not None:
        return f" Hits {people(plan.max_participants)}: trials that end there without an answer."
    capped = any(row.unstopped for row in (*plan.no_privacy, *plan.per_epsilon))
    return " No end: trials that go on to the cap of simulations." if capped else ""


def _reading(plan: Plan) -> Section:
    rows = (*plan.no_privacy, *plan.per_epsilon)
    means = "mean outcomes" if plan.outcomes == NUMBERS else "success rates"
    near = f", or one within {plan.indifference_zone:g} of it" if plan.indifference_zone else ""
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
    return Section("How to read this", [List(items)])
