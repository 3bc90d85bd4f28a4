"""`discreet respond`: one outcome, randomised where the person is."""

import sys
from contextlib import suppress

import click

from discreet.cli.options import answer, answer_options, read_ends
from discreet.errors import InvalidInputError

range_option = click.option(
    "--range",
    "ends",
    default="0,1",
    show_default=True,
    help="The smallest and the largest outcome.",
)
direction_option = click.option(
    "--direction", default="max", show_default=True, help="Which outcomes are better: max or min."
)
out_of_range_option = click.option(
    "--out-of-range",
    default="refuse",
    show_default=True,
    help="What happens to an outcome outside the range: refuse it, or clip it to the nearer end.",
)


@click.command()
@click.option("--epsilon", type=float, required=True, help="How private it is (ε).")
@click.option(
    "--outcome", type=str, required=True, help="The person's outcome; - reads it from stdin."
)
@click.option("--gamma", type=float, help="The γ of the trial's (ε, γ)-privacy, with gauss-tt.")
@click.option(
    "--middle-level",
    "middle",
    type=float,
    help="The middle level that a trial of numbers announces with each assignment.",
)
@range_option
@direction_option
@out_of_range_option
@answer_options
def respond(
    epsilon: float,
    outcome: str,
    gamma: float | None,
    middle: float | None,
    ends: str,
    direction: str,
    out_of_range: str,
    as_json: bool,
) -> None:
    """Randomise one outcome where the person is. Only what this command prints may
    leave that place.
    """
    from discreet.trials.mechanisms import respond as randomise

    word = read_stdin(line=True) if outcome == "-" else outcome
    scale = (read_ends(ends), direction, out_of_range)
    response = randomise(read_number(word), epsilon, gamma, *scale, middle)
    levels = {
        "mechanism": response.mechanism,
        "epsilon": response.epsilon,
        "gamma": response.gamma,
        "middle": response.middle,
    }
    found = {"response": str(response), **levels, "value": response.value}
    if not answer(found, as_json):
        click.echo(str(response))


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
