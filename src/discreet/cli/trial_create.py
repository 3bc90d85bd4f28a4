"""`discreet trial create`: a protocol, frozen, and what it means."""

import shlex
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from discreet.cli.options import (
    Names,
    all_options,
    answer,
    answer_options,
    design_options,
    level_options,
    read_strategy,
    setting_option,
    trials_at,
    url_option,
)
from discreet.cli.output import quiet_warnings, tell
from discreet.errors import InvalidInputError
from discreet.trials.settings import SETTINGS

if TYPE_CHECKING:
    from discreet.strategies.presets import Recommendation
    from discreet.strategies.strategy import Strategy
    from discreet.trials.protocol import Protocol
    from discreet.trials.trial import Trial


SAY_EPSILON = (
    "how private a trial is must be your own choice: give --epsilon, such as --epsilon 1 (a "
    "smaller one is more private and takes more participants: see discreet plan --help), or give "
    "--trust none for a trial without privacy"
)
TAKE_BET_SE = (
    "If participants come from several sites, or over a long time, use bet-se: each "
    "participant's arm is "
    "drawn at random after enrolment, and its error rate holds whatever the sites, trends and "
    "seasons."
)
TAKE_CLOCK = (
    "Use --release scheduled, which needs a --deadline, if how soon participants answer may "
    "depend on "
    "their outcome and somebody may watch when rounds are released"
)
TAKE_CLOCK_AHEAD = (
    "With continuous enrolment the public record itself shows how fast outcomes came: use "
    "--release scheduled unless that has nothing to do with the outcomes"
)


SETTABLE = tuple(name for name in SETTINGS if name != "script")
"""Settings with an option. A service adds the script."""


def settings_options(command: Any) -> Any:
    """Add an option for each setting."""
    return all_options(command, *(setting_option(name) for name in SETTABLE))


@click.command(
    epilog="discreet trial create dose --arms '5 mg,10 mg' --epsilon 1 --max-participants 2000 "
    "--deadline 7d"
)
@click.argument("trial_name", metavar="NAME")
@click.option("--arms", type=Names(), required=True, help="The names of the arms.")
@click.option(
    "--strategy",
    "name",
    help="The name of the strategy: bet-se, ttucb, ctb-tt, adap-tt, dp-se and others.  [default: "
    "the recommended one]",
)
@level_options
@design_options
@settings_options
@url_option
@answer_options
def create(
    trial_name: str,
    name: str | None,
    arms: tuple[str, ...],
    url: str,
    as_json: bool,
    **options: Any,
) -> None:
    """Start a trial. Its protocol is fixed from then on. It is safe to give the same
    command again: the trial stays as it is.
    """
    given = {key: options.pop(key) for key in SETTABLE}
    settings = {key: value for key, value in given.items() if value is not None}
    strategy, reason = choose(name, options, settings["range"])
    maximum = settings["max_participants"]
    if warning := warning_of(strategy, len(arms), maximum):
        tell(f"warning: {warning}.")
    with quiet_warnings():
        made = trials_at(url).create(url, trial_name, arms, strategy, **settings)
    if not answer({**_created(made), "recommended": reason, "warning": warning}, as_json):
        _show_created(made, reason)


def choose(
    name: str | None, options: dict[str, Any], ends: tuple[float, float]
) -> tuple["Strategy", str | None]:
    """The strategy, told which outcomes to expect unless somebody has; and where nobody
    has named one, why it is this.
    """
    from discreet.scale import NUMBERS, YES_NO
    from discreet.strategies.presets import with_outcomes

    said, reason = options["outcomes"], None
    usual = YES_NO if ends == (0, 1) else NUMBERS
    if name is None:
        choice = _recommended(options, usual if said is None else said)
        name, reason = choice.strategy.name, choice.reason
    strategy = read_strategy(name, options)
    return (with_outcomes(strategy, usual) if said is None else strategy), reason


def _recommended(options: dict[str, Any], outcomes: str) -> "Recommendation":
    """What to take for these levels; how private a trial is nobody chooses for a
    participant.
    """
    from discreet.strategies.presets import recommended
    from discreet.trust import check_trust

    trust = "global" if options["trust"] is None else options["trust"]
    if options["epsilon"] is None and options["rho"] is None and check_trust(trust).is_private:
        raise InvalidInputError(SAY_EPSILON)
    epsilon, delta, target_difference = (
        options["epsilon"],
        options["delta"],
        options["target_difference"] or 0.0,
    )
    return recommended(
        epsilon, delta, trust, target_difference, outcomes, options["gamma"], options["rho"]
    )


def warning_of(strategy: "Strategy", arms: int, max_participants: int) -> str | None:
    """That the trial would end without an answer, if that can be said."""
    from discreet.planning.power import check_reach

    found = None
    with suppress(InvalidInputError):  # what can be no trial is refused where one is made
        found = check_reach(strategy, arms, max_participants)
    if found is None:
        return None
    takes = "more" if found.participants is None else f"about {found.participants:,}"
    cheaper = " or choose a larger --epsilon" if strategy.trust_model.is_private else ""
    return (
        "even if the best arm always did as well as possible and the others as badly as "
        f"possible, {strategy.name} would take {takes} participants: with --max-participants "
        f"{max_participants} "
        f"the trial will end without a conclusion (none of {found.runs} simulated trials had one). "
        f"Raise --max-participants{cheaper}; discreet plan shows how many participants the "
        f"differences "
        "that "
        "you expect take"
    )


def advice_of(protocol: "Protocol") -> str | None:
    """What would be safer where participants come from sites or over time, if anything."""
    from discreet.strategies.estimators import SIMPLE

    return None if SIMPLE in protocol.strategy.spec.randomisations else TAKE_BET_SE


def _created(made: "Trial") -> dict[str, Any]:
    """The same as `_show_created` for scripts."""
    kept, status = made.protocol, made.status()
    return {
        "name": kept.name,
        "protocol_hash": made.protocol_hash,
        "head": status.head,
        "url": made.url,
        "outcomes": kept.strategy.shown_outcomes,
        "randomisation": kept.randomisation,
        "assignment": status.randomisation,
        "guarantee": status.guarantee,
        "timing": status.release,
        "enrolment": status.enrolment,
        "advice": advice_of(kept),
        "strategy": kept.strategy.name,
    }


def _show_created(made: "Trial", reason: str | None) -> None:
    """What was frozen, and what to do next; with the reason for a strategy that nobody
    has named.
    """
    from discreet.scale import YES_NO
    from discreet.strategies.presets import with_outcomes
    from discreet.studies.study import describe_extras
    from discreet.trials.protocol import MISSING
    from discreet.wording import describe_privacy, describe_reason

    kept, status = made.protocol, made.status()
    strategy = kept.strategy
    people = f"{len(kept.arms)} arms, at most {kept.max_participants} participants"
    click.echo(f"{kept.name}: {people}.\nPrivacy: {describe_privacy(status.privacy)}.")
    if reason is not None:
        click.echo(
            f"Strategy: you named none, so it is the recommended one, {describe_reason(reason)}."
        )
    if design := describe_extras(with_outcomes(strategy, YES_NO)):
        click.echo(f"Design: {design}.")
    if kept.question:
        click.echo(f"Question: {kept.question}")
    chosen = f" (--outcomes {strategy.outcomes})" if strategy.shown_outcomes else ""
    click.echo(f"Outcomes: {kept.outcome_description}{chosen}.")
    for words in _field_words(made):
        click.echo(words)
    click.echo(f"Missing: {MISSING}.\nRetention: {status.retain}.")
    if status.out_of_range:
        click.echo(f"Outside the range: {status.out_of_range}.")
    if strategy.trust_model.randomised:
        click.echo(
            f"Randomise each outcome on the participant's own device, with: discreet respond "
            f"{kept.respond_options} "
            "--outcome -"
        )
    site = " --site SITE" if kept.sites else ""
    name = shlex.quote(kept.name)
    click.echo(f"Protocol {made.protocol_hash}\nNext: discreet trial ask {name}{site}")


def _field_words(made: "Trial") -> list[str]:
    """How participants come, are dealt and answer, and what that covers."""
    from discreet.reports.trial_text import list_guarantees
    from discreet.trials.settings import (
        BLINDING,
        COMPLETE,
        CONTINUOUS,
        ENROLMENT,
    )

    kept, status = made.protocol, made.status()
    said = {**status.to_dict(), "enrolment": ENROLMENT[kept.enrolment] if status.release else ""}
    if kept.release == COMPLETE and status.release:
        ahead = kept.enrolment == CONTINUOUS
        take = TAKE_CLOCK_AHEAD if ahead else TAKE_CLOCK
        said["release"] = f"{status.release}. {take}"
    lines = [f"{title}: {words}." for title, words in list_guarantees(said)]
    if kept.sites is not None:
        lines.append(f"Sites: {', '.join(kept.sites)}. Give --site with each ask.")
    if kept.is_blinded:
        lines.append(
            f"Blinding: {BLINDING[kept.blinding]}. The list of codes: discreet trial codes"
        )
    if kept.deadline is not None:
        name = shlex.quote(kept.name)
        lines.append(
            "Run this from a timer at fixed times, such as every day at six; it counts "
            "late outcomes as the worst and makes the releases that are due: discreet trial "
            f"expire {name}"
        )
    return [*lines, advice] if (advice := advice_of(kept)) else lines
