"""Share options among commands, and read them."""

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import MISSING, dataclass, fields
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

import click

from discreet.errors import InvalidInputError
from discreet.files import check_writable, is_database, is_same_file
from discreet.trials.settings import SETTINGS

if TYPE_CHECKING:
    from dataclasses import Field

    import polars as pl
    from click.decorators import FC

    from discreet._types import Floats
    from discreet.instances import Instance
    from discreet.strategies.strategy import Strategy
    from discreet.trials.trial import Trial


TABLE = "discreet.table"
"""Where a command leaves what --csv writes."""
HERE = "sqlite:///discreet-trials.db"
USUALLY = (
    f"  [default: DISCREET_URL, or the address in the file that DISCREET_URL_FILE names, or {HERE}]"
)
PASSWORD_SHOWN = (
    "discreet: a password on a command line can be seen by other users of the machine, and stays "
    "in the shell's history: put the address into DISCREET_URL, or into a file that only you can "
    "read and its name into DISCREET_URL_FILE."
)


def read_address(ctx: click.Context, _param: click.Parameter, value: str | None) -> str:
    """The address that was given, or that of the environment, or the usual one."""
    if value is not None:
        if _has_password(value) and not ctx.resilient_parsing:
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
                f"{path}, which DISCREET_URL_FILE names, must contain one address and nothing else"
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
    callback=read_address,
    help="Where the trials are: a database (sqlite:///… or postgresql://…), or a service "
    "(https://…). For a service, put the token into DISCREET_TOKEN, or the name of a file that "
    "contains it into DISCREET_TOKEN_FILE." + USUALLY,
)
json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document and nothing else."
)
csv_option = click.option(
    "--csv",
    "table",
    type=click.Path(dir_okay=False),
    help="Also write the answer to this CSV file, as a table with one value in each cell.",
)
request_option = click.option(
    "--key",
    "request",
    help="A text of your own that names this request. If the answer is lost, repeat the command "
    "with the same text: nothing is done twice, and the same answer comes back.  [default: none]",
)
delta_option = click.option(
    "--delta",
    type=float,
    default=0.05,
    show_default=True,
    help="The largest probability of a wrong conclusion (the error rate δ).",
)
seed_option = click.option(
    "--seed", type=int, default=0, show_default=True, help="The same seed gives the same numbers."
)
threads_option = click.option(
    "--threads", type=int, help="How many threads to run on.  [default: one per processor]"
)


def take_calendar(options: dict[str, Any]) -> dict[str, Any]:
    """Take what `calendar_options` read out of the options, as `simulate` and `plan`
    want it.
    """
    days = {key: options.pop(key) for key in ("accrual", "deadline", "enrolment", "release")}
    delay, never = options.pop("delay"), options.pop("never")
    if never is not None or delay is not None:
        from discreet.accrual import Delay

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
            self.fail(f"{value!r} is not a time: {self.advice}", param, ctx)


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


class Rate(click.ParamType[float]):
    """Participants per day: a number, or 10/week, 40/month."""

    name = "RATE"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the participants per day."""
        if isinstance(value, float):
            return value
        from discreet.accrual import read_accrual

        try:
            return read_accrual(str(value))
        except ValueError:
            self.fail(
                f"{value!r} is not a rate: give participants per day, such as 1.5, or "
                "10/week or 40/month.",
                param,
                ctx,
            )


class Range(click.ParamType[tuple[float, float]]):
    """The smallest and the largest outcome, separated by a comma."""

    name = "LOW,HIGH"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float, float]:
        """Return both numbers."""
        if isinstance(value, tuple):
            return value
        try:
            low, high = (float(end) for end in str(value).split(","))
        except ValueError:
            self.fail(f"{value!r} is not a range: give two numbers, such as 0,100.", param, ctx)
        return low, high


class Names(click.ParamType[tuple[str, ...]]):
    """Names separated by commas."""

    name = "NAME,…"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        """Return the names."""
        if isinstance(value, tuple):
            return value
        return tuple(name.strip() for name in str(value).split(","))


def all_options(command: Any, *options: Any) -> Any:
    """Add these options to a command, in this order."""
    for option in reversed(options):
        command = option(command)
    return command


SETTING_TYPES: dict[Any, Any] = {
    tuple[float, float]: Range(),
    tuple[str, ...] | None: Names(),
    float | None: Duration(),
}
"""Type of the option for a setting of this type; that of the values for the others."""


def setting_option(name: str, with_default: bool = True) -> "Callable[[FC], FC]":
    """Return the option for a setting of a trial. Without its default, None says that the
    option was not given.
    """
    setting = SETTINGS[name]
    words = [setting.help, *(f"{value}: {means}." for value, means in setting.choices.items())]
    settings: dict[str, Any] = {"help": " ".join(words)}
    if setting.choices:
        settings["type"] = click.Choice([*setting.choices])
    else:
        settings["type"] = SETTING_TYPES.get(setting.type, setting.type)
    if setting.default is MISSING:
        settings["required"] = True
    elif with_default and setting.default:
        settings |= {"default": _typed(setting.default), "show_default": True}
    return click.option(f"--{name.replace('_', '-')}", **settings)


def _typed(value: Any) -> str:
    """Return a value as it is typed."""
    return ",".join(f"{end:g}" for end in value) if isinstance(value, tuple) else str(value)


def calendar_options(command: Any) -> Any:
    """--accrual and what else is about days, for `read_calendar`."""
    return all_options(
        command,
        click.option(
            "--accrual",
            type=Rate(),
            help="The participants who are enrolled per day, such as 1.5, or 10/week, or "
            "40/month. If given, "
            "days are shown too.",
        ),
        click.option(
            "--delay",
            help="The days from assignment to outcome: 7 (always), or exponential:7 (random, with "
            "mean 7).",
        ),
        click.option(
            "--never", type=float, help="The share of participants whose outcome is missing."
        ),
        click.option(
            "--deadline",
            type=Days(),
            help="The days (or 12h, 6w) after which a missing outcome counts as the worst one.",
        ),
        setting_option("enrolment", with_default=False),
        setting_option("release", with_default=False),
    )


def instance_options(command: Any) -> Any:
    """--means or --instance, and --names: the arms a command is about."""
    return all_options(
        command,
        click.option(
            "--means", type=Numbers(), help="The arms' success rates, such as 0.75,0.7,0.7."
        ),
        click.option("--instance", "benchmark", help="One of the paper's instances: mu1 … mu6."),
        click.option("--names", type=Names(), help="The arms' names, separated by commas."),
    )


gaussian_option = click.option(
    "--gaussian",
    type=float,
    help="Rewards have a normal distribution with this standard deviation (σ), and are not 0 or 1. "
    "The means may then be any numbers, and nothing is private.",
)


def read_instance(
    means: tuple[float, ...] | None,
    benchmark: str | None,
    names: tuple[str, ...] | None,
    other: str = "",
    sigma: float | None = None,
) -> "Instance":
    """The instance that the options describe: Bernoulli arms, or with a σ Gaussian
    ones.
    """
    from discreet.instances import Bernoulli, Gaussian, benchmarks

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
    return Bernoulli(means or (), names) if sigma is None else Gaussian(means or (), sigma, names)


def opened(url: str, name: str, head: str | None = None) -> "Trial":
    """The live trial of that name, in a database or at a service."""
    return trials_at(url).open(url, name, head)


def trials_at(url: str) -> "type[Trial]":
    """The class of trials at an address; those of a service need no database here."""
    from discreet.client.address import is_remote

    if is_remote(url):
        from discreet.client.trial import RemoteTrial

        return cast("type[Trial]", RemoteTrial)
    from discreet.trials.trial import Trial

    return Trial


def answer_options(command: Any) -> Any:
    """--csv and --json: a command that has one has the other. A file of --csv that
    cannot be written, or is needed otherwise, is refused before the work is done; what
    the command gave to `tabulate` is written when everything else was shown.
    """

    @wraps(command)
    def tabulated(*args: Any, **options: Any) -> Any:
        ctx, path = click.get_current_context(), options.pop("table")
        if path is not None:
            _check_table(path, ctx)
        try:
            return command(*args, **options)
        finally:
            if path is not None and TABLE in ctx.meta:
                from discreet.tabular import write_csv

                write_csv(path, *ctx.meta[TABLE]())

    return all_options(tabulated, csv_option, json_option)


def _check_table(path: str, ctx: click.Context) -> None:
    """Refuse a file that cannot be written, a database, and what another option or
    argument names.
    """
    for one in ctx.command.params:
        other = ctx.params.get(str(one.name))
        named = isinstance(one.type, click.Path) and one.name != "table" and other is not None
        if named and is_same_file(path, str(other)):
            raise InvalidInputError("--csv needs a file of its own: another option names this one")
    from discreet.tabular import require_polars

    require_polars()
    check_writable(path)
    if is_database(path):
        raise InvalidInputError(f"cannot write {path}: it is a database. Give another file")


def tabulate(frame: "Callable[[], pl.DataFrame]", private: bool = False) -> None:
    """Have this table written, if --csv was given; a `private` one only its owner may
    read.
    """
    click.get_current_context().meta[TABLE] = lambda: (frame(), private)


def answer(
    found: dict[str, Any],
    as_json: bool,
    rows: Sequence[dict[str, Any]] | None = None,
    columns: Iterable[str] = (),
) -> bool:
    """Print one JSON document, if that is wanted: whether it was. The table of --csv
    has these rows, or what was found as one; it is private, as answers about trials
    have ids in them.
    """

    def frame() -> "pl.DataFrame":
        from discreet.tabular import flatten, make_frame

        return make_frame([flatten(row) for row in ([found] if rows is None else rows)], columns)

    tabulate(frame, private=True)
    if as_json:
        show_json(found)
    return as_json


def names_of(kind: type) -> tuple[str, ...]:
    """The columns of a table of such records."""
    return tuple(field.name for field in fields(kind))


def strategy_options(command: Any) -> Any:
    """A preset with its levels, for `read_strategy`."""
    return all_options(
        command,
        click.option(
            "--strategy",
            "name",
            required=True,
            help="The strategy's name: bet-se, ttucb, ctb-tt, adap-tt, dp-se and others.",
        ),
        level_options,
    )


def level_options(command: Any) -> Any:
    """The levels of a strategy, whichever it is, for `read_strategy`."""
    return all_options(
        command,
        click.option(
            "--threshold",
            default="proved",
            show_default=True,
            help="Which threshold ends a trial: the one printed in the paper (printed), one with a "
            "proof (proved), or one without a proof (empirical).",
        ),
        click.option(
            "--epsilon", type=float, help="How private it is (ε): smaller is more private."
        ),
        click.option(
            "--trust",
            default=None,
            help="Who may see outcomes, for bet-se: a collector (global), nobody (local), or "
            "everybody, without privacy (none).  [default: global]",
        ),
        click.option(
            "--gamma",
            type=float,
            help="For (ε, γ)-privacy, which is weaker: the small probability γ that it leaves out. "
            "For gauss-tt, and for bet-se and adap-tt with Gaussian noise.",
        ),
        click.option(
            "--rho",
            type=float,
            help="How private it is by zero-concentrated differential privacy (the ρ of zCDP), "
            "instead of --epsilon, for bet-se and adap-tt.",
        ),
        delta_option,
    )


def design_options(command: Any) -> Any:
    """Add what else can be chosen of a strategy, for `read_strategy`."""
    from discreet.strategies.strategy import list_options

    return all_options(command, *map(make_option, list_options().values()))


def make_option(field: "Field[Any]", usual: str | None = None) -> Any:
    """Return the option of a strategy that a field declares; `usual` says what holds
    without it.
    """
    about = field.metadata
    return click.option(
        f"--{field.name.replace('_', '-')}",
        type=float if field.type is float else str,
        metavar=about["unit"].upper() or None,
        help=f"{about['help']}  [default: {usual or about['usual']}]",
    )


def read_strategy(name: str, options: dict[str, Any]) -> "Strategy":
    """The preset of that name with those options that were given."""
    from discreet.strategies.presets import find_preset, list_gaussian_levels, list_levels

    preset = find_preset(name)
    given = {key: value for key, value in options.items() if value is not None}
    beta = given.pop("beta", "0.5")
    if beta != "0.5":
        try:
            given["beta"] = beta if beta == "ids" else float(beta)
        except ValueError:
            raise InvalidInputError(
                f"beta must be a number in (0, 1) or ids; got {beta!r}"
            ) from None
    trust = given.get("trust")
    needed, more = list_levels(name, trust), list_gaussian_levels(name, trust)
    for key in ("epsilon", "gamma", "rho"):
        if key in given and key not in (*needed, *more):
            raise InvalidInputError(f"{name} takes no --{key}")
    if "rho" in given:
        given.setdefault("epsilon", None)
    for key in needed:
        if key not in given:
            raise InvalidInputError(f"{name} is private: say how private, with --{key}")
    return preset(**given)


KNOWN = ("means", "benchmark", "names")
PART = ("arm", "outcome", "range", "direction", "out_of_range")


def arms_options(command: Any) -> Any:
    """--means or --instance, and --names; or --data with what belongs to it."""
    return instance_options(
        all_options(
            command,
            click.option(
                "--data",
                type=click.Path(),
                help="A file of past outcomes, CSV or Parquet with a row for each participant, "
                "instead of the arms' rates.",
            ),
            click.option("--arm", help="The column of --data that names the arm."),
            click.option("--outcome", help="The column of --data with the outcome."),
            setting_option("range", with_default=False),
            setting_option("direction", with_default=False),
            setting_option("out_of_range", with_default=False),
        )
    )


@dataclass
class Arms:
    """The values of the options of `arms_options`."""

    known: dict[str, Any]
    """--means, --instance and --names."""
    file: str | None
    part: dict[str, Any]
    """The values of the options that belong to --data."""

    @property
    def any(self) -> bool:
        """True if any of the options was given."""
        return _any(self.known) or self.file is not None or _any(self.part)

    @cached_property
    def past(self) -> "dict[str, Floats]":
        """The outcomes in the file of --data."""
        from discreet.past_data import read_past_outcomes

        arm, outcome = self.part["arm"], self.part["outcome"]
        if arm is None or outcome is None:
            raise InvalidInputError(
                "--data needs the names of two columns: --arm, with the arm of each participant, "
                "and "
                "--outcome. Each line of the file is one outcome: turn a table that has a column "
                "for each arm into such lines first"
            )
        return read_past_outcomes(str(self.file), arm, outcome)

    @property
    def how(self) -> tuple[str, str]:
        """Direction, and what outcomes outside the range are."""
        return self.part["direction"] or "max", self.part["out_of_range"] or "refuse"


def _any(options: dict[str, Any]) -> bool:
    return any(value is not None for value in options.values())


def take_arms(options: dict[str, Any]) -> Arms:
    """Take the options of `arms_options` out of all options of a command."""
    known = {key: options.pop(key) for key in KNOWN}
    return Arms(known, options.pop("data"), {key: options.pop(key) for key in PART})


def read_arms(arms: Arms, other: str = "", sigma: float | None = None) -> "Instance":
    """The instance that the options describe; with a σ its arms are Gaussian."""
    if arms.file is None:
        if _any(arms.part):
            raise InvalidInputError(
                "--arm, --outcome, --range, --direction and --out-of-range belong to --data FILE"
            )
        return read_instance(**arms.known, other=f" or as --data FILE{other}", sigma=sigma)
    if sigma is not None:
        raise InvalidInputError("--gaussian is for arms given by --means, not by --data FILE")
    if _any(arms.known):
        raise InvalidInputError(
            "give the arms either by --data FILE, which has their names, or by --means or "
            "--instance (with --names)"
        )
    from discreet.past_data import Sampled

    return Sampled.from_outcomes(arms.past, arms.part["range"], *arms.how)


def read_stdin(line: bool = False) -> str:
    """All that comes on stdin, or its first line; refuses what is no text."""
    try:
        return sys.stdin.readline() if line else sys.stdin.read()
    except UnicodeDecodeError:
        pass  # the error would say what stands there
    raise InvalidInputError("cannot read stdin: it is not text in UTF-8")


def read_number(word: str) -> float:
    """An outcome as a number; the error does not repeat it."""
    with suppress(ValueError):
        return float(word)
    raise InvalidInputError("an outcome must be a number in the range of the protocol")
