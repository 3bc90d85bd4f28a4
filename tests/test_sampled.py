"""sampled.py, past.py, scale.py: arms that are given by data, out of arrays and
files.
"""

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import discreet
from discreet import (
    Instance,
    InvalidInputError,
    Results,
    Sampled,
    TiedBestArmError,
    simulate,
    suggest_range,
)
from discreet.past_data import read_past_outcomes
from discreet.simulation import laws
from discreet.simulation.compile import compile_kernel
from discreet.strategies.strategy import Strategy

DATA = Sampled([[0.1, 0.3, 0.3], [0.9, 0.5]], ["x", "y"])
FAMILIES = {
    "phased": discreet.adap_tt(5, 0.2),
    "global episodes": discreet.ttucb_batched(0.2, episodes="global"),
    "stream": discreet.ttucb(0.2),
    "local stream": discreet.ctb_tt(5, 0.2),
    "epochs": discreet.dp_se(5, 0.2),
    "bets": discreet.bet_se(0.2, 5),
    "local bets": discreet.bet_se(0.2, 5, trust="local"),
}


WIDER = (
    r"2 of 4 outcomes lie outside the range 0 to 1: give a wider range, such as -1.5,2.5, or .* "
    r'--out-of-range clip on the command line \(out_of_range="clip" in Python\)'
)


class TestInstance:
    def test_what_it_knows(self) -> None:
        assert DATA.means == pytest.approx((0.7 / 3, 0.7), rel=1e-15)
        assert (DATA.arms, DATA.best, DATA.outcomes) == (2, 1, "numbers")
        assert [arm.tolist() for arm in DATA.rewards] == [[0.1, 0.3, 0.3], [0.9, 0.5]]
        assert repr(DATA) == "Sampled(x: 3 rewards, y: 2 rewards)"

    def test_frozen_and_equal_by_value(self) -> None:
        again = Instance.from_dict(json.loads(json.dumps(DATA.to_dict())))
        assert again == DATA
        assert hash(again) == hash(DATA)
        with pytest.raises(dataclasses.FrozenInstanceError):
            DATA.names = ("no", "no")  # type: ignore[misc]
        with pytest.raises(ValueError, match="read-only"):
            DATA.rewards[0][0] = 1

    def test_other_data_make_another(self) -> None:
        others = (
            Sampled([[0.1, 0.3, 0.3], [0.9, 0.5]]),
            Sampled([[0.1, 0.3, 0.3, 0.9], [0.5]], ["x", "y"]),
            Sampled([[0.1, 0.3, 0.3], [0.9, 0.6]], ["x", "y"]),
        )
        for other in others:
            assert other != DATA

    def test_what_is_given_stays_with_the_giver(self) -> None:
        mine = np.array([0.2, 0.4])
        made = Sampled([mine, [0.5]])
        mine[0] = 0.9
        assert made.rewards[0].tolist() == [0.2, 0.4]

    def test_a_description_does_not_write_data_out(self) -> None:
        said = DATA.describe()
        assert said["counts"] == [3, 2]
        assert said["means"] == list(DATA.means)
        assert "rewards" not in said

    @pytest.mark.parametrize(
        ("rewards", "advice"),
        [
            ([[0.1]], "at least 2 arms"),
            ([[0.1], []], "arm 2 must be a flat list of at least one number"),
            ([[0.1], [[0.2]]], "flat list"),
            ([[0.1], [1.2]], r"a reward of arm 2 lies outside \[0, 1\]; rescale"),
            ([[0.1], [math.nan]], "arm 2 contains NaN"),
            ([[0.1], ["a"]], "must be numbers"),
        ],
    )
    def test_refused(self, rewards: Any, advice: str) -> None:
        with pytest.raises(InvalidInputError, match=advice):
            Sampled(rewards)


class TestScaled:
    def test_a_range_makes_rewards(self) -> None:
        made = Sampled.from_outcomes({"x": [10, 20], "y": [30]}, range=(10, 50))
        assert [arm.tolist() for arm in made.rewards] == [[0, 0.25], [0.5]]
        less = Sampled.from_outcomes({"x": [10, 20], "y": [30]}, range=(10, 50), direction="min")
        assert [arm.tolist() for arm in less.rewards] == [[1, 0.75], [0.5]]

    def test_rewards_are_those_of_a_live_trial(self) -> None:
        scale = discreet.scale.Scale(-3.0, 7.1, "min")
        some = np.linspace(-3, 7.1, 101)
        assert scale.convert_to_rewards(some).tolist() == [
            scale.convert_to_reward(one) for one in some
        ]

    def test_outside(self) -> None:
        with pytest.raises(InvalidInputError, match=WIDER):
            Sampled.from_outcomes({"x": [-1, 0.5, 2], "y": [1]}, range=(0, 1))
        with pytest.raises(InvalidInputError, match=r"1 of 2 .* give a wider range or let"):
            Sampled.from_outcomes({"x": [math.inf], "y": [1]}, range=(0, 1))
        made = Sampled.from_outcomes(
            {"x": [-1, 0.5, math.inf], "y": [1]}, (0, 1), out_of_range="clip"
        )
        assert made.rewards[0].tolist() == [0, 0.5, 1]
        assert (made.clipped, made.scale) == (2, discreet.scale.Scale(0, 1))
        with pytest.raises(InvalidInputError, match="out_of_range must be one of refuse, clip"):
            Sampled.from_outcomes({"x": [0], "y": [1]}, out_of_range="drop")

    def test_no_range_is_for_rewards_only(self) -> None:
        assert Sampled.from_outcomes({"x": [0.25], "y": [1]}).means == (0.25, 1)
        with pytest.raises(
            InvalidInputError, match=r"such as 0,45, which .* never from the trial's"
        ):
            Sampled.from_outcomes({"x": [3, 8], "y": [41]})
        with pytest.raises(InvalidInputError, match="infinite outcomes"):
            Sampled.from_outcomes({"x": [3, 8], "y": [math.inf]})
        with pytest.raises(InvalidInputError, match="two numbers"):
            Sampled.from_outcomes({"x": [3, 8], "y": [41]}, range=7)  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        ("values", "expected"),
        [
            ([3, 41], (0, 45)),
            ([120, 180], (110, 190)),
            ([-2, 2], (-2.5, 2.5)),
            ([0, 1], (0, 1.2)),
            ([0.001, 0.0042], (0.0005, 0.005)),
            ([7], (6, 8)),
            ([0], (0, 0.2)),
            ([-1e9, 1e9], (-1.2e9, 1.2e9)),
        ],
    )
    def test_a_suggested_range_is_round_and_has_room(
        self, values: list[float], expected: tuple[float, float]
    ) -> None:
        assert suggest_range(values) == expected

    def test_a_suggested_range_holds_everything(self) -> None:
        rng = np.random.default_rng(1)
        for _ in range(2000):
            values = rng.normal(0, 1, 5) * 10 ** rng.uniform(-6, 6) + 10 ** rng.uniform(-6, 6)
            low, high = suggest_range(values)
            room = 0.099 * (values.max() - values.min())
            assert high >= values.max() + room
            assert low <= values.min() - room or (low == 0 <= values.min())

    def test_without_room_it_holds_everything_too(self) -> None:
        rng = np.random.default_rng(2)
        for _ in range(2000):
            values = rng.normal(0, 1, 3) * 10 ** rng.uniform(-6, 6)
            values[0] = round(values[0], 2) * (1 + rng.choice([-1e-13, 0, 1e-13]))
            low, high = suggest_range(values, room=0)
            assert low <= values.min()
            assert values.max() <= high
        assert suggest_range([109, 181.5], room=0) == (100, 190)
        assert suggest_range([5 - 1e-12, 30 + 1e-12], room=0) == (0, 35)

    def test_no_suggestion(self) -> None:
        for values in ([], [math.nan], [math.inf]):
            with pytest.raises(InvalidInputError, match="at least one finite number"):
                suggest_range(values)
        with pytest.raises(InvalidInputError, match="some of these are not numbers"):
            suggest_range(["x"])
        with pytest.raises(InvalidInputError, match="room must be"):
            suggest_range([1], room=-1)

    def test_words_for_scales_with_ends_and_for_far_outcomes(self) -> None:
        with pytest.raises(InvalidInputError, match=r"ends of its own, such as 0,100.*clip"):
            Sampled.from_outcomes({"x": [3, 8], "y": [30000]})

    @pytest.mark.parametrize(
        ("outcomes", "advice"),
        [
            ([[0.1], [0.2]], "must be a dictionary from each arm to its outcomes"),
            ({}, "at least 2 arms"),
            ({1: [0.1], 2: [0.2]}, 'write "1" for an arm called 1'),
        ],
    )
    def test_what_is_no_data_by_name(self, outcomes: Any, advice: str) -> None:
        with pytest.raises(InvalidInputError, match=advice):
            Sampled.from_outcomes(outcomes)

    def test_names_are_text(self) -> None:
        wrong: list[Any] = [[1, 2], 5, [[], []]]
        for names in wrong:
            with pytest.raises(InvalidInputError, match="must be texts"):
                Sampled([[0.1], [0.2]], names)

    def test_ties_have_the_words_of_data(self) -> None:
        tied = Sampled.from_outcomes({"x": [0.5, 0.5], "y": [0.5], "z": [0]})
        words = (
            r"outcomes of x, y have the same mean.*best arm: leave out .*\(--indifference-zone\)"
        )
        with pytest.raises(TiedBestArmError, match=words):
            _ = tied.gaps
        tied = Sampled.from_outcomes({"x": [5, 7], "y": [9, 0.5]}, (0, 0.5), out_of_range="clip")
        with pytest.raises(TiedBestArmError, match=r"3 of 4 outcomes lie outside .* wider range"):
            _ = tied.best


class TestFiles:
    def write(self, folder: Path, text: str) -> Path:
        path = folder / "past.csv"
        path.write_text(text)
        return path

    def test_csv(self, tmp_path: Path) -> None:
        path = self.write(tmp_path, "who,dose,pain\na,10 mg,3\nb,5 mg, 4.5\nc,10 mg,1e1\n")
        assert {
            name: values.tolist()
            for name, values in read_past_outcomes(path, "dose", "pain").items()
        } == {
            "5 mg": [4.5],
            "10 mg": [3, 10],
        }
        made = Sampled.read(path, "dose", "pain", range=(0, 10), direction="min")
        assert made == Sampled([[0.55], [0.7, 0.0]], ["5 mg", "10 mg"])

    def test_arms_are_in_the_order_of_their_names(self, tmp_path: Path) -> None:
        path = self.write(tmp_path, "arm,y\n10,1\n-2,1\n9,1\n0.5,1\n")
        assert list(read_past_outcomes(path, "arm", "y")) == ["-2", "0.5", "9", "10"]
        path = self.write(tmp_path, "arm,y\nb,1\na10,1\na9,1\n")
        assert list(read_past_outcomes(path, "arm", "y")) == ["a9", "a10", "b"]

    def test_parquet(self, tmp_path: Path) -> None:
        path = tmp_path / "past.data"
        pl.DataFrame({"arm": [2.0, 1.5, 2.0], "y": [1, 0, 1]}).write_parquet(path)
        found = read_past_outcomes(path, "arm", "y")
        assert {name: values.tolist() for name, values in found.items()} == {
            "1.5": [0],
            "2": [1, 1],
        }
        pl.DataFrame({"arm": ["a", "b"], "y": [True, False]}).write_parquet(path)
        assert Sampled.read(path, "arm", "y").means == (1, 0)

    @pytest.mark.parametrize(
        ("text", "advice"),
        [
            ("a,b\nx,1\ny,2\n", "has no column 'arm'; its columns are a, b"),
            ("arm,b\nx,1\ny,2\n", "has no column 'y'; its columns are arm, b"),
            (
                "arm,y\nx,1\ny,\nx,\n",
                r"'y' is empty or NaN in 2 of 3 rows, first in line 3 of the file: correct",
            ),
            ("arm,y\nx,1\ny,nan\n", "'y' is empty or NaN in 1 of 2 rows, first in line 3"),
            ('arm,y\n"x\nx",1\ny,nan\n', "in 1 of 2 rows, first in line 4"),
            ("arm,y\nx,1\n\ny,2\n", "'arm' is empty in 1 of 3 rows, first in line 3"),
            (
                "arm,y\nx,1\ny,secret\n",
                "'y' is not a number in 1 of 2 rows, first in line 3 of the file: ",
            ),
            ("arm,y\nx,1\n,2\n", "'arm' is empty in 1 of 2 rows, first in line 3"),
            ("arm,y\nx,1\nx,0\n", "names only one arm, 'x'"),
            ("arm,y\n", "has no rows below its head"),
            ("", "cannot be read: it is empty"),
            ("arm,y\nx,1\ny,0,7,8\n", "cannot be read: line 3 has more columns than the 2"),
            ('arm,y\n"secret,1\ny,0\n', "quotation mark left open"),
            ("arm;y\nx;1,5\ny;2,5\n", "'arm'; it seems to be separated by semicolons: save it"),
            ("arm\ty\nx\t1\ny\t2\n", "separated by tabs"),
            ("arm,y,y\nx,1,2\ny,2,3\n", "has two columns 'y'"),
            ("arm,y\n" + "".join(f"{n},1\n" for n in range(11)), "11 arms in 11 rows.*--arm"),
            ("arm,y\nx,1\ny,7\n", r"such as 0,8, which"),
        ],
    )
    def test_refused(self, tmp_path: Path, text: str, advice: str) -> None:
        path = self.write(tmp_path, text)
        with pytest.raises(InvalidInputError, match=advice) as caught:
            Sampled.read(path, "arm", "y")
        assert "secret" not in str(caught.value).replace(str(path), "")

    def test_what_is_no_file_of_outcomes(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidInputError, match=r"cannot read .*No such file"):
            Sampled.read(tmp_path / "none.csv", "arm", "y")
        with pytest.raises(InvalidInputError, match=r"cannot read .*directory"):
            Sampled.read(tmp_path, "arm", "y")
        path = tmp_path / "x.parquet"
        path.write_bytes(b"PAR1 but no more")
        with pytest.raises(InvalidInputError, match="cannot be read as a Parquet file"):
            Sampled.read(path, "arm", "y")
        path.write_bytes(b"arm,y\n\xff\xfe,1\nb,2\n")
        with pytest.raises(
            InvalidInputError, match="cannot be read: line 2 has text that is not in"
        ):
            Sampled.read(path, "arm", "y")
        pl.DataFrame({"arm": ["a", "b"], "y": [1, None]}).write_parquet(path)
        with pytest.raises(InvalidInputError, match="first in row 2: correct"):
            Sampled.read(path, "arm", "y")
        pl.DataFrame({"arm": ["a", "b"], "y": [[1], [2]]}).write_parquet(path)
        with pytest.raises(InvalidInputError, match="'y' must contain numbers, but contains List"):
            Sampled.read(path, "arm", "y")
        with pytest.raises(InvalidInputError, match="two different columns"):
            Sampled.read(path, "arm", "arm")


def test_a_name_with_brackets_is_that_file_and_no_other(tmp_path: Path) -> None:
    (tmp_path / "g[1].csv").write_text("arm,x\na,0.1\nb,0.2\n")
    (tmp_path / "g1.csv").write_text("arm,x\na,0.9\nb,0.8\n")
    assert Sampled.read(tmp_path / "g[1].csv", "arm", "x").means == (0.1, 0.2)


def test_means_that_differ_by_rounding_are_tied() -> None:
    assert not Sampled([[0.1, 0.2, 0.3], [0.2]]).is_unique


class TestDraws:
    def test_each_reward_is_as_likely(self) -> None:
        """χ² of 6 values with 60 000 draws: below 25.7 but with chance 1e-4."""
        data = Sampled([[0.5], np.arange(6) / 8])
        known, rng = laws.make_laws(data), np.random.default_rng(3)
        drawn = np.array([laws.draw_steady_reward(rng, known, 1) for _ in range(60_000)])
        counts = np.array([(drawn == value).sum() for value in data.rewards[1]])
        assert counts.sum() == 60_000
        assert ((counts - 10_000) ** 2 / 10_000).sum() < 25.7
        assert laws.draw_steady_reward(rng, known, 0) == 0.5

    def test_a_sum_is_one_draw_after_the_other_compiled_or_not(self) -> None:
        known = laws.make_laws(DATA)
        one, other, third = (np.random.default_rng(5) for _ in range(3))
        total = sum(laws.draw_steady_reward(one, known, 0) for _ in range(100))
        assert laws.draw_sum(other, known, 0, 100) == total
        assert compile_kernel(laws.draw_sum)(third, known, 0, 100) == total


def mean_samples(instance: Instance, strategy: Strategy, seed: int) -> tuple[float, float]:
    found = simulate(instance, strategy, runs=300, seed=seed).summary()
    return found["mean"], found["sem"]


@pytest.mark.parametrize("name", FAMILIES)
def test_data_of_bits_are_bernoulli_arms(name: str) -> None:
    """Two estimates of one mean: beyond 4.5 standard errors with chance 7e-6 each."""
    bits = [[0] * 3 + [1] * 1, [0] * 1 + [1] * 9]
    data, arms = Sampled(bits), discreet.Bernoulli([0.25, 0.9])
    one, other = (mean_samples(each, FAMILIES[name], seed) for each, seed in ((data, 1), (arms, 2)))
    assert abs(one[0] - other[0]) <= 4.5 * math.hypot(one[1], other[1])


def test_results_know_their_data(tmp_path: Path) -> None:
    results = simulate(DATA, discreet.bet_se(0.2, 5, outcomes="numbers"), runs=3)
    results.save(tmp_path / "runs.parquet")
    loaded = Results.load(tmp_path / "runs.parquet")
    assert Instance.from_dict(loaded.spec["instance"]) == DATA
    assert simulate(DATA, FAMILIES["phased"], runs=2).spec["max_samples"] == 10**9


def test_a_million_people_an_arm() -> None:
    rng = np.random.default_rng(0)
    data = Sampled([rng.beta(2, 3, 10**6), rng.beta(3, 2, 7 * 10**5)])
    assert data.flat.nbytes == 8 * 1_700_000
    assert simulate(data, discreet.adap_tt(2, 0.1), runs=5).errors == 0
    assert data == Sampled(data.rewards)
