"""Options that several commands share, and how they are read."""

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

import click

from discreet.errors import InvalidInputError
from discreet.files import check_writable

if TYPE_CHECKING:
    from discreet.instance import Bernoulli
    from discreet.strategies.strategy import Strategy
    from discreet.trials.trial import Trial

HERE = "sqlite:///discreet-trials.db"
PASSWORD_SHOWN = (
    "discreet: a password on a command line can be seen by other users of the machine, and stays "
    "in the shell's history: put the address into DISCREET_URL, or into a file that only you can "
    "read and its name into DISCREET_URL_FILE."
)


def _address(ctx: click.Context, _param: click.Parameter, value: str | None) -> str:
    """The address that was given, or that of the environment, or the usual one."""
    if value is not None:
        if _has_password(value):
            click.echo(PASSWORD_SHOWN, err=True)
        return value
    if url := os.environ.get("DISCREET_URL"):
        return url
    if path := os.environ.get("DISCREET_URL_FILE"):
        try:
            words = Path(path).read_text(encoding="utf-8").split()
        except (OSError, UnicodeDecodeError):
            raise InvalidInputError(
                f"cannot read {path}, which DISCREET_URL_FILE names: check the file"
            ) from None
        if len(words) != 1:
            raise InvalidInputError(
                f"{path}, which DISCREET_URL_FILE names, must hold one address and nothing else"
            )
        return words[0]
    return HERE


def typed_url() -> str | None:
    """The address that was typed, for a command to be repeated; none that has a
    password in it.
    """
    ctx = click.get_current_context()
    typed = ctx.get_parameter_source("url") == click.core.ParameterSource.COMMANDLINE
    url = str(ctx.params.get("url"))
    return url if typed and not _has_password(url) else None


def _has_password(url: str) -> bool:
    """Whether an address has one before its host, or among its parameters."""
    login = url.partition("://")[2].partition("@")[0]
    before = "@" in url and ":" in login
    return before or bool(re.search(r"[?&]password=", url))


url_option = click.option(
    "--url",
    callback=_address,
    help="The database, sqlite:///… or postgresql://…, or a service, https://…, whose token is in "
    "DISCREET_TOKEN, or in the file DISCREET_TOKEN_FILE.  [default: DISCREET_URL, or what the file "
    f"DISCREET_URL_FILE says, or {HERE}]",
)
json_option = click.option(
    "--json", "as_json", is_flag=True, help="One JSON document on stdout and nothing else."
)
delta_option = click.option(
    "--delta", type=float, default=0.05, show_default=True, help="Error rate."
)
seed_option = click.option(
    "--seed", type=int, default=0, show_default=True, help="The same seed gives the same numbers."
)
threads_option = click.option(
    "--threads", type=int, help="Threads to run on.  [default: one per processor]"
)
outcomes_option = click.option(
    "--outcomes",
    help="bet-se: what it is to expect, yes-no or numbers.  [default: as the arms or --range say]",
)


def take_calendar(options: dict[str, Any]) -> dict[str, Any]:
    """Take what `calendar_options` read out of the options, as `simulate` and `plan`
    want it.
    """
    days = {key: options.pop(key) for key in ("accrual", "deadline", "enrolment", "release")}
    delay, never = options.pop("delay"), options.pop("never")
    if never is not None or delay is not None:
        from discreet.calendar import Delay

        delay = Delay.read("0" if delay is None else delay, never or 0.0)
    return {**days, "delay": delay}


def json_text(found: dict[str, Any]) -> str:
    """One JSON document."""
    return json.dumps(found, indent=2, allow_nan=False, ensure_ascii=False)


def show_json(found: dict[str, Any]) -> None:
    """The same on stdout."""
    click.echo(json_text(found))


class Numbers(click.ParamType[tuple[float, ...]]):
    """A list of numbers separated by commas."""

    name = "NUMBER,…"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float, ...]:
        """The numbers as floats."""
        if isinstance(value, tuple):
            return value
        try:
            return tuple(float(part) for part in str(value).split(","))
        except ValueError:
            self.fail(
                f"{value!r} is not a list of numbers separated by commas, such as 0.75,0.7,0.7",
                param,
                ctx,
            )


class Duration(click.ParamType[float]):
    """A time with its unit, in seconds."""

    name = "TIME"
    units: ClassVar[dict[str, int]] = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
    plain: ClassVar[str] = ""
    """The unit of a number without one; empty: it must have one."""
    advice: ClassVar[str] = "give a number with its unit, such as 90s, 30m, 12h or 7d."

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The time in seconds."""
        if isinstance(value, float):
            return value
        found = re.fullmatch(r"([0-9.e+]+?)\s*([smhdw]?)", str(value).strip().lower())
        unit = (found[2] or self.plain) if found else ""
        try:
            return float(found[1] if found and unit else "") * self.units[unit]
        except ValueError:
            self.fail(f"{value!r} is no time: {self.advice}", param, ctx)


class Days(Duration):
    """A time in days, or with its unit; in days."""

    name = "DAYS"
    plain = "d"
    advice = "give days, or a number with its unit, such as 12h or 6w."

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The time in days."""
        return super().convert(value, param, ctx) / self.units["d"]


def all_options(command: Any, *options: Any) -> Any:
    """The command with these options, shown in this order."""
    for option in reversed(options):
        command = option(command)
    return command


def calendar_options(command: Any) -> Any:
    """--accrual and what else is about days, for `read_calendar`."""
    return all_options(
        command,
        click.option("--accrual", type=float, help="People who come in a day: shows days too."),
        click.option(
            "--delay", help="Days until an outcome is told: 7, or at random exponential:7."
        ),
        click.option("--never", type=float, help="The share of people who never answer."),
        click.option(
            "--deadline",
            type=Days(),
            help="Days (or 12h, 6w) after which an outcome counts as the worst one.",
        ),
        click.option(
            "--enrolment",
            help="waiting (for releases), or continuous (bet-se, a deadline).  [default: waiting]",
        ),
        click.option(
            "--release",
            help="complete (with the last outcome), or clock (deadline).  [default: complete]",
        ),
    )


def instance_options(command: Any) -> Any:
    """--means or --instance, and --names: the arms a command is about."""
    return all_options(
        command,
        click.option(
            "--means", type=Numbers(), help="The arms' success probabilities, such as 0.75,0.7,0.7."
        ),
        click.option("--instance", "benchmark", help="One of the paper's instances: mu1 … mu6."),
        click.option("--names", help="The arms' names, separated by commas."),
    )


def read_instance(
    means: tuple[float, ...] | None, benchmark: str | None, names: str | None, other: str = ""
) -> "Bernoulli":
    """The Bernoulli instance that the options describe."""
    from discreet.instance import Bernoulli, benchmarks

    if (means is None) == (benchmark is None):
        raise InvalidInputError(
            f"give the arms either as --means 0.75,0.7,0.7 or as --instance mu2{other}"
        )
    if benchmark is not None:
        if benchmark not in benchmarks:
            raise InvalidInputError(
                f"unknown instance {benchmark!r}: use one of {', '.join(benchmarks)}"
            )
        means = benchmarks[benchmark].means
    return Bernoulli(means or (), [name.strip() for name in names.split(",")] if names else None)


def strategy_options(command: Any) -> Any:
    """A preset with its levels, for `read_strategy`."""
    return all_options(
        command,
        click.option(
            "--strategy",
            "name",
            required=True,
            help="A preset: bet-se, ttucb, ctb-tt, adap-tt, dp-se, …",
        ),
        level_options,
    )


def level_options(command: Any) -> Any:
    """The levels of a strategy, whichever it is, for `read_strategy`."""
    return all_options(
        command,
        click.option(
            "--threshold", default="proved", show_default=True, help="printed, proved or empirical."
        ),
        click.option("--epsilon", type=float, help="Privacy level of a private strategy."),
        click.option(
            "--trust", default=None, help="bet-se: global, local or none.  [default: global]"
        ),
        click.option("--gamma", type=float, help="γ of gauss-tt's (ε, γ)-local privacy."),
        delta_option,
    )


def design_options(command: Any) -> Any:
    """What else can be chosen of a strategy, for `read_strategy`."""
    return all_options(
        command,
        click.option(
            "--zeta",
            type=float,
            help="bet-se: an arm within ζ of the best is good enough.  [default: 0]",
        ),
        click.option(
            "--hint",
            type=float,
            help="bet-se: the difference you expect to find; a wrong one only costs people.",
        ),
        outcomes_option,
        click.option(
            "--beta",
            default="0.5",
            show_default=True,
            help="The leader's share of the samples, or ids.",
        ),
        click.option("--sampling", default=None, help="top-two, uniform, lucb or elimination."),
        click.option(
            "--episodes",
            default=None,
            help="arm or global: what the phases of a phased strategy belong to.",
        ),
    )


def read_strategy(name: str, options: dict[str, Any]) -> "Strategy":
    """The preset of that name with those options that were given."""
    from discreet.strategies.presets import levels_of, preset_of

    preset = preset_of(name)
    given = {key: value for key, value in options.items() if value is not None}
    beta = given.pop("beta", "0.5")
    if beta != "0.5":
        try:
            given["beta"] = beta if beta == "ids" else float(beta)
        except ValueError:
            raise InvalidInputError(
                f"beta must be a number in (0, 1) or ids; got {beta!r}"
            ) from None
    needed = levels_of(name, given.get("trust"))
    for key in needed:
        if key not in given:
            raise InvalidInputError(f"{name} is private: say how private, with --{key}")
    for key in ("epsilon", "gamma"):
        if key in given and key not in needed:
            raise InvalidInputError(f"{name} takes no --{key}")
    return preset(**given)


def opened(url: str, name: str, head: str | None = None) -> "Trial":
    """The live trial of that name, in a database or at a service."""
    return trials_at(url).open(url, name, head)


def trials_at(url: str) -> "type[Trial]":
    """The class of trials at an address; those of a service need no database here."""
    from discreet.remote.address import is_remote

    if is_remote(url):
        from discreet.remote.trial import RemoteTrial

        return cast("type[Trial]", RemoteTrial)
    from discreet.trials.trial import Trial

    return Trial


def check_page(path: str) -> None:
    """Refuse a page that could not be drawn or written, before the work is done."""
    from discreet.reports import charts

    charts.require_matplotlib()
    check_writable(path)
