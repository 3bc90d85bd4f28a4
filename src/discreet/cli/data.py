"""Arms given by past data in a file: options, and how the arms of a command are
read.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import click

from discreet.cli.options import all_options, instance_options, read_instance
from discreet.cli.respond import read_ends
from discreet.errors import InvalidInputError

if TYPE_CHECKING:
    from discreet.arrays import Floats
    from discreet.instance import Instance

KNOWN = ("means", "benchmark", "names")
PART = ("arm", "outcome", "ends", "direction", "outside")


def arms_options(command: Any) -> Any:
    """--means or --instance, and --names; or --data with what belongs to it."""
    return instance_options(
        all_options(
            command,
            click.option(
                "--data",
                type=click.Path(),
                help="A file of past outcomes, CSV or Parquet with a row for each person, "
                "instead of the arms' rates.",
            ),
            click.option("--arm", help="The column of --data that names the arm."),
            click.option("--outcome", help="The column of --data with the outcome."),
            click.option(
                "--range",
                "ends",
                help="The smallest and the largest outcome that --data may contain.  [default: "
                "0,1]",
            ),
            click.option(
                "--direction",
                help="Whether larger (max) or smaller (min) outcomes are better.  [default: max]",
            ),
            click.option(
                "--outside",
                help="What happens to an outcome outside the range: refuse it, or clip it to the "
                "nearer end.  [default: refuse]",
            ),
        )
    )


@dataclass
class Arms:
    """What the options of `arms_options` say of the arms."""

    known: dict[str, Any]
    """--means, --instance and --names."""
    file: str | None
    part: dict[str, Any]
    """What belongs to --data."""

    @property
    def any(self) -> bool:
        """Whether anything was said."""
        return _any(self.known) or self.file is not None or _any(self.part)

    @cached_property
    def past(self) -> "dict[str, Floats]":
        """The outcomes in the file of --data."""
        from discreet.past import read_outcomes

        arm, outcome = self.part["arm"], self.part["outcome"]
        if arm is None or outcome is None:
            raise InvalidInputError(
                "--data needs the names of two columns: --arm, with the arm of each person, and "
                "--outcome. Each line of the file is one outcome: turn a table that has a column "
                "for each arm into such lines first"
            )
        return read_outcomes(str(self.file), arm, outcome)

    @property
    def ends(self) -> tuple[float, float] | None:
        """What --range says, if anything."""
        return None if self.part["ends"] is None else read_ends(self.part["ends"])

    @property
    def how(self) -> tuple[str, str]:
        """Direction, and what outcomes outside the range are."""
        return self.part["direction"] or "max", self.part["outside"] or "refuse"


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
                "--arm, --outcome, --range, --direction and --outside belong to --data FILE"
            )
        return read_instance(**arms.known, other=f" or as --data FILE{other}", sigma=sigma)
    if sigma is not None:
        raise InvalidInputError("--gaussian is for arms given by --means, not by --data FILE")
    if _any(arms.known):
        raise InvalidInputError(
            "give the arms either by --data FILE, which has their names, or by --means or "
            "--instance (with --names)"
        )
    from discreet.sampled import Sampled

    return Sampled.of(arms.past, arms.ends, *arms.how)
