"""The family of docs/contributing.md works everywhere once its files are there."""

import contextlib
import io
import re
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import discreet
import discreet.simulation
from discreet import Bernoulli, InvalidInputError, Strategy, simulate
from discreet.jit import marks
from discreet.simulation import compile as compiling
from discreet.simulation.laws import make_bernoulli_laws
from discreet.simulation.paths import run_path
from discreet.strategies import estimators, presets
from discreet.strategies.run import Randomisation, Run, make_run
from tests.support.tape import Tape

PAGE = Path(__file__).parent.parent / "docs" / "contributing.md"
HEADING = "## Example: a family of strategies"
BLOCK = re.compile(
    r"^```\{code-block\} \w+\n:caption: ([^\n]*)\n\n(.*?)^```$", re.MULTILINE | re.DOTALL
)
BLOCKS: dict[str, str] = dict(BLOCK.findall(PAGE.read_text().partition(HEADING)[2]))
SOURCE = "src/discreet/"
FILES = {
    name.removeprefix(SOURCE): text
    for name, text in BLOCKS.items()
    if "steady" in name and name.endswith(".py")
}
OURS = ("discreet.strategies.steady", "discreet.simulation.steady")
PACKAGES = (discreet.strategies, discreet.simulation)
MEANS = [0.75, 0.5, 0.3]


@pytest.fixture(scope="module")
def steady(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Strategy]:
    """The strategy of the page, with its files beside those of discreet for as long as
    these tests take: they share what is compiled.
    """
    folder = tmp_path_factory.mktemp("page")
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    with pytest.MonkeyPatch.context() as monkeypatch:
        put(monkeypatch, folder)
        yield presets.PRESETS["steady-se"](epsilon=1.0, delta=0.1)
    forget()


def put(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """The page's files in place."""
    for package in PACKAGES:
        here = str(folder / package.__name__.removeprefix("discreet."))
        monkeypatch.setattr(package, "__path__", [*package.__path__, here])
    add_rows(monkeypatch, estimators.ESTIMATORS, "estimators.py, in ESTIMATORS", vars(estimators))
    add_rows(monkeypatch, presets.PARTS, "presets.py, in PARTS", vars(presets))
    space = dict(vars(presets))
    exec(BLOCKS[f"{SOURCE}strategies/presets.py"], space)
    add_rows(monkeypatch, presets.PRESETS, "presets.py, in PRESETS", space)
    monkeypatch.setattr(compiling, "compile_kernel", uncached(compiling.compile_kernel))


def uncached(usual: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Compiles the page's functions for these tests alone: files of a test leave
    nothing in the user's cache.
    """
    own = compiling.Compiler()
    own.cache = False
    return lambda function: (own.compile if function.__module__.startswith(OURS) else usual)(
        function
    )


def add_rows(
    monkeypatch: pytest.MonkeyPatch, table: dict[str, Any], caption: str, space: dict[str, Any]
) -> None:
    """The rows of a block in a table, until the test is over."""
    for name, row in eval(f"{{{BLOCKS[f'{SOURCE}strategies/{caption}']}}}", dict(space)).items():
        monkeypatch.setitem(table, name, row)


def forget() -> None:
    """Nothing of the page is left behind."""
    for name in [name for name in sys.modules if name.startswith(OURS)]:
        del sys.modules[name]
    for function in [function for function in marks if function.__module__.startswith(OURS)]:
        del marks[function]
    for package in PACKAGES:
        if hasattr(package, "steady"):
            del package.steady


def test_a_family_is_two_modules_and_rows() -> None:
    assert list(FILES) == ["strategies/steady.py", "simulation/steady.py"]
    rest = {name.split(",")[0].removeprefix(SOURCE) for name in BLOCKS if name.startswith(SOURCE)}
    assert rest - {*FILES} == {"strategies/estimators.py", "strategies/presets.py"}


@pytest.mark.slow
def test_compiled_and_plain_runs_are_equal(
    steady: Strategy, monkeypatch: pytest.MonkeyPatch
) -> None:
    fast = simulate(Bernoulli(MEANS), steady, runs=40, seed=3)
    monkeypatch.setattr(compiling, "compile_kernel", compiling.leave_uncompiled)
    slow = simulate(Bernoulli(MEANS), steady, runs=40, seed=3)
    assert fast.unstopped == 0
    for column in ("samples", "recommendation", "stopped", "rounds", "pulls"):
        np.testing.assert_array_equal(getattr(fast, column), getattr(slow, column))
    assert len({*fast.samples.tolist()}) > 5


@pytest.mark.parametrize("cap", [130, 5000])
def test_a_live_run_decides_as_the_simulated_one(steady: Strategy, cap: int) -> None:
    stops = 0
    for seed in range(8):
        live, arms, tape = played(steady, cap, seed)
        pulls = np.zeros(len(MEANS), np.int64)
        loop = import_module(OURS[1])
        found = loop.run_steady(
            tape, make_bernoulli_laws(np.array(MEANS)), steady.epsilon, steady.delta, cap, pulls
        )
        assert (live.samples, live.stopped) == (found.samples, found.stopped)
        assert live.recommendation == found.recommendation
        assert [arms.count(arm) for arm in range(len(MEANS))] == list(pulls)
        assert not tape.sums
        assert not tape.noise
        stops += live.stopped
    assert stops == (8 if cap == 5000 else 0)


def played(strategy: Strategy, cap: int, seed: int) -> tuple[Run, list[int], Tape]:
    """A live run on random bits and noise, written and read again at every release; its
    arms, and the tape of it.
    """
    rng, tape = np.random.default_rng(seed), Tape()
    run = make_run(strategy, len(MEANS), cap, strategy.delta)
    arms: list[int] = []
    while not run.is_finished:
        while (place := run.assign_next()) is not None:
            arms.append(place.arm)
        sums = []
        for arm, _, size in run.list_due():
            tape.sums.append((size, float(rng.binomial(size, MEANS[arm]))))
            tape.noise.append(float(rng.laplace(0.0, 1.0)))
            sums.append(tape.sums[-1][1] + tape.noise[-1])
        run.release(sums)
        again = make_run(strategy, len(MEANS), cap, strategy.delta)
        again.load(run.dump())
        run = again
    return run, arms, tape


@pytest.mark.parametrize("cap", [130, 5000])
def test_shuffled_places_lead_to_the_same_decisions(steady: Strategy, cap: int) -> None:
    """Dealt backwards, with the sums of the run in order."""
    for seed in range(3):
        expected, arms, tape = played(steady, cap, seed)
        run = make_run(
            steady, len(MEANS), cap, steady.delta, randomisation=Randomisation("shuffled")
        )
        dealt: list[int] = []
        while not run.is_finished:
            run.open_round()
            while place := run.assign_next(lambda left: max(np.flatnonzero(left).tolist())):
                dealt.append(place.arm)
            run.release([drawn(tape) for _ in run.list_due()])
        assert dealt != arms
        assert sorted(dealt) == sorted(arms)
        assert run.view_arms() == expected.view_arms()
        assert (run.samples, run.stopped) == (expected.samples, expected.stopped)
        assert run.recommendation == expected.recommendation


def test_a_shuffled_round_is_released_below_a_lower_cap(steady: Strategy) -> None:
    run = make_run(steady, len(MEANS), 1000, steady.delta, randomisation=Randomisation("shuffled"))
    people = run.open_round().participants
    for _ in range(people):
        assert run.assign_next() is not None
    waiting = run.list_due()
    run.set_cap(10)
    assert run.list_due() == waiting != []
    again = make_run(steady, len(MEANS), 10, steady.delta, randomisation=Randomisation("shuffled"))
    again.load(run.dump())
    assert again.list_due() == waiting
    run.release([batch.size / 2 for batch in waiting])
    assert run.is_finished
    run.set_cap(people + 1)
    assert run.is_finished, "no round fits"
    run.set_cap(2 * people)
    assert run.needs_round
    assert run.open_round().round == 2


def drawn(tape: Tape) -> float:
    """The next released sum on the tape."""
    return tape.sums.pop(0)[1] + tape.noise.pop(0)


@pytest.mark.slow
def test_it_errs_less_often_than_it_may(steady: Strategy) -> None:
    """500 runs at δ = 0.1: more than 83 errors would have a chance below 1e-6 if the
    error rate were at most δ.
    """
    results = simulate(Bernoulli([0.55, 0.45]), steady, runs=500, seed=1)
    assert results.unstopped == 0
    assert results.errors <= 83


def test_a_radius_that_is_far_too_small_is_seen(
    steady: Strategy, monkeypatch: pytest.MonkeyPatch
) -> None:
    decide = import_module(OURS[0])
    monkeypatch.setattr(decide, "radius", lambda *_: 1e-9)
    monkeypatch.setattr(compiling, "compile_kernel", compiling.leave_uncompiled)
    assert simulate(Bernoulli([0.55, 0.45]), steady, runs=500, seed=1).errors > 83


@pytest.mark.slow
def test_the_session_prints_what_the_page_says(
    steady: Strategy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(BLOCKS["a session"], {})
    assert out.getvalue() == BLOCKS["what it prints"]


@pytest.mark.slow
def test_what_else_asks_for_a_family(steady: Strategy) -> None:
    """Plans and audits need nothing more; the way of one run is refused, not a
    crash.
    """
    found = discreet.plan(Bernoulli([0.9, 0.3]), [1.0], 0.1, strategies=[steady], runs=20)
    assert found.per_epsilon[0].correct > 0.5
    assert (
        discreet.audit_correctness(steady, runs=40, instances={"two": Bernoulli([0.8, 0.3])})
        is not None
    )
    assert discreet.audit_privacy(steady, runs=300) is not None
    with pytest.raises(InvalidInputError, match="the path of a run cannot be drawn for steady-se"):
        run_path(Bernoulli(MEANS), steady)
    with pytest.raises(InvalidInputError, match="takes no other sampling rule"):
        steady.with_(sampling="top-two")
