"""The document of a plan: how many participants a trial takes, how sure that is, and an
example.
"""

import math
from collections.abc import Callable, Sequence

from discreet.accrual import DAYS_PER_MONTH
from discreet.errors import InvalidInputError
from discreet.instances import Bernoulli
from discreet.planning.plan import Plan
from discreet.planning.power import MAX_EPSILON, Affordable, Power
from discreet.planning.rows import EnrolmentOption, PlanRow
from discreet.planning.scenarios import TIGHTEST
from discreet.reports import charts
from discreet.reports.charts.style import describe_shown
from discreet.reports.document import (
    Document,
    Figure,
    FigureRow,
    List,
    Note,
    Paragraph,
    Part,
    Section,
    Table,
)
from discreet.reports.html import render
from discreet.reports.summaries import (
    count_past_outcomes,
    describe_past_data,
    find_scale,
    list_past_notes,
)
from discreet.results import Results
from discreet.scale import NUMBERS, YES_NO
from discreet.simulation.paths import RunPath, run_path
from discreet.strategies.units import MIN_LEVELS_EPSILON, is_rounded_to_bits
from discreet.wording import (
    FLOOR,
    NO_GUARANTEE,
    NO_PROOF,
    NO_PROOF_WORDS,
    describe_means,
    describe_reason,
    describe_trust,
    format_cost_of_privacy,
    format_count,
    format_day,
    format_epsilon,
    format_known,
    format_participants,
    format_percent,
    isolate_name,
    join_first,
    join_names,
    shorten,
)

NEARLY_ALL = 0.995
"""Shares from here on are shown as 100 %."""
FEW_CORRECT = 0.5
"""Share of correct answers below which a plan warns."""
MAX_LINES = 6
"""Lines in a chart: more are hard to tell apart."""
SEEN = 0.02
"""The least difference of two shares that can be seen in a chart."""
MAX_EXAMPLE = 1_000_000
"""Participants of an example whose outcomes are drawn one by one."""
SCALED = (
    "Its means are outcomes on a scale from 0 to 1, and 1 is the better end of the range of "
    "outcomes."
)
"""The note below an example with data whose units are not known."""
RANGES = (
    "A range that is wider than necessary costs participants. A range that is too narrow refuses "
    "outcomes or clips them. Choose the range from past data, as here: a range chosen from the "
    "trial's own outcomes would reveal something about them, without privacy."
)
TIGHTEST_RANGE = (
    "'Tightest round one' is the tightest range with round ends that contains all outcomes in the "
    "data."
)
Curve = tuple[str, str, list[Power]]
"""A row of the table of power (ε, strategy), and its points."""


def plan_page(plan: Plan) -> str:
    """Render a plan as an HTML page with charts."""
    return render(build_plan(plan))


def build_plan(plan: Plan, example: bool = True) -> Document:
    """Build the document of a plan. An `example` is one simulated trial."""
    lead = (
        f"At most {format_percent(plan.delta)} of the answers may be wrong (the error rate δ), "
        f"with {describe_trust(plan.trust)}. {format_count(plan.runs, 'simulated trial')} in each "
        "row."
    )
    return Document("How many participants a trial takes", build_plan_sections(plan, example), lead)


def build_plan_sections(plan: Plan, example: bool = True, about: str = "") -> list[Section]:
    """Build the sections alone. `about` describes a scenario in place of its means."""
    sections = [_answer(plan)]
    for number, name in enumerate(plan.scenarios, 1):
        which = "" if len(plan.scenarios) == 1 else f", scenario {number}"
        sections.append(_scenario(plan, name, f"Participants and privacy{which}", about))
    if plan.max_participants is not None or plan.budget is not None:
        sections.append(_power(plan))
    if plan.calendar is not None:
        sections.append(_days(plan))
    if plan.ranges:
        sections.append(_ranges(plan))
    if example and (plan.calendar is None or plan.calendar.is_simple):
        sections += [shown] if (shown := _example(plan)) else []
    return [*sections, _reading(plan)]


# --- the answer -----------------------------------------------------------------------


def _answer(plan: Plan) -> Section:
    items = [_row_sentence(plan, row) for row in (*plan.per_epsilon, *plan.no_privacy)]
    items += [
        f"Budget, {entry.strategy}: {_budget_sentence(plan, entry)}" for entry in plan.affordable
    ]
    parts: list[Part] = [
        List(items),
        Paragraph(f"Take {describe_reason(plan.recommended.reason)}."),
    ]
    if plan.target_difference > 0:
        parts.append(
            Paragraph(
                f"Planned with the target difference {plan.target_difference:g}, which bet-se "
                "then expects: start the trial with the same target difference "
                f"(--target-difference {plan.target_difference:g}). If the true difference may be "
                "much larger, plan without a target difference (--target-difference 0)."
            )
        )
    if NUMBERS in (plan.outcomes, *(arms.outcomes for arms in plan.scenarios.values())):
        parts.append(Paragraph(_outcomes_sentence(plan)))
    return Section("The answer", parts)


def _row_sentence(plan: Plan, row: PlanRow) -> str:
    where = "" if len(plan.scenarios) == 1 else f"{row.scenario}; "
    private = "without privacy" if row.epsilon is None else f"at ε = {row.epsilon:g}"
    words = f"{where}{row.strategy.shown} {private}{_enrolment(plan)}: "
    words += f"{format_participants(row.participants.mean)} participants on average"
    if row.privacy_cost is not None and row.epsilon is not None:
        words += f", {row.privacy_cost:.3g} times as many as without privacy{qualify_cost(plan)}"
    if row.unstopped_probability >= 0.1:
        end = (
            "do not end"
            if plan.max_participants is None
            else f"reach {plan.max_participants:,} participants and stay inconclusive"
        )
        words += f"; but {row.unstopped_probability:.0%} of the trials {end}"
    elif row.participants.q90 is not None:
        words += f"; nine of ten trials end within {format_participants(row.participants.q90)}"
    within = "" if plan.max_participants is None else f" within {plan.max_participants:,}"
    words += f". Correct answers{within}: {format_percent(round(row.correct, 3))}."
    words += _row_days(plan, row)
    warning = warn_of_few_correct(plan, row)
    return f"{words} Warning: {warning}" if warning else words


def _enrolment(plan: Plan) -> str:
    """Return which kind of enrolment the rows are about; empty without days."""
    return "" if plan.calendar is None else f", {plan.calendar.enrolment} enrolment"


def _row_days(plan: Plan, row: PlanRow) -> str:
    """Return how long the trials of a row take with each kind of enrolment."""
    phrases = []
    for way in plan.enrolments:
        key = (way.scenario, way.epsilon, way.strategy)
        if key == (row.scenario, row.epsilon, row.strategy.name) and way.days.mean is not None:
            end = (way.end or {}).get("mean")
            until = "" if end is None else f", until {format_day(end)}"
            days = format_count(f"{way.days.mean:,.0f}", "day")
            phrases.append(f"with {way.enrolment} enrolment it takes {days} on average{until}")
    words = "; ".join(phrases)
    return f" {words[:1].upper()}{words[1:]}." if words else ""


def warn_of_few_correct(plan: Plan, row: PlanRow) -> str:
    """Return a warning if a maximum leaves few trials with the correct answer."""
    if plan.max_participants is None or row.correct >= FEW_CORRECT:
        return ""
    share = "none" if row.correct == 0 else f"only {row.correct:.0%}"
    return (
        f"{share} of the simulated trials have the correct answer within "
        f"{plan.max_participants:,} participants. Raise the maximum, allow a larger ε, or look for "
        "a larger difference."
    )


def qualify_cost(plan: Plan) -> str:
    """Return what the cost of privacy refers to if trials are cut short."""
    rows = (*plan.no_privacy, *plan.per_epsilon)
    if plan.max_participants is None or not any(row.unstopped for row in rows):
        return ""
    return ", if no trial was cut short at the maximum"


def _budget_sentence(plan: Plan, entry: Affordable) -> str:
    """Describe what a budget affords with a strategy, and how sure that is."""
    if entry.epsilon is None:
        return f"{entry.reason}."
    low, high = entry.epsilon_interval
    sure = f"With {entry.level:.0%} confidence"
    if low is not None and high is not None:
        between = f"{sure} they suffice at ε = {high:.3g} but not at ε = {low:.3g}."
    elif low is not None:
        between = (
            f"{sure} they do not suffice at ε = {low:.3g}; so few trials cannot tell at which ε, "
            f"up to {MAX_EPSILON:g}, they do."
        )
    elif high is not None:
        between = f"{sure} they suffice at ε = {high:.3g}; a smaller ε may be enough."
    else:
        between = "So few trials cannot tell how accurate this is."
    return (
        f"{plan.budget:,} participants suffice down to ε ≈ {entry.epsilon:.3g} (there the answer "
        f"is correct and in time in {entry.correct:.1%} of the trials; {plan.probability:.0%} were "
        f"wanted). {between} More simulated trials (--runs) give a more precise answer."
    )


def _outcomes_sentence(plan: Plan) -> str:
    """Describe which outcomes a trial has to be started for."""
    how = "numbers, whose variance bet-se uses" if plan.outcomes == NUMBERS else "yes or no"
    if plan.bit_epsilons:
        how = (
            "numbers. With local trust, at ε = "
            f"{join_first([f'{each:g}' for each in plan.bit_epsilons])} each is sent as a "
            "randomised bit, which says nothing about the variance (from ε = "
            f"{MIN_LEVELS_EPSILON:g} on, one of three levels is sent, which does)"
        )
    return (
        f"Planned for outcomes that are {how}: start the trial the same way (--outcomes "
        f'{plan.outcomes}, or in Python bet_se(…, outcomes="{plan.outcomes}")).'
    )


# --- a scenario -----------------------------------------------------------------------


def _scenario(plan: Plan, name: str, title: str, about: str) -> Section:
    rows = [row for row in (*plan.no_privacy, *plan.per_epsilon) if row.scenario == name]
    several = len({row.strategy.name for row in rows}) > 1
    figures = FigureRow([_draw_participants(plan, rows, several), _draw_ended(plan, rows, several)])
    words = about or _describe_scenario(plan, name)
    return Section(title, [Paragraph(words), figures, _participants_table(plan, rows, several)])


def _describe_scenario(plan: Plan, name: str) -> str:
    instance, past = plan.scenarios[name], describe_past_data(plan.scenarios[name])
    shown = (
        [format_percent(mean) for mean in instance.means]
        if instance.outcomes == YES_NO
        else [f"{mean:g}" for mean in instance.means]
    )
    arms = [f"{isolate_name(arm)} {mean}" for arm, mean in zip(instance.names, shown, strict=True)]
    called = describe_means(instance.outcomes, instance.is_bounded).removesuffix(":").capitalize()
    facts = [
        past or f"{called}: {join_first(arms)}{count_past_outcomes(instance)}",
        *list_past_notes(instance),
        f"Best: {name_best_arms(plan, name)}",
    ]
    if "arms" in name and past is None:
        facts.insert(0, f"Scenario: {name}")
    return " ".join(f"{fact}." for fact in facts)


def name_best_arms(plan: Plan, scenario: str) -> str:
    """Name the best arm of a scenario, or those that share its place."""
    arms = plan.scenarios[scenario]
    best = [
        name for name, mean in zip(arms.names, arms.means, strict=True) if mean == max(arms.means)
    ]
    return f"{len(best)} arms alike" if len(best) > 4 else join_names(best)


def _label(row: PlanRow, several: bool) -> str:
    private = "no privacy" if row.epsilon is None else f"ε = {row.epsilon:g}"
    return f"{private}, {_short_strategy(row)}" if several else private


def _short_strategy(row: PlanRow) -> str:
    """Return the strategy of a row for a table or a chart."""
    return row.strategy.shown.replace(NO_GUARANTEE, NO_PROOF)


def _draw_participants(plan: Plan, rows: list[PlanRow], several: bool) -> Figure:
    bars = []
    for row in rows:
        samples = row.participants
        numbers = (samples.q10, samples.median, samples.q90, row.comparable_bound)
        known_numbers = (math.nan if number is None else number for number in numbers)
        bars.append(charts.ParticipantsRow(_label(row, several), *known_numbers))
    bound = ""
    if any(row.comparable_bound is not None for row in rows):
        bound = f"; diamond: lower bound of the average{FLOOR if plan.has_floor_bounds else ''}"
    return Figure(
        lambda: charts.render(charts.draw_participants(bars, limit=plan.max_participants)),
        "Participants by privacy level: median, and the range of eight of ten trials; numbers "
        "below",
        f"Median, and the range in which eight of ten trials end{bound}.",
    )


def _draw_ended(plan: Plan, rows: list[PlanRow], several: bool) -> Figure:
    """Draw which share of trials has ended; of several strategies the first one, and no
    privacy.
    """
    first = plan.per_epsilon[0].strategy.name
    lines = [row for row in rows if row.epsilon is None or row.strategy.name == first][:MAX_LINES]
    done = charts.distribution({_label(row, several): row.results for row in lines})
    return Figure(
        lambda: charts.render(charts.draw_distribution(done)),
        "Share of the trials that have ended, against participants enrolled",
        "Share of the trials that are conclusive, against the participants enrolled by then.",
    )


def _participants_table(plan: Plan, rows: list[PlanRow], several: bool) -> Table:
    columns = {
        "ε": [format_epsilon(row.epsilon) for row in rows],
        "strategy": [_short_strategy(row) for row in rows] if several else ["–"],
        "mean": [format_participants(row.participants.mean) for row in rows],
        "median": [format_participants(row.participants.median) for row in rows],
        "10 … 90 %": [
            f"{format_participants(row.participants.q10)} … "
            f"{format_participants(row.participants.q90)}"
            for row in rows
        ],
        "correct": [f"{row.correct:.1%}" for row in rows],
        "95 % interval": [" … ".join(f"{end:.1%}" for end in row.correct_interval) for row in rows],
        _inconclusive_head(plan): [f"{row.unstopped_probability:.1%}" for row in rows]
        if plan.max_participants is not None or any(row.unstopped for row in rows)
        else ["–"],
        "on the best arm": [f"{row.best_share:.0%}" for row in rows],
        "interim analyses": [format_known(row.releases, ",.0f") for row in rows],
        "cost of privacy": [format_cost_of_privacy(row.privacy_cost) for row in rows],
        "lower bound": [
            "–" if row.comparable_bound is None else format_participants(row.comparable_bound)
            for row in rows
        ],
    }
    shown = {head: cells for head, cells in columns.items() if set(cells) != {"–"}}
    optional = ("median", "interim analyses", "95 % interval", "on the best arm", "lower bound")
    return Table(
        list(shown),
        list(zip(*shown.values(), strict=True)),
        f"Participants a trial takes{_enrolment(plan)}.",
        optional=[*optional, "cost of privacy"],
    )


def _inconclusive_head(plan: Plan) -> str:
    most = plan.max_participants
    return "no end" if most is None else f"inconclusive at {format_participants(most)}"


# --- power ----------------------------------------------------------------------------


def group_power_curves(plan: Plan, scenario: str) -> list[Curve]:
    """Group the points of power in a scenario by ε and strategy."""
    curves: dict[tuple[str, str], list[Power]] = {}
    for point in plan.power:
        if point.scenario == scenario:
            curves.setdefault((format_epsilon(point.epsilon), point.strategy), []).append(point)
    return [(epsilon, strategy, points) for (epsilon, strategy), points in curves.items()]


def make_power_table(curves: list[Curve], caption: str) -> Table:
    """Make two rows for each curve, and a column for each true difference."""
    gaps = sorted({point.shown_gap for _, _, points in curves for point in points})
    several = len({strategy for _, strategy, _ in curves}) > 1
    columns = [f"{gap:.3g}" for gap in gaps]
    head = ["ε", *(["strategy"] if several else []), "answer", *columns]
    rows = []
    for epsilon, strategy, points in curves:
        shares = {point.shown_gap: (point.correct, point.conclusive) for point in points}
        for which, answer in enumerate(("correct", "any")):
            cells = [f"{shares[gap][which]:.0%}" if gap in shares else "–" for gap in gaps]
            rows.append([epsilon, *([strategy] if several else []), answer, *cells])
    return Table(head, rows, caption, optional=columns[::-1])


def describe_certainty(plan: Plan, curves: list[Curve]) -> str | None:
    """Return a sentence for a table whose cells are all 100 %, and None for others."""
    points = [point for _, _, some in curves for point in some]
    least, gaps = min(point.correct for point in points), [point.shown_gap for point in points]
    if least < NEARLY_ALL:
        return None
    share = "all" if least == 1 else f"at least {NEARLY_ALL:.1%} of the"
    return (
        f"At every true difference from {min(gaps):.3g} to {max(gaps):.3g} between the best arm "
        f"and the next{_gap_units(plan)}, {share} trials end within {points[0].participants:,} "
        "participants with the correct answer (at least "
        f"{min(point.runs for point in points)} simulated at each)."
    )


def _gap_units(plan: Plan) -> str:
    in_units = any(point.difference is not None for point in plan.power)
    return ", in the units of the outcomes" if in_units else ""


def _power(plan: Plan) -> Section:
    """Make a figure and a table for each scenario."""
    parts: list[Part] = []
    for name, instance in plan.scenarios.items():
        where = f", {name}" if len(plan.scenarios) > 1 else ""
        curves = group_power_curves(plan, name)
        if not curves:
            tied = f"No power is shown{where}: the arms tie, and have no difference to vary."
            parts.append(Paragraph(tied))
        elif certain := describe_certainty(plan, curves):
            parts.append(Paragraph(f"{name}: {certain}" if where else certain))
        else:
            last = curves[0][2][-1]
            planned = float(instance.gaps.min()) * last.shown_gap / last.gap
            parts.append(_draw_power(plan, curves, planned))
            most = f"{last.participants:,} participants"
            caption = f"Trials that end within {most}, by the true difference{where}."
            parts.append(make_power_table(curves, caption))
    if any(isinstance(part, Table) for part in parts):
        runs = format_count(min(point.runs for point in plan.power), "simulated trial")
        near = (
            f" An arm within {plan.indifference_zone:g} of the best is a correct answer."
            if plan.indifference_zone
            else ""
        )
        words = (
            "Each column is a true difference between the best arm and the next"
            f"{_gap_units(plan)}; the strategy stays as planned. 'correct' counts trials that end "
            f"with the correct answer, 'any' those with any answer. At least {runs} in each "
            f"cell.{near}"
        )
        parts.insert(0, Paragraph(words))
    return Section("Power: how likely an answer is", parts)


def _draw_power(plan: Plan, curves: list[Curve], planned: float) -> Figure:
    """Draw power; of several strategies the first one, and no privacy."""
    first = plan.per_epsilon[0].strategy.name
    shown = [curve for curve in curves if curve[0] == "none" or curve[1] == first][:MAX_LINES]
    several = len({strategy for _, strategy, _ in curves}) > 1
    lines = [_power_line(curve, several) for curve in shown]
    wrong = max(point.conclusive - point.correct for _, _, points in shown for point in points)
    alike = "" if wrong >= SEEN else " The two coincide, as hardly any answer is wrong."
    return Figure(
        lambda: charts.render(charts.draw_power(lines, planned)),
        "Share of the trials that end with the correct answer, and with any, against the true "
        "difference; numbers below",
        f"Share of the trials that end within {plan.power[0].participants:,} participants with the "
        "correct answer (marks, with 95 % intervals) and with any answer (thin lines without "
        f"marks), against the true difference between the best arm and the next.{alike}",
    )


def _power_line(curve: Curve, several: bool) -> charts.PowerLine:
    epsilon, strategy, points = curve
    label = "no privacy" if epsilon == "none" else f"ε = {epsilon}"
    return charts.PowerLine(
        f"{label}, {shorten(strategy)}" if several else label,
        tuple(point.shown_gap for point in points),
        tuple(point.correct for point in points),
        tuple(point.correct_interval[0] for point in points),
        tuple(point.correct_interval[1] for point in points),
        tuple(point.conclusive for point in points),
    )


# --- days -----------------------------------------------------------------------------


def _days(plan: Plan) -> Section:
    """Show participants and days with each kind of enrolment, and when the trial ends."""
    head = ["ε", "enrolment", "participants", "days", "days, 10 … 90 %", "pipeline"]
    head += ["interim analyses", "correct"]
    parts: list[Part] = [
        Paragraph(_calendar_sentences(plan)),
        _draw_ends(plan),
        _ways_table(plan, head, _way_cells, "Participants and days a trial takes."),
    ]
    parts += [Note(words)] if (words := explain_slower(plan)) else []
    if plan.start is not None:
        head = ["ε", "enrolment", "expected end", "10 … 90 %"]
        caption = "The day on which a trial ends."
        parts.append(
            _ways_table(
                plan, head, lambda way: [format_epsilon(way.epsilon), *make_end_cells(way)], caption
            )
        )
    return Section("Participants and days", parts)


def _way_cells(way: EnrolmentOption) -> list[str]:
    return [
        format_epsilon(way.epsilon),
        way.enrolment,
        format_participants(way.participants.mean),
        format_known(way.days.mean, ",.0f"),
        f"{format_known(way.days.q10, ',.0f')} … {format_known(way.days.q90, ',.0f')}",
        f"{way.pipeline:,.0f}",
        f"{way.releases:,.0f}",
        f"{way.correct:.1%}",
    ]


def make_end_cells(way: EnrolmentOption) -> list[str]:
    """Return enrolment, expected end and range of ends, if the first day is known."""
    end = way.end or {}
    band = f"{format_day(end.get('q10'))} … {format_day(end.get('q90'))}"
    return [way.enrolment, format_day(end.get("mean")), band]


def _ways_table(
    plan: Plan, head: list[str], cells: Callable[[EnrolmentOption], list[str]], caption: str
) -> Table:
    """Make a row for each kind of enrolment, with scenario and strategy if they differ."""
    differs = [
        name
        for name in ("scenario", "strategy")
        if len({vars(way)[name] for way in plan.enrolments}) > 1
    ]
    rows = [[*(vars(way)[name] for name in differs), *cells(way)] for way in plan.enrolments]
    optional = ["interim analyses", "pipeline", "correct", "days, 10 … 90 %"]
    return Table([*differs, *head], rows, caption, optional=optional)


def _calendar_sentences(plan: Plan) -> str:
    """Describe the calendar of a plan, and how to read what it comes to."""
    calendar = plan.calendar
    if calendar is None:
        return ""
    begin = "" if plan.start is None else f"Enrolment begins on {format_day(plan.start)}. "
    coming = format_count(f"{calendar.accrual:.3g}", "participant comes", "participants come")
    last = (
        ""
        if calendar.last_day is None
        else f" (those after {calendar.last_day:g} count as the worst)"
    )
    words = (
        f"{begin}{coming} a day ({calendar.accrual * DAYS_PER_MONTH:,.4g} a month); outcomes are "
        f"recorded after {calendar.delay.describe}{last}"
    )
    if calendar.lost:
        words += (
            f"; {calendar.lost:.1%} of the successes are late or missing, and count as the worst "
            "outcome"
        )
    when = "at scheduled times" if calendar.clock else "as soon as they are complete"
    words += (
        f". Rounds are released {when}. 'Waiting': nobody is assigned until then, and those who "
        "come in the meantime are turned away."
    )
    if any(way.enrolment == "continuous" for way in plan.enrolments):
        words += " 'Continuous': everybody who comes is assigned."
    else:
        words += (
            " With continuous enrolment, which bet-se offers if outcomes have a deadline, nobody "
            "is turned away, and the trial may end sooner."
        )
    return (
        f"{words} 'Pipeline': participants who are assigned, but whose outcomes are not released, "
        "when the trial ends."
    )


def explain_slower(plan: Plan) -> str:
    """Explain why some trials take longer without privacy than with it, if they do."""
    waiting = [
        way for way in plan.enrolments if way.enrolment == "waiting" and way.days.mean is not None
    ]
    for bare in (way for way in waiting if way.epsilon is None):
        for way in reversed([way for way in waiting if way.epsilon is not None]):
            same = way.scenario == bare.scenario and way.releases < bare.releases
            if same and (way.days.mean or 0) < (bare.days.mean or 0):
                analyses = format_count(
                    f"{bare.releases:,.0f}", "interim analysis", "interim analyses"
                )
                return (
                    "With waiting enrolment a trial without privacy takes longer here, however "
                    f"many participants it saves: it has {analyses}, not {way.releases:,.0f} (ε = "
                    f"{way.epsilon:g}), and before each of them nobody is enrolled until the last "
                    "outcomes are recorded."
                )
    return ""


def _draw_ends(plan: Plan) -> Figure:
    """Draw when trials end, a bar for each kind of enrolment."""
    several = len(plan.scenarios) > 1, len({way.strategy for way in plan.enrolments}) > 1
    rows = []
    for way in plan.enrolments:
        private = "no privacy" if way.epsilon is None else f"ε = {way.epsilon:g}"
        words = [way.scenario if several[0] else "", private, way.strategy if several[1] else ""]
        label = ", ".join(shorten(word) for word in (*words, way.enrolment) if word)
        low, mean, high = (
            math.nan if number is None else number
            for number in (way.days.q10, way.days.mean, way.days.q90)
        )
        rows.append(charts.EndRow(label, low, mean, high, way.enrolment == "continuous"))
    hollow = ""
    if any(row.continuous for row in rows):
        hollow = " Hollow marks on blue: continuous enrolment."
    return Figure(
        lambda: charts.render(charts.draw_ends(rows, plan.start)),
        "When the trial ends, for each kind of enrolment: on average, and the range of eight of "
        "ten trials; numbers below",
        "When the trial ends: on average (mark), and the range in which eight of ten trials end."
        f"{hollow}",
    )


# --- ranges ---------------------------------------------------------------------------


def _ranges(plan: Plan) -> Section:
    rows = [
        [
            f"{row.low:.12g} to {row.high:.12g} ({row.name})",
            format_participants(row.participants.mean),
            format_participants(row.participants.median),
            f"{format_participants(row.participants.q10)} … "
            f"{format_participants(row.participants.q90)}",
            f"{row.correct:.1%}",
            format_known(row.times, ".2f"),
        ]
        for row in plan.ranges
    ]
    head = ["range", "mean", "median", "10 … 90 %", "correct", "times the given one"]
    caption = (
        f"Participants a trial takes; {format_count(plan.ranges[0].runs, 'simulated trial')} in "
        "each row."
    )
    if plan.max_participants is not None:
        caption += (
            f" Trials end at {plan.max_participants:,} participants at the latest, so the ranges "
            "differ by less than they would without a maximum."
        )
    epsilon = plan.ranges[0].strategy.epsilon
    private = "without privacy" if epsilon is None else f"at ε = {epsilon:g}"
    tightest = f"{TIGHTEST_RANGE} " if TIGHTEST in {row.name for row in plan.ranges} else ""
    table = Table(head, rows, caption, optional=["median", "10 … 90 %"])
    return Section(
        f"What the range of outcomes costs, {private}", [Paragraph(f"{tightest}{RANGES}"), table]
    )


# --- an example -----------------------------------------------------------------------


def _example(plan: Plan) -> Section | None:
    """Show one simulated trial with the recommended ε; None if it cannot be drawn."""
    chosen = plan.example
    if chosen is None:
        return None
    instance, epsilon = plan.scenarios[chosen.scenario], chosen.strategy.epsilon
    bits = isinstance(instance, Bernoulli)
    if (
        not bits
        and not is_rounded_to_bits(chosen.strategy)
        and chosen.results.samples[0] > MAX_EXAMPLE
    ):
        return None
    try:
        most = chosen.results.spec["max_samples"]
        path = run_path(instance, chosen.strategy, plan.seed, max_samples=most)
    except InvalidInputError:  # too many releases, or one global episode
        return None
    parts: list[Part] = [Paragraph(describe_path(path)), draw_path_figure(path)]
    if not bits and find_scale(instance) is None:
        parts.insert(1, Note(SCALED))
    if epsilon == plan.affordable_epsilon:
        afford = f"This ε is what a budget of {plan.budget:,} participants affords."
        parts.insert(0, Paragraph(afford))
    if bits and chosen.results.stopped.any() and instance.is_unique:
        parts.append(_draw_allocation(chosen.results))
    return Section(f"An example: one simulated trial at ε = {epsilon:.3g}", parts)


def _draw_allocation(results: Results) -> Figure:
    return Figure(
        lambda: charts.render(charts.draw_allocation(charts.allocation(results))),
        "Share of the participants on each arm, and the ideal one",
        "Share of the participants on each arm, over all simulated trials: mean, the range of "
        "eight of ten trials, and the allocation that attains the lower bound.",
    )


def describe_path(path: RunPath) -> str:
    """Describe one simulated trial in a sentence."""
    analyses = format_count(len(path.samples), "interim analysis", "interim analyses")
    analyses = "every sample is a release" if path.thinned else analyses
    end = f"identifies {path.names[path.recommendation]} as the best arm"
    end = end if path.stopped else "ends inconclusive"
    return (
        f"The first simulated trial, {path.strategy}: {analyses}, and after "
        f"{format_participants(path.samples[-1])} participants it {end}."
    )


def draw_path_figure(path: RunPath) -> Figure:
    """Draw one simulated trial."""
    return Figure(
        lambda: charts.render(charts.draw_path(path)),
        "Estimates, evidence against each arm and interim analyses, against participants enrolled",
        "What is published: the estimates (with privacy noise) and their confidence sequences, "
        "how much evidence there is against each arm, and when something is released."
        f"{describe_shown(len(path.names))}",
    )


# --- how to read it -------------------------------------------------------------------


def _reading(plan: Plan) -> Section:
    rows = (*plan.no_privacy, *plan.per_epsilon)
    means = "mean outcomes" if plan.outcomes == NUMBERS else "success rates"
    zone = plan.indifference_zone
    near = f", or an arm within {zone:g} of it" if zone else ""
    end = ""
    if plan.max_participants is not None:
        end = f" {_inconclusive_head(plan).capitalize()}: trials that end there without an answer."
    elif any(row.unstopped for row in rows):
        end = " No end: trials that go on to the cap of simulations."
    items = [
        "Mean, median, 10 … 90 %: participants that a trial takes; eight of ten trials end in this "
        f"range.{end}",
        "Correct: trials that end (in time) with the correct answer, and a 95 % interval for their "
        f"share. On the best arm: share of the participants who get the best arm{near}. Interim "
        "analyses: times at which results are released.",
        "Cost of privacy: how many times as many participants as without privacy"
        f"{qualify_cost(plan)}; bet-se is compared with bet-se, other strategies with ttucb.",
    ]
    items += [words] if (words := explain_low_cost(plan.per_epsilon)) else []
    if any(row.comparable_bound is not None for row in rows):
        cut_short = any(row.unstopped and row.lower_bound is not None for row in rows)
        only = "; none is shown if the mean is one of trials that were cut short"
        items.append(
            "Lower bound: no strategy with this privacy and error rate needs fewer participants on "
            f"average{FLOOR if plan.has_floor_bounds else ''}{only if cut_short else ''}."
        )
    if any(NO_GUARANTEE in row.strategy.shown for row in rows):
        items.append(f"{NO_PROOF_WORDS[:1].upper()}{NO_PROOF_WORDS[1:]}.")
    labels = [words for row in plan.per_epsilon for words in row.strategy.label.values()]
    items += [f"{words[0].upper()}{words[1:]}." for words in dict.fromkeys(labels)]
    if plan.max_participants is None and plan.budget is None:
        items.append(
            "With a maximum number of participants, a plan also has a table of power: how likely "
            "an answer within that many participants is, for several true differences."
        )
    items += [
        f"A plan holds for its scenarios: true {means} nearer to each other take more "
        "participants.",
        f"Simulated with seed {plan.seed}, the same for all rows; the same plan again gives the "
        "same numbers.",
    ]
    return Section("How to read this", [List(items)])


def explain_low_cost(rows: Sequence[PlanRow]) -> str:
    """Explain why privacy seems to save participants, if the cost shown is below 1."""
    shown = [row for row in rows if row.privacy_cost is not None and row.epsilon is not None]
    cheap = [row.strategy for row in shown if float(f"{row.privacy_cost:.3g}") < 1]
    if not cheap:
        return ""
    same = {one.shown for one in cheap if one.without_privacy() is not None}
    others = {one.shown for one in cheap} - same
    why = [f"{join_names(sorted(same))} has other rounds and other bets with noise than without"]
    why = why if same else []
    if others:
        are = "is" if len(others) == 1 else "are"
        why.append(f"{join_names(sorted(others))} {are} compared with another strategy, ttucb")
    return (
        "A cost below 1 does not mean that privacy saves participants. The noise costs so little "
        f"here that other differences weigh more: {', '.join(why)}, and averages of simulated "
        "trials differ by chance."
    )
