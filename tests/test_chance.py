"""Nothing is left to chance: what tests draw is the same in every run."""

import ast
import math
import os
import re
from collections import Counter
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from scipy import stats

from discreet import Trial, bet_se, respond
from discreet.strategies.run import Totals
from discreet.trials import mechanisms, randomisation, responses
from tests.support.chance import SEEDED, chance

SOURCE = Path(randomisation.__file__).parent.parent
UNIQUE = {
    *("cli/trial", "client/http", "files"),
    *("service/auth", "service/middleware", "service/pages/base"),
    *("trials/record", "trials/store/tokens", "trials/transcript"),
}
"""Where it makes what nobody else has, or pauses: nothing of a trial hangs on it."""
ALARM = 1e-9


def drawn() -> list[object]:
    """Something of each kind that is drawn."""
    return [
        randomisation.draw_key(),
        *(responses.to_units(0.3, 1) for _ in range(40)),
        *(responses.to_level(0.3, 0.5) for _ in range(40)),
        mechanisms.add_laplace_noise(Totals(5, 6), 1.0, 2**20),
        mechanisms.add_gaussian_noise(Totals(5), 3.0, 2**20),
        respond(0.5, 1.0, 0.1).value,
        *(respond(0.5, 1.0).value for _ in range(40)),
        *(respond(0.5, 1.0, middle_level=0.5).value for _ in range(40)),
    ]


def test_a_seed_decides_all_that_is_drawn(tmp_path: Path) -> None:
    """Of a live trial too."""
    found = []
    for turn, seed in enumerate(("one", "one", "two")):
        with chance.within(seed):
            trial = Trial.create(
                f"sqlite:///{tmp_path}/{turn}.db", "dose", ["a", "b"], bet_se(0.1, 1.0), 400
            )
            while people := trial.ask(50).assignments:
                trial.tell_many({one.id: 0.3 for one in people})
            events = trial.transcript()["events"]
            trial.close()
        sums = [one["sum"] for event in events for one in event.get("releases", [])]
        with chance.within(seed):
            found.append((drawn(), sums, [event.get("keys") for event in events]))
    assert found[0] == found[1]
    assert all(one != other for one, other in zip(found[0], found[2], strict=True))


def test_the_seed_is_the_name_of_the_test(request: pytest.FixtureRequest) -> None:
    """However many tests came before: the first key of this one."""
    key = randomisation.draw_key()
    with chance.within(request.node.nodeid):
        assert key == randomisation.draw_key()
    assert randomisation.draw_key() != key


@pytest.fixture(scope="module")
def shared() -> bytes:
    return randomisation.draw_key()


def test_what_tests_share_has_a_seed_of_its_own(shared: bytes) -> None:
    with chance.within("tests/test_chance.py shared 0"):
        assert shared == randomisation.draw_key()


@pytest.mark.real_chance
def test_those_who_want_it_have_real_chance() -> None:
    assert chance.seed is None
    assert drawn()[0] != drawn()[0]
    made = mechanisms._laplace(1.0, 2**20)[0]
    made.law = None
    assert made(5) != made(5)


def test_forks_have_chance_of_their_own_and_always_the_same() -> None:
    found = [fork_and_draw() for _ in range(2)]
    with chance.within(str(chance.seed)):
        assert [fork_and_draw() for _ in range(2)] == found
    assert len({*found, randomisation.draw_key()}) == 3


def fork_and_draw() -> bytes:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, randomisation.draw_key())
        os._exit(0)
    os.waitpid(child, 0)
    key = os.read(read, 32)
    os.close(read)
    os.close(write)
    return key


# --- the laws are those of OpenDP, as tests/trials/test_mechanisms.py says ------------


def test_noise_has_its_law() -> None:
    epsilon, draws, inner = 0.5, 4000, range(-8, 9)
    pairs = [mechanisms.add_laplace_noise(Totals(0, 0), epsilon, 1) for _ in range(draws)]
    law = [math.tanh(epsilon / 2) * math.exp(-epsilon * abs(k)) for k in inner]
    for column in (
        [one.sum for one in pairs],
        [one.near for one in pairs],
        [mechanisms.add_laplace(0, epsilon, 1)[0] for _ in range(draws)],
    ):
        counts = Counter(column)
        seen = [counts[k] for k in inner]
        expected = [*(draws * one for one in law), draws * (1 - sum(law))]
        assert stats.chisquare([*seen, draws - sum(seen)], expected).pvalue > ALARM
    both = np.array([(one.sum, one.near) for one in pairs])
    assert abs(np.corrcoef(both.T)[0, 1]) < 0.1


def test_gaussian_noise_has_its_law() -> None:
    draws = 3000
    sums = [mechanisms.add_gaussian_noise(Totals(0), 2.0, 2**10).sum for _ in range(draws)]
    assert stats.kstest(np.array(sums) / 2**11, "norm").pvalue > ALARM
    scale = mechanisms.find_noise_scale(1.0, 0.05)
    sent = [respond(0.0, 1.0, 0.05).value for _ in range(draws)]
    assert stats.kstest(np.array(sent) / 2**20 / scale, "norm").pvalue > ALARM


@pytest.mark.parametrize("level", [0, 1, 2])
def test_responses_have_their_law(level: int) -> None:
    epsilon, draws = 1.0, 3000
    seen = Counter(respond(level / 2, epsilon, middle_level=0.5).value for _ in range(draws))
    other = draws / (2 + math.exp(epsilon))
    expected = [other, other, other]
    expected[level] = draws - 2 * other
    assert stats.chisquare([seen[512 * one] for one in range(3)], expected).pvalue > ALARM
    ones = sum(respond(level % 2, epsilon).value for _ in range(draws))
    truth = 1 / (1 + math.exp(-epsilon))
    assert stats.binomtest(ones, draws, truth if level % 2 else 1 - truth).pvalue > ALARM


# --- nothing is left out --------------------------------------------------------------


def room(module: ModuleType) -> str:
    return str(Path(str(module.__file__)).relative_to(SOURCE).with_suffix(""))


def test_every_module_that_draws_has_a_seed_or_needs_none() -> None:
    """A new source of chance belongs into one of the two lists."""
    found = set()
    for path in SOURCE.rglob("*.py"):
        names = {
            alias.name
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Import)
            for alias in node.names
        }
        if names & {"random", "secrets", "uuid"}:
            found.add(str(path.relative_to(SOURCE).with_suffix("")))
    assert found == {*UNIQUE, *map(room, SEEDED)}
    assert all(vars(module)["secrets"] is chance for module in SEEDED)


def unseeded(path: Path) -> list[str]:
    """Generators without a seed, and draws from those that all share."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Call):
            continue
        name, last = ast.unparse(node.func), ast.unparse(node.func).rpartition(".")[2]
        if last in ("default_rng", "Random"):
            drawn = not (node.args or node.keywords)
        else:
            drawn = bool(re.fullmatch(r"(np\.)?random\.[a-z]+", name)) and last != "seed"
        if drawn:
            found.append(f"{path.name}:{node.lineno} {name}")
    return found


def test_tests_seed_their_generators() -> None:
    tests = Path(__file__).parent
    assert [one for path in sorted(tests.rglob("*.py")) for one in unseeded(path)] == []
