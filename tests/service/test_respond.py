"""Responses made in a browser: their law, their ε, their words, and that they are made
of nothing but the system's bytes and whole numbers.

Draws come from bytes of a seeded generator, so that every run of a test is the same.
Had the seeds been others, each comparison would fail by chance once in 1e9 (`ALARM`).
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mpmath
import numpy as np
import pytest
from click.testing import CliRunner
from scipy import stats

from discreet import InvalidInputError, Trial, bet_se, ctb_tt, gauss_tt
from discreet.cli import main
from discreet.numerics import bound_one_sided
from discreet.scale import Scale
from discreet.strategies.strategy import Strategy
from discreet.strategies.units import CENTRE_UNITS, FINE_UNITS
from discreet.trials.mechanisms import compute_response_epsilon, find_noise_scale, respond
from discreet.trials.record import response_noise
from discreet.trials.responses import Response
from tests.support.browser import STATIC, Started, call, serving

if TYPE_CHECKING:
    from playwright.sync_api import Page

ALARM = 1e-9
DRAWS = 100_000
FAULTS = {
    "a percent more truth": ("return sent;", "return below(27n, random) ? sent : truth;"),
    "a larger epsilon": ("exact(checked.epsilon)", "exact(checked.epsilon * 1.1)"),
    "the other parity": ("number % 2n === 1n", "number % 2n === 0n"),
    "one case too many": ("random) < numerator", "random) <= numerator"),
    "remainders": ("if (drawn < fair)", "if (true)"),
    "one whole too few": ("wholes > 0n", "wholes > 1n"),
    "another share": ("- low * denominator", ""),
    "a wider bell": ("2n * top * bottom", "3n * top * bottom"),
    "two zeros": ("if (size > 0n) return", "return"),
}
"""Mistakes that somebody could make, each a change of the script's text."""
TAKEN = """
const taken = (numbers) => {
  let at = 0;
  return (count) => {
    if (at + count > numbers.length) throw new Error("there are no more bytes");
    return numbers.slice(at, (at += count));
  };
};
"""
"""A source of bytes that are given."""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the scripts, of others with a mistake each, and of seeded
    bytes.
    """
    folder = tmp_path_factory.mktemp("lab")
    right = (STATIC / "respond.js").read_text()
    for name, (old, new) in {"right": ("", ""), **FAULTS}.items():
        script = folder / module(name).lstrip("/")
        script.parent.mkdir()
        assert old in right
        script.write_text(right.replace(old, new, 1))
        script.with_name("numbers.js").write_text((STATIC / "numbers.js").read_text())
    (folder / "bytes").write_bytes(np.random.default_rng(7).bytes(8_000_000))
    with serving(folder) as address:
        yield address


def module(name: str) -> str:
    """Where the script with this mistake is, or the right one."""
    return f"/{name.replace(' ', '-')}/respond.js"


@pytest.fixture(scope="module")
def lab_page(browser: Started, lab: str) -> "Iterator[Page]":
    """A page where they can be imported."""
    with browser.page() as made:
        made.goto(lab)
        yield made


def counts(page: "Page", draw: str, fault: str = "right", draws: int = DRAWS) -> Counter[int]:
    """How often an expression of `module` and `random` has which value."""
    code = f"""async (module) => {{
      const {{ respond, randomise, chanceOfExp, gaussian }} = await import(module);
      const pool = new Uint8Array(await (await fetch("/bytes")).arrayBuffer());
      let at = 0;
      const random = (count) => {{
        if (at + count > pool.length) throw new Error("there are no more bytes");
        return pool.subarray(at, (at += count));
      }};
      const found = {{}};
      for (let done = 0; done < {draws}; done++) {{
        const value = Number({draw});
        found[value] = (found[value] ?? 0) + 1;
      }}
      return found;
    }}"""
    found = page.evaluate(code, module(fault))
    return Counter({int(value): times for value, times in found.items()})


def p_value(seen: Counter[int], law: dict[int, float]) -> float:
    """Of the least likely count among these, and 0 if a value was seen that cannot
    be.
    """
    if set(seen) - set(law):
        return 0.0
    draws = sum(seen.values())
    return min(float(stats.binomtest(seen[one], draws, law[one]).pvalue) for one in law)


def law_of(reward: float, epsilon: float, middle: float | None) -> dict[int, float]:
    """The chance of each value that may be sent, in 30 digits before the last step."""
    units = [0, 1] if middle is None else [0, round(middle * CENTRE_UNITS), CENTRE_UNITS]
    levels = [Fraction(unit, units[-1]) for unit in units]
    at = max(place for place, level in enumerate(levels[:-1]) if level <= Fraction(reward))
    share = (Fraction(reward) - levels[at]) / (levels[at + 1] - levels[at])
    rounded = {at: 1 - share, at + 1: share}
    chances = [rounded.get(place, Fraction(0)) for place in range(len(units))]
    with mpmath.workdps(30):
        more = mpmath.exp(mpmath.mpf(epsilon)) - 1
        lie = 1 / (more + len(units))
        sent = [lie * (1 + more * one.numerator / one.denominator) for one in chances]
    return {unit: float(one) for unit, one in zip(units, sent, strict=True)}


# --- the law --------------------------------------------------------------------------


def test_responses_have_their_law(lab_page: "Page") -> None:
    """Each value as often as it should be, false alarm 1e-9 a count."""
    for outcome, epsilon, middle in [(0.3, 0.1, None), (0.7, 1.5, 0.25)]:
        settings = json.dumps({"epsilon": epsilon, "middle_level": middle})
        seen = counts(lab_page, f"respond({outcome}, {settings}, random).value")
        assert p_value(seen, law_of(outcome, epsilon, middle)) > ALARM, settings


def test_a_response_keeps_its_epsilon(lab_page: "Page") -> None:
    """An audit: no value is more than e^ε times as likely for one outcome than for
    another, by exact bounds of 1e-9 each; and it is not far from it.
    """
    for middle in (None, 0.5):
        settings = json.dumps({"epsilon": 2.0, "middle_level": middle})
        seen = [counts(lab_page, f"respond({one}, {settings}, random).value") for one in (0, 1)]
        for outcome in (0, 1):
            assert p_value(seen[outcome], law_of(outcome, 2.0, middle)) > ALARM, settings
        assert 1.9 < audited(seen) <= 2.0, settings


def audited(seen: list[Counter[int]]) -> float:
    """A lower bound on the ε with which the worst and the best outcome are sent."""
    best = max(seen[1])
    least = bound_one_sided(seen[1][best], seen[1].total(), ALARM)[0]
    return math.log(least / bound_one_sided(seen[0][best], seen[0].total(), ALARM)[1])


def test_a_wrong_law_is_found(lab_page: "Page") -> None:
    small = ["a percent more truth", "a larger epsilon"]
    gross = ["the other parity", "one case too many"]
    for fault in (*small, *gross):
        draws = DRAWS if fault in small else DRAWS // 10
        seen = counts(lab_page, "respond(0, { epsilon: 1 }, random).value", fault, draws)
        assert p_value(seen, law_of(0.0, 1.0, None)) < ALARM, fault
    draw = "respond({}, {{ epsilon: 2 }}, random).value"
    too_much = [counts(lab_page, draw.format(one), small[1], 40_000) for one in (0, 1)]
    assert audited(too_much) > 2.0


def test_chances_of_exponentials(lab_page: "Page") -> None:
    """Binomial limits of 1e-9 each, for fractions of any size."""
    for top, bottom in [(0, 1), (1, 3), (1, 1), (5, 2), (7, 1), (2**60 + 1, 2**61)]:
        seen = counts(lab_page, f"chanceOfExp([{top}n, {bottom}n], random)", draws=10_000)
        yes = math.exp(-top / bottom)
        assert p_value(seen, {1: yes, 0: 1 - yes}) > ALARM


def test_a_large_epsilon_is_quick_and_truthful(lab_page: "Page") -> None:
    """Were a lie sent with chance e^-50, one of these would be with 4e-18."""
    for epsilon in (50, 1000, 1e9):
        draw = f"respond(1, {{ epsilon: {epsilon}, middle_level: 0.5 }}, random).value"
        assert set(counts(lab_page, draw, draws=2000)) == {CENTRE_UNITS}


def test_a_lie_needs_every_whole_of_a_large_epsilon(lab_page: "Page") -> None:
    """With ε = 50 a lie is proposed (1), and there must be 50 trials of chance e^-1
    (0, 0, 1 makes one succeed, 0, 1 fail) and one of chance 1 (0). If any fails the
    next proposal is the truth (0).
    """
    good, bad = [0, 0, 1], [0, 1]
    tapes = [[1, *good * 50, 0]]
    tapes += [[1, *good * place, *bad, 0] for place in range(50)]
    code = f"""async ([module, tapes]) => {{
      {TAKEN}
      const {{ randomise }} = await import(module);
      return tapes.map((one) => randomise(0, 2, [50n, 1n], taken(one)));
    }}"""
    wanted = [1, *[0] * 50]
    assert lab_page.evaluate(code, [module("right"), tapes]) == wanted
    assert lab_page.evaluate(code, [module("one whole too few"), tapes]) != wanted


# --- whole numbers --------------------------------------------------------------------


def test_whole_numbers_are_all_alike(lab_page: "Page") -> None:
    """Not by chance: of all bytes, and all pairs of them, as many make each number."""
    code = """async ([module, limits]) => {
      const { below } = await import(module);
      const fair = (limit) => {
        const found = new Map();
        const count = limit < 256 ? 1 : 2;
        for (let pattern = 0; pattern < 256 ** count; pattern++) {
          let left = [[pattern], [pattern >> 8, pattern & 255]][count - 1];
          try {
            const drawn = below(BigInt(limit), (wanted) => {
              if (left.length !== wanted) throw new Error("refused");
              return left.splice(0);
            });
            found.set(drawn, (found.get(drawn) ?? 0) + 1);
          } catch (error) {
            if (error.message !== "refused") throw error;
          }
        }
        const whole = found.size === limit && Math.max(...[...found.keys()].map(Number)) < limit;
        return whole && new Set(found.values()).size === 1;
      };
      return limits.every(fair);
    }"""
    limits = [*range(1, 256, 2), 2, 128, 254, 256, 1000, 32767, 40000]
    assert lab_page.evaluate(code, [module("right"), limits])
    assert not lab_page.evaluate(code, [module("remainders"), limits])


def test_outcomes_are_rounded_by_the_very_fraction(lab_page: "Page") -> None:
    """Not by chance: the first bytes are the largest number that rounds up, or the
    next, in the fraction that Python has; then no lie. So rewards have the same bits.
    """
    rng = np.random.default_rng(3)
    cases, wanted = list[Any](), list[int]()
    for _ in range(200):
        low, high = sorted(rng.normal(size=2) * 10.0 ** rng.integers(-3, 4))
        direction, outcome = str(rng.choice(["max", "min"])), float(rng.uniform(low, high))
        middle = None if rng.random() < 0.4 else int(rng.integers(16, 1009)) / CENTRE_UNITS
        reward = Fraction(Scale(low, high, direction).convert_to_reward(outcome))
        units = [0, 1] if middle is None else [0, round(middle * CENTRE_UNITS), CENTRE_UNITS]
        at = int(middle is not None and reward >= Fraction(middle))
        below, above = units[at : at + 2]
        top = reward.numerator * units[-1] - below * reward.denominator
        bottom = (above - below) * reward.denominator
        length = (len(f"{bottom:x}") + 1) // 2
        settings = {"epsilon": 1e9, "middle_level": middle, "low": low, "high": high}
        for drawn, level in ((top - 1, at + 1), (top, at)):
            tape = [*drawn.to_bytes(length), level]
            cases.append([outcome, {**settings, "direction": direction}, tape])
            wanted.append(units[level])
    code = f"""async ([module, cases]) => {{
      {TAKEN}
      const {{ respond }} = await import(module);
      return cases.map(([outcome, settings, tape]) => {{
        try {{ return respond(outcome, settings, taken(tape)).value; }} catch {{ return null; }}
      }});
    }}"""
    assert lab_page.evaluate(code, [module("right"), cases]) == wanted
    assert lab_page.evaluate(code, [module("another share"), cases]) != wanted


def test_chance_comes_from_the_systems_bytes_alone(page: "Page", scripts: str) -> None:
    """With everything broken that draws or rounds, it still answers; with no bytes of
    the system's it does not.
    """
    code = """async () => {
      const { respond } = await import("/respond.js");
      for (const name of ["random", "exp", "expm1", "log", "pow", "round", "floor"]) {
        Math[name] = () => { throw new Error(name); };
      }
      const all = [{}, { middle_level: 0.5 }, { gamma: 0.1, noise: 3 }];
      const values = all.map((more) => respond(0.3, { epsilon: 0.7, ...more }).value);
      crypto.getRandomValues = () => { throw new Error("no bytes"); };
      return [values, all.map((more) => {
        try { return respond(0.3, { epsilon: 0.7, ...more }); } catch (one) { return one.message; }
      })];
    }"""
    page.goto(scripts)
    values, refused = page.evaluate(code)
    assert (values[0] in (0, 1), values[1] in (0, 512, 1024)) == (True, True)
    assert refused == ["no bytes"] * 3


# --- Gaussian noise -------------------------------------------------------------------


def test_discrete_gaussian_noise(lab_page: "Page") -> None:
    """Chi-squared against exp(-x²/2s²) with s = 3/2, tails pooled; false alarm 1e-9."""
    for fault in ("right", "a wider bell", "two zeros"):
        seen = counts(lab_page, "gaussian([3n, 2n], random)", fault, draws=10_000)
        assert (bell_p_value(seen, Fraction(0)) > ALARM) == (fault == "right"), fault


def bell_p_value(seen: Counter[int], reward: Fraction) -> float:
    """Chi-squared of what should be a reward in units, rounded at random to one of the
    two whole numbers around it, with discrete Gaussian noise of s = 3/2.
    """
    weights = {x: math.exp(-(x**2) / 4.5) for x in range(-60, 61)}
    whole, draws = math.floor(reward), sum(seen.values())
    up = float(reward - whole)
    inner = range(-4, 6)
    mixed = [(1 - up) * weights[x] + up * weights[x - 1] for x in inner]
    expected = [draws * one / sum(weights.values()) for one in mixed]
    found = [seen[whole + x] for x in inner]
    rest = draws - sum(found), draws - sum(expected)
    return float(stats.chisquare([*found, rest[0]], [*expected, rest[1]]).pvalue)


def test_gaussian_responses_have_their_law(lab_page: "Page") -> None:
    """Chi-squared on the fine grid if there were next to no noise, Kolmogorov's test
    against the normal law with noise that is used; false alarm 1e-9 each.
    """
    little = json.dumps({"epsilon": 1.0, "gamma": 1e-5, "noise": 1.5 / 2**FINE_UNITS})
    seen = counts(lab_page, f"respond(0.3, {little}, random).value", draws=5000)
    assert bell_p_value(seen, Fraction(0.3) * 2**FINE_UNITS) > ALARM
    noise = find_noise_scale(1.0, 1e-5)
    settings = json.dumps({"epsilon": 1.0, "gamma": 1e-5, "noise": noise})
    seen = counts(lab_page, f"respond(0.3, {settings}, random).value", draws=5000)
    z = (np.array(list(seen.elements())) / 2**FINE_UNITS - 0.3) / noise
    assert stats.kstest(z, "norm").pvalue > ALARM


# --- words ----------------------------------------------------------------------------

SETTINGS: list[dict[str, Any]] = [
    {"epsilon": 1.0},
    {"epsilon": 1e-05, "range": (0, 10), "direction": "min"},
    {"epsilon": 50.0, "range": (-2.5, 1e20)},
    {"epsilon": 3.0, "middle_level": 0.5},
    {"epsilon": 1.5, "middle_level": 17 / 1024, "range": (1e-7, 1), "direction": "min"},
    {"epsilon": 0.1, "gamma": 1e-06},
    {"epsilon": 2.0, "gamma": 0.25, "range": (0, 10)},
]


def in_page(settings: dict[str, Any]) -> dict[str, Any]:
    """The same settings as the page has them."""
    low, high = settings.get("range", (0, 1))
    rest = {name: one for name, one in settings.items() if name != "range"}
    noise = {}
    if "gamma" in settings:
        noise = {"noise": find_noise_scale(settings["epsilon"], settings["gamma"])}
    return {**rest, "low": low, "high": high, **noise}


def test_words_are_those_of_python(script_page: "Page") -> None:
    for settings in SETTINGS:
        outcome = settings.get("range", (0, 1))[1]
        here = call(script_page, "respond.js", "respond", outcome, in_page(settings))
        word = call(script_page, "respond.js", "wordOf", here)
        python = respond(outcome, **settings)
        assert str(Response.parse(word)) == word
        assert replace(Response.parse(word), value=python.value) == python
        again = call(script_page, "respond.js", "parse", f" {python}\n")
        assert call(script_page, "respond.js", "wordOf", again) == str(python)
        assert again["mechanism"] == here["mechanism"] == python.mechanism


REFUSED = [
    *("0.3", "1", "", "rr/1.0", "rr/1.0/2", "rr/1.0/-1", "rr/0.5/1.0/1", "rr/x/1", "rr//1"),
    *("rr/1.0/1@0:1", "rr/1.0/1@1:0:max", "rr/1.0/1@0:1:up", "rr/1.0/1@0:1:max@", "rr/1.0/0.5"),
    *("levels/3.0/0.5/1", "levels/3.0/512", "levels/3.0/0.001/512", "gauss/1.0/5", "laplace/1.0/5"),
    *("constructor/1.0/1", "gauss/1.0/0.5/0.5"),
]


def test_what_is_no_response_is_refused_as_in_python(script_page: "Page") -> None:
    for word in REFUSED:
        with pytest.raises(InvalidInputError, match="not a randomised response"):
            Response.parse(word)
        assert error(script_page, "parse", word).startswith("This is not a randomised response")


def error(page: "Page", function: str, *arguments: Any) -> str:
    """What a function says that refuses."""
    code = """async ([name, given]) => {
      try { (await import("/respond.js"))[name](...given); } catch (error) { return error.message; }
    }"""
    return str(page.evaluate(code, [function, list(arguments)]))


LOCAL: dict[str, tuple[Strategy, dict[str, Any]]] = {
    "ctb-tt": (ctb_tt(0.7, 0.05), {}),
    "bits": (bet_se(0.05, 1.0, trust="local"), {"range": (0, 10), "direction": "min"}),
    "levels": (bet_se(0.05, 3.0, trust="local", outcomes="numbers"), {"out_of_range": "clip"}),
    "gauss": (gauss_tt(2.0, 0.01, 0.05), {"range": (0.5, 10)}),
}


def test_trials_take_them(script_page: "Page", tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/trials.db"
    for name, (strategy, options) in LOCAL.items():
        trial = Trial.create(url, name, ["A", "B"], strategy, 100, **options)
        batch = trial.ask(3)
        settings = settings_of(trial, batch.middle_level)
        for one in batch.assignments:
            made = call(script_page, "respond.js", "respond", 0.75, settings)
            word = call(script_page, "respond.js", "wordOf", made)
            told = CliRunner().invoke(main, ["trial", "tell", name, one.id, word, "--url", url])
            assert (told.exit_code, told.output[:8]) == (0, "Accepted"), told.output
        assert trial.verify().intact
        trial.close()


def settings_of(trial: Trial, middle: float | None) -> dict[str, Any]:
    """What a page has to know of a trial."""
    protocol, strategy = trial.protocol, trial.protocol.strategy
    return {
        **{"epsilon": strategy.epsilon, "gamma": strategy.gamma, "middle_level": middle},
        **{"low": protocol.low, "high": protocol.high, "direction": protocol.direction},
        **{"out_of_range": protocol.out_of_range, "noise": response_noise(strategy)},
    }


# --- for people -----------------------------------------------------------------------


def test_odds_are_those_of_the_mechanism(script_page: "Page") -> None:
    for epsilon in (1e-6, 0.1, 1.0, 3.0, 20.0):
        for levels, middle in ((2, None), (3, 0.5)):
            odds = call(script_page, "respond.js", "odds", epsilon, levels)
            units = law_of(1.0, epsilon, middle)
            assert [odds["other"], odds["truth"]] == pytest.approx(
                [units[0], units[max(units)]], rel=1e-14
            )
            kept = compute_response_epsilon(epsilon, middle=middle)
            assert math.log(odds["truth"] / odds["other"]) == pytest.approx(kept, rel=1e-6)
    assert call(script_page, "respond.js", "odds", 1e9) == {"truth": 1, "other": 0}


IMPOSSIBLE: list[tuple[list[Any], str]] = [
    ([0.731317, {}], "epsilon must be a number"),
    ([0.731317, {"epsilon": "1"}], "epsilon must be a number"),
    ([0.731317, {"epsilon": 1e10}], "epsilon must be a number"),
    ([7.31317, {"epsilon": 1}], "must be a number from 0 to 1"),
    (["0.731317", {"epsilon": 1}], "must be a number from 0 to 1"),
    ([None, {"epsilon": 1, "out_of_range": "clip"}], "must be a number from 0 to 1"),
    ([0.731317, {"epsilon": 1, "out_of_range": "keep"}], "refuse or clip"),
    ([0.731317, {"epsilon": 1, "direction": "up"}], "max or min"),
    ([0.731317, {"epsilon": 1, "low": 2, "high": 1}], "range must be two numbers"),
    ([0.731317, {"epsilon": 1, "low": 0, "high": "1"}], "range must be two numbers"),
    ([0.731317, {"epsilon": 2, "middle_level": 0.3}], "level that was announced"),
    ([0.731317, {"epsilon": 2, "middle_level": 1 / 1024}], "level that was announced"),
    ([0.731317, {"epsilon": 2, "middle_level": 0.5, "gamma": 0.1}], "not both"),
    ([0.731317, {"epsilon": 2, "gamma": 1}], "strictly between 0 and 1"),
    ([0.731317, {"epsilon": 2, "gamma": 0.1}], "need noise"),
]


def test_what_cannot_be_is_refused_in_plain_words(script_page: "Page") -> None:
    for given, words in IMPOSSIBLE:
        said = error(script_page, "respond", *given)
        assert words in said
        assert "731317" not in said
        assert re.fullmatch(r"[A-Za-z].*\.", said)


def test_what_lies_outside_is_clipped_if_that_is_the_protocol(script_page: "Page") -> None:
    settings = {"epsilon": 1e9, "low": 0, "high": 10, "out_of_range": "clip"}
    for outcome, value in ((-3, 0), (99, 1)):
        found = call(script_page, "respond.js", "respond", outcome, settings)
        assert found["value"] == value


def test_typed_numbers_are_read_and_nothing_else(script_page: "Page") -> None:
    texts = ["7", " 0.25 ", "-1e3", "+.5", "3."]
    read = [call(script_page, "respond.js", "readNumber", text) for text in texts]
    assert read == [float(text) for text in texts]
    for text in ("", " ", "0x10", "Infinity", "731317,5", "731317 mg", "1e", "--1", "1 2"):
        assert error(script_page, "readNumber", text).startswith("Type a number")
