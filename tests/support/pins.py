"""What must never change by accident: the numbers of a seed, the JSON documents, the
files of trials.

`python -m tests.support.pins` writes tests/assets/pins anew; with `documents` behind it
only the documents, with `trials` only the file of trials. That is for a change of
behaviour that is meant and said in the CHANGELOG; a change of structure leaves every
pin as it is.
"""

import hashlib
import itertools
import json
import math
import re
import shlex
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from click.testing import CliRunner

import discreet
from discreet import (
    Bernoulli,
    Beta,
    Discrete,
    Gaussian,
    Instance,
    InvalidInputError,
    Strategy,
    Trial,
)
from discreet.strategies.presets import RULES
from discreet.trials import enrolment, record
from discreet.trials.settings import (
    CONTINUOUS,
)
from discreet.trials.store.tables import TrialTables
from tests.support.clock import Clock
from tests.support.pictures import undrawn

PINS = Path(__file__).parent.parent / "assets" / "pins"
PRESETS: dict[str, tuple[Callable[..., Strategy], dict[str, float]]] = {
    "ttucb": (discreet.ttucb, {}),
    "ttucb-batched": (discreet.ttucb_batched, {}),
    "ctb-tt": (discreet.ctb_tt, {"epsilon": 2}),
    "gauss-tt": (discreet.gauss_tt, {"epsilon": 8, "gamma": 0.1}),
    "adap-tt": (discreet.adap_tt, {"epsilon": 1}),
    "adap-tt-star": (discreet.adap_tt_star, {"epsilon": 0.5}),
    "dp-se": (discreet.dp_se, {"epsilon": 1}),
    "bet-se": (discreet.bet_se, {"epsilon": 1}),
}
OPTIONS: dict[str, tuple[Any, ...]] = {
    "threshold": (None, "printed", "empirical"),
    "sampling": (
        None,
        *("top-two", "uniform", "lucb", "elimination"),
        *("eb-tc", "eb-tci", "ts-tc", "track-and-stop"),
    ),
    "beta": (None, 0.3, "ids"),
    "episodes": (None, "global"),
    "trust": (None, "local", "none"),
    "indifference_zone": (None, 0.1),
    "s": (None, 2.0),
    "outcomes": (None, "numbers"),
    "cost": (None, "kl"),
    "sigma": (None, 2.0),
}
PINNED_NAMES = {"indifference_zone": "zeta"}
"""The names that runs.json has for options that were renamed."""
ARMS: dict[str, Instance] = {
    "bernoulli": Bernoulli([0.55, 0.8, 0.5, 0.3]),
    "tied": Bernoulli([0.7, 0.4, 0.4, 0.4, 0.4]),
    "discrete": Discrete([0, 0.5, 1], [[0.1, 0.3, 0.6], [0.3, 0.4, 0.3], [0.6, 0.0, 0.4]]),
    "beta": Beta([4, 2], [2, 2]),
}
CUSTOM: dict[str, dict[str, Any]] = {
    "custom threshold": {
        "threshold": discreet.CustomThreshold("a", lambda *n: 3.0 + 0.1 * np.log(n[0]))
    },
    "custom bonus": {"bonus": discreet.CustomBonus("b", lambda n: 1 / np.sqrt(n))},
    "custom grid": {"grid": discreet.CustomGrid("c", lambda phase: 3 ** (phase - 1))},
    "episodes=global-yielding": {"episodes": "global-yielding"},
}


GAUSSIAN: dict[str, dict[str, Any]] = {
    "gamma": {"epsilon": 1, "gamma": 1e-6},
    "rho": {"epsilon": None, "rho": 0.1},
}


def strategies() -> Iterator[tuple[str, Strategy]]:
    """Every preset with every combination of options that it takes, with functions of
    one's own, and with Gaussian noise on sums.
    """
    for name, (preset, levels) in PRESETS.items():
        for values in itertools.product(*OPTIONS.values()):
            options = {
                key: value for key, value in zip(OPTIONS, values, strict=True) if value is not None
            }
            alone, few = {"s"} & options.keys(), {"cost", "sigma"} & options.keys()
            other = options.get("sampling") in RULES and options.keys() - {"sampling", "cost"}
            if (alone and len(options) > 1) or (few and len(options) > 2) or other:
                continue
            levels_here: dict[str, Any] = (
                {} if (name, options.get("trust")) == ("bet-se", "none") else levels
            )
            try:
                yield (
                    " ".join(
                        [
                            name,
                            *(
                                f"{PINNED_NAMES.get(key, key)}={value}"
                                for key, value in options.items()
                            ),
                        ]
                    ),
                    preset(delta=0.1, **levels_here, **options),
                )
            except InvalidInputError:
                continue
        for words, options in CUSTOM.items():
            try:
                yield f"{name} {words}", preset(delta=0.1, **levels, **options)
            except InvalidInputError:
                continue
    yield "ttucb-forgetting", discreet.ttucb_forgetting(0.1)  # decided as adap-tt is
    for words, noise in GAUSSIAN.items():
        yield f"bet-se {words}", discreet.bet_se(0.1, **noise)
        yield f"adap-tt {words}", discreet.adap_tt(delta=0.1, **noise)
        yield f"adap-tt {words} ids", discreet.adap_tt(delta=0.1, beta="ids", **noise)


def run_pin(strategy: Strategy) -> dict[str, str]:
    """Hashes of samples, arms, stops, rounds and pulls of a few runs on each kind of
    arms.
    """
    from warnings import catch_warnings, simplefilter

    found = {}
    arms = {**ARMS, "gaussian": Gaussian([3.0, 4.5, -1.0], 2.0)} if strategy.sigma else ARMS
    for name, instance in arms.items():
        slow = strategy.has_global_episode or isinstance(instance, Beta)
        cap, runs = (2_000, 3) if slow else (20_000, 70 if strategy.is_phased else 6)
        with catch_warnings():
            simplefilter("ignore", discreet.MayNotStopWarning)
            results = discreet.simulate(instance, strategy, runs, 11, cap)
        digest = hashlib.sha256()
        for array in (
            results.samples,
            results.recommendation,
            results.stopped,
            results.rounds,
            results.pulls,
        ):
            digest.update(np.ascontiguousarray(array).tobytes())
        found[name] = digest.hexdigest()[:16]
    return found


STUDY = """
runs = 20
delta = 0.1
epsilon = [0.5, 2]
[instances]
close = [0.6, 0.5]
[[strategies]]
preset = "bet-se"
trust = ["global", "local"]
[[strategies]]
preset = "dp-se"
[[strategies]]
preset = "ttucb"
"""
COMMANDS = {
    "bounds": "bounds --means 0.75,0.7,0.6 --epsilon 0.01,1 --delta 0.01 --names a,b,c",
    "simulate": "simulate --instance mu4 --strategy adap-tt-star --epsilon 1 --runs 20",
    "simulate bet-se": "simulate --means 0.6,0.5 --strategy bet-se --epsilon 1 --indifference-zone 0.05 --runs 20",
    "simulate empirical": "simulate --means 0.6,0.5 --strategy ttucb --threshold empirical --beta ids --runs 5",
    "plan": "plan --arms 3 --gap 0.3 --epsilon 0.5,1 --runs 30 --budget 400 --max-participants 2000",
    "plan strategies": "plan --means 0.9,0.5 --epsilon 1 --runs 10 --strategy bet-se,dp-se,ttucb,ctb-tt",
    "plan local": "plan --means 0.9,0.5,0.4 --epsilon 1 --runs 20 --trust local",
    "audit correctness": "audit correctness --strategy dp-se --epsilon 1 --runs 20",
    "audit privacy": "audit privacy --strategy bet-se --epsilon 1 --runs 400 --noise numpy --seed 3",
    "audit privacy local": "audit privacy --strategy ctb-tt --epsilon 1 --runs 400 --noise numpy --seed 3",
    "sweep": "sweep study.toml --out study",
    "trial create": "trial create dose --arms a,b --strategy bet-se --trust none --max-participants 60 --url sqlite:///t.db",
    "trial ask": "trial ask dose -n 3 --key monday --url sqlite:///t.db",
    "trial status": "trial status dose --url sqlite:///t.db",
    "trial tell": "trial tell dose --csv told.csv --url sqlite:///t.db",
    "trial status told": "trial status dose --url sqlite:///t.db",
    "trial verify": "trial verify dose --url sqlite:///t.db",
    "trial transcript": "trial transcript dose --url sqlite:///t.db",
    "trial report": "trial report dose --out report.html --url sqlite:///t.db",
    "respond": "respond --epsilon 1 --outcome 1",
    "reproduce": "reproduce --out paper --quick --trust global --runs 2",
}
"""In this order, in one empty folder; each with --json."""
CHANGING = re.compile(r'"(seconds|response|value|id)": ("[^"]*"|[-\d.e]+)')
"""What differs from run to run: times, ids of people, randomised responses."""


def documents(folder: Path) -> dict[str, str]:
    """The JSON document of every command, as it was printed, without what differs from
    run to run.
    """
    (folder / "study.toml").write_text(STUDY)
    found, keys, salts = {}, np.random.default_rng(7), np.random.default_rng(8)
    with (
        patch.object(enrolment, "draw_key", lambda: keys.bytes(32)),
        patch.object(record, "new_salt", lambda: salts.bytes(16).hex()),
        undrawn(),
    ):
        for name, line in COMMANDS.items():
            if name == "trial tell":
                asked = json.loads(_printed("trial ask", COMMANDS["trial ask"]))
                rows = [f"{one['id']},{int(one['arm'] == 'a')}" for one in asked["assignments"]]
                (folder / "told.csv").write_text("\n".join(rows))
            found[name] = CHANGING.sub(r'"\1": null', _printed(name, line))
    return found


def _printed(name: str, line: str) -> str:
    result = CliRunner().invoke(discreet_main(), [*shlex.split(line), "--json"])
    assert result.exit_code == 0, (name, result.output)
    return result.stdout


def discreet_main() -> Any:
    """The command."""
    from discreet.cli import main

    return main


def same(one: Any, other: Any) -> bool:
    """Equal documents: floats to 1e-9, as processors differ in the last digits; all
    else exactly, order included.
    """
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(same(a, b) for a, b in zip(one, other, strict=True))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
    return type(one) is type(other) and bool(one == other)


LIVE: dict[str, Strategy] = {
    "ttucb": discreet.ttucb(0.05),
    "ttucb ids": discreet.ttucb(0.05, beta="ids"),
    "ttucb lucb": discreet.ttucb(0.05, sampling="lucb"),
    "ttucb elimination": discreet.ttucb(0.05, sampling="elimination"),
    "ttucb-batched": discreet.ttucb_batched(0.05),
    "ctb-tt": discreet.ctb_tt(3, 0.05),
    "gauss-tt": discreet.gauss_tt(6, 0.01, 0.05),
    "adap-tt": discreet.adap_tt(2, 0.05),
    "adap-tt ids": discreet.adap_tt(2, 0.05, beta="ids"),
    "adap-tt global": discreet.adap_tt(2, 0.05, episodes="global"),
    "adap-tt-star": discreet.adap_tt_star(2, 0.05),
    "adap-tt-star elimination": discreet.adap_tt_star(2, 0.05, sampling="elimination"),
    "dp-se": discreet.dp_se(2, 0.5),
}
"""Trials in the pinned file, one of every family and way to sample but `bet-se`; some
under way, some over.
"""
BETS: dict[str, Strategy] = {
    "bet-se": discreet.bet_se(0.05, 1.0),
    "bet-se local": discreet.bet_se(0.05, 2.0, trust="local"),
    "bet-se none": discreet.bet_se(0.05, trust="none"),
    "bet-se zone": discreet.bet_se(0.05, 1.0, indifference_zone=0.1),
    "bet-se dear": discreet.bet_se(0.05, 0.3, target_difference=0.5),
}
"""Those of `bet-se`."""


NUMBERS: dict[str, Strategy] = {
    "numbers": discreet.bet_se(0.05, 1.0, outcomes="numbers"),
    "numbers bold": discreet.bet_se(0.05, 8.0, outcomes="numbers"),
    "numbers dear": discreet.bet_se(0.05, 0.3, outcomes="numbers", target_difference=0.5),
    "numbers local": discreet.bet_se(0.05, 2.0, trust="local", outcomes="numbers"),
    "numbers none": discreet.bet_se(0.05, trust="none", outcomes="numbers", indifference_zone=0.1),
}
"""Those of outcomes that are numbers."""


DAY = 86_400.0
FAST = discreet.bet_se(0.05, 2.0)


class Made(NamedTuple):
    """A trial of the pinned file."""

    strategy: Strategy
    settings: dict[str, Any]
    acts: tuple[tuple[str, str | int | None], ...] = ()
    """What a manager does, and about what."""


SITES = {"sites": ["Leeds", "Lyon"]}
SIMPLE: dict[str, Made] = {
    "coins": Made(discreet.bet_se(0.05, 1.0), {}),
    "levels": Made(discreet.bet_se(0.05, 2.0, trust="local", outcomes="numbers"), {}),
    "ahead": Made(FAST, {"deadline": DAY, "enrolment": "continuous", **SITES}),
    "clock": Made(FAST, {"deadline": DAY, "release": "scheduled"}),
    "shuffled": Made(discreet.adap_tt_star(2, 0.05), {}),
    "one line": Made(discreet.ctb_tt(3, 0.05), {}),
    "operated": Made(
        FAST,
        SITES,
        (
            ("close-site", "Lyon"),
            ("add-arm", "40 mg"),
            ("lower-maximum", 4000),
            ("pause", None),
            ("resume", None),
            ("drop-arm", "5 mg"),
        ),
    ),
}
"""One of every way to deal, to come and to answer, and one with a manager."""
STORED = {name: Made(strategy, {}) for name, strategy in (LIVE | BETS | NUMBERS).items()} | SIMPLE
"""All trials of the pinned file."""
DOSES = ["5 mg", "10 mg", "20 mg"]


def new_trial(path: Path, name: str) -> Trial:
    """Create a trial of the pinned file, or open it if it is there."""
    strategy, settings, _ = STORED[name]
    return Trial.create(f"sqlite:///{path}", name, DOSES, strategy, 5000, **settings)


def fill(path: Path, trial: Trial, people: int, clock: Clock) -> None:
    """Go on with a trial up to so many people, seven an hour, the last of whom have not
    told; managers act after the first twenty.
    """
    protocol, rng = trial.protocol, np.random.default_rng(len(trial.protocol.name))
    acts = list(SIMPLE[protocol.name].acts) if protocol.name in SIMPLE else []
    late = 40 if protocol.enrolment == CONTINUOUS else 0
    while trial.status().participants < people and not trial.ask(7, site=open_site(trial)).stopped:
        clock.now += 3600
        known = open_people(path, protocol.name)
        told = known[: max(len(known) - late, 0)]
        outcomes = {id: int(rng.random() < (0.3, 0.8, 0.3, 0.3)[arm]) for id, arm in told}
        if protocol.strategy.trust == "local":
            level, middle = float(protocol.strategy.epsilon or 0), trial.status().middle_level
            answers = {
                id: discreet_respond()(bit, level, protocol.strategy.gamma, middle_level=middle)
                for id, bit in outcomes.items()
            }
            trial.answer_many(answers)
        else:
            trial.tell_many(outcomes)
        done = len(trial.status().actions)
        if done < len(acts) and trial.status().participants > 20:
            trial.manage(acts[done][0], "the plan", acts[done][1])
    trial.ask(3, site=open_site(trial))
    trial.close()


def open_site(trial: Trial) -> str | None:
    """Where the next people come from."""
    sites = [site.name for site in trial.status().sites if not site.closed]
    return sites[trial.status().participants % len(sites)] if sites else None


def last_time(path: Path, name: str) -> float:
    """When the last call of a trial was made."""
    with closing(sqlite3.connect(path)) as connection:
        query = "select max(at) from discreet_audit_trail join discreet_trials using (trial) where name = ?"
        (last,) = connection.execute(query, (name,)).fetchone()
        return float(last)


def discreet_respond() -> Any:
    """How a person randomises an outcome."""
    from discreet.trials.mechanisms import respond

    return respond


def open_people(path: Path, name: str) -> list[tuple[str, int]]:
    """(id, arm) of those who have not told, from the tables themselves."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(
            "select number || '-' || token, arm from discreet_assignments join discreet_trials "
            "using (trial) where name = ? and discreet_assignments.state = 0",
            (name,),
        ).fetchall()


def stored(path: Path) -> dict[str, str]:
    """The stored states in a file, by trial."""
    with closing(sqlite3.connect(path)) as connection:
        return dict(connection.execute("select name, state from discreet_trials"))


def write_trials(path: Path) -> None:
    """Write the file of trials."""
    path.unlink(missing_ok=True)
    clock = Clock()
    with patch.object(TrialTables, "now", property(lambda _ledger: clock.now)):
        for name in STORED:
            fill(path, new_trial(path, name), 60, clock)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("pragma journal_mode = delete")
        connection.execute("vacuum")


def write_documents() -> None:
    """Write the documents."""
    import os
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        found = documents(Path(folder))
    (PINS / "documents.json").write_text(json.dumps(found, indent=0, ensure_ascii=False) + "\n")


def main(what: str = "") -> None:
    """Write all pins, or those of a kind."""
    PINS.mkdir(parents=True, exist_ok=True)
    if what in ("", "runs"):
        runs = {name: run_pin(strategy) for name, strategy in strategies()}
        (PINS / "runs.json").write_text(json.dumps(runs, indent=0, ensure_ascii=False) + "\n")
    if what in ("", "documents"):
        write_documents()
    if what in ("", "trials"):
        write_trials(PINS / "trials.db")


if __name__ == "__main__":
    main(*sys.argv[1:])
