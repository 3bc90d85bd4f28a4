"""`discreet plan`."""

from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any

import click

from discreet.cli.options import (
    Arms,
    Names,
    Numbers,
    all_options,
    answer_options,
    arms_options,
    calendar_options,
    delta_option,
    make_option,
    read_arms,
    seed_option,
    show_json,
    tabulate,
    take_arms,
    take_calendar,
)
from discreet.cli.output import (
    check_report,
    pdf_option,
    quiet_warnings,
    simulation_bar,
    tell,
    write_report,
)
from discreet.errors import InvalidInputError

if TYPE_CHECKING:
    from discreet.instances import Instance
    from discreet.planning.plan import Plan
    from discreet.planning.scenarios import GapScenarios


class Day(click.ParamType[date]):
    """A day, such as 2027-03-01."""

    name = "DAY"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> date:
        """The day."""
        try:
            return date.fromisoformat(str(value))
        except ValueError:
            self.fail(
                f"{value!r} is not a day: write year, month and day, such as 2027-03-01.",
                param,
                ctx,
            )


def bet_options(command: Any) -> Any:
    """Add the options of bet-se, with which a plan simulates what takes them."""
    from discreet.strategies.estimators import ESTIMATORS
    from discreet.strategies.strategy import list_options

    return all_options(
        command,
        *(
            make_option(field, "--gap if given, else none" if name == "target_difference" else None)
            for name, field in list_options(ESTIMATORS["bets"].options).items()
        ),
    )


@click.command(epilog="discreet plan --arms 4 --gap 0.2 --base 0.5 --epsilon 0.1,1 --budget 3000")
@arms_options
@click.option(
    "--arms",
    type=int,
    help="The number of arms, if you know only --gap and --base and not each arm's rate.",
)
@click.option("--gap", type=float, help="How much better the best arm is than the rest, at least.")
@click.option(
    "--base", type=float, help="The success rate around which the arms lie.  [default: 0.5]"
)
@click.option(
    "--epsilon",
    type=Numbers(),
    default="0.1,1",
    show_default=True,
    help="One or more levels of privacy (ε): smaller is more private.",
)
@delta_option
@click.option(
    "--strategy",
    "strategies",
    type=Names(),
    help="One or more strategies, separated by commas.  [default: the recommended one]",
)
@click.option(
    "--trust",
    default="global",
    show_default=True,
    help="Who may see outcomes: a collector (global), or nobody (local).",
)
@bet_options
@calendar_options
@click.option(
    "--start",
    type=Day(),
    help="The first day of enrolment, such as 2027-03-01; with it and --accrual, the day on which "
    "the trial ends is shown.",
)
@click.option(
    "--max-participants",
    type=int,
    help="The number of participants after which a trial ends, with or without a conclusion.",
)
@click.option(
    "--budget",
    type=int,
    help="How many participants you can enrol. The plan then also shows the smallest ε (the "
    "strongest "
    "privacy) at which they are enough, with the --probability that you want.",
)
@click.option(
    "--probability",
    type=float,
    default=0.9,
    show_default=True,
    help="How likely a right answer within the --budget must be.",
)
@click.option(
    "--runs",
    type=int,
    default=500,
    show_default=True,
    help="How many trials are simulated for each row.",
)
@seed_option
@click.option(
    "--html", type=click.Path(dir_okay=False), help="Also write a page with pictures to this file."
)
@pdf_option
@answer_options
def plan(
    arms: int | None,
    gap: float | None,
    base: float | None,
    epsilon: tuple[float, ...],
    strategies: tuple[str, ...] | None,
    start: date | None,
    html: str | None,
    pdf: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Show how many participants a trial takes, and what privacy costs. With a --budget, it
    also shows how much privacy that affords.
    """
    from discreet.planning.plan import plan as compute

    scenarios: Instance | GapScenarios
    known = take_arms(options)
    calendar = take_calendar(options)
    if arms is None and gap is None and base is None:
        scenarios = read_arms(known, " or as --arms 5 --gap 0.1 --base 0.5")
    else:
        scenarios = _read_gap(arms, gap, base, known)
    options = {name: value for name, value in options.items() if value is not None}
    options |= {"start": start}
    check_report(html, pdf)
    with quiet_warnings(), simulation_bar("simulating trials") as bar:
        options |= {"strategies": strategies, "progress": bar, "doing": bar.doing}
        found = compute(scenarios, epsilon, **calendar, **options)
    if known.part["range"] is not None:
        found = with_ranges(found, known)
    if html is not None or pdf is not None:
        from discreet.reports.plan import plan_page

        for file in write_report(html, pdf, plan_page(found)):
            tell(f"wrote {file}")
    tabulate(found.to_frame)
    if as_json:
        show_json(found.to_dict())
    else:
        from discreet.reports.plan import build_plan
        from discreet.reports.terminal import render

        render(build_plan(found, example=False))


def with_ranges(found: "Plan", arms: Arms) -> "Plan":
    """The plan, with what other ranges of the past outcomes would take."""
    from discreet.planning.scenarios import RANGE_RUNS, plan_ranges

    with quiet_warnings(), simulation_bar("other ranges") as progress:
        ranges = plan_ranges(
            arms.past,
            arms.part["range"] or (0.0, 1.0),
            found.recommended.strategy,
            *arms.how,
            runs=min(found.runs, RANGE_RUNS),
            seed=found.seed,
            max_participants=found.max_participants,
            progress=progress,
        )
    return replace(found, ranges=ranges)


def _read_gap(
    arms: int | None, gap: float | None, base: float | None, known: Arms
) -> "GapScenarios":
    """The scenarios that --arms, --gap and --base describe, if no instance is given as
    well; --names are the names of their arms.
    """
    from discreet.instances import Bernoulli
    from discreet.planning.scenarios import make_gap_scenarios

    names = known.known["names"]
    unnamed = replace(known, known={**known.known, "names": None})
    if unnamed.any or arms is None or gap is None:
        raise InvalidInputError(
            "give either --means, --instance or --data, or else --arms and --gap (and --base)"
        )
    found = make_gap_scenarios(arms, gap, 0.5 if base is None else base)
    if not names:
        return found
    shapes = {words: Bernoulli(shape.means, names) for words, shape in found.shapes.items()}
    return replace(found, shapes=shapes)
