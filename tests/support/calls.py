"""Every public function with arguments that it takes, for the fuzz tests to spoil."""

import inspect
import types
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import discreet
from discreet import (
    Bernoulli,
    Drift,
    Results,
    Study,
    Trial,
    UserStrategy,
    bet_se,
    make_gap_scenarios,
    simulate,
)
from discreet.audits.rehearsal import NoNoise

ARMS = Bernoulli((0.9, 0.1))
BETS = bet_se(0.1, trust="none")
LOCAL = bet_se(0.1, 1.0, trust="local")
PAST = {"a": [0.0, 1.0, 0.25], "b": [0.5, 0.5, 1.0]}
RECORDS = {
    *(
        "ArmStatus",
        "Assignment",
        "BackedUp",
        "AskResult",
        "Bounds",
        "CharacteristicTime",
        "CorrectnessAudit",
    ),
    *("GapScenarios", "OutOfReach", "Plan", "PrivacyAudit", "PrivateBounds", "RangeCost"),
    *("Recommendation", "Restored", "Results", "Status", "TellResult", "Verification"),
}
"""What calls give back: nobody else makes one, and they take anything."""
FAR = {"RemoteTrial"}
"""Trials at a service: tests/client/test_fuzz.py makes the calls of a trial there."""
MADE_ELSEWHERE = {"Instance", "Trial"}
"""Classes that are not called themselves: by their kinds, by `create` and `open`."""
ACTS = {"resume": None, "raise-maximum": 10**7, "lower-maximum": 10**5, "close-site": "y"}
ACTS |= {"open-site": "z", "add-arm": "d", "drop-arm": "c", "set-clock": None}


class Once:
    """A strategy of one's own that stops at once, and is simulated without a kernel."""

    recommendation = 0

    def __init__(self, arms: int, delta: float, rng: Any) -> None:
        self.asked = False

    def ask(self) -> int | None:
        """The first arm, and then no other."""
        first, self.asked = not self.asked, True
        return 0 if first else None

    def tell(self, arm: int, reward: float) -> None:
        """Of no interest."""


OWN = UserStrategy("once", Once, 0.1)
Call = tuple[Callable[..., Any], dict[str, Any]]


@lru_cache(maxsize=1)
def results() -> Results:
    """Of a simulation without a kernel."""
    return simulate(ARMS, OWN, runs=2)


def makers() -> dict[str, Call]:
    """Instances, delays, drifts and strategies."""
    delay, drift = discreet.Delay, discreet.Drift
    plain = {"epsilon": 1.0, "delta": 0.1}
    found: dict[str, Call] = {
        "Bernoulli": (Bernoulli, {"means": [0.9, 0.1], "names": ["a", "b"]}),
        "Gaussian": (discreet.Gaussian, {"means": [0.5, -1.0], "sigma": 2.0, "names": ["a", "b"]}),
        "Beta": (discreet.Beta, {"a": [1.0, 2.0], "b": [2.0, 1.0], "names": ["a", "b"]}),
        "Discrete": (
            discreet.Discrete,
            {
                "values": [0.0, 1.0],
                "probabilities": [[0.5, 0.5], [0.1, 0.9]],
                "names": ["a", "b"],
            },
        ),
        "Drifting": (discreet.Drifting, {"instance": ARMS, "drift": Drift.step(0.1, 9)}),
        "Instance.from_dict": (discreet.Instance.from_dict, {"description": ARMS.to_dict()}),
        "Sampled": (discreet.Sampled, {"rewards": list(PAST.values()), "names": ["a", "b"]}),
        "Sampled.from_outcomes": (
            discreet.Sampled.from_outcomes,
            {"outcomes": PAST, "range": (0, 1), "direction": "max", "out_of_range": "refuse"},
        ),
        "Delay": (delay, {"kind": 0, "days": 1.0, "failures": 1.0, "never": 0.0}),
        "Delay.fixed": (delay.fixed, {"days": 1, "never": 0.0, "failures": None}),
        "Delay.exponential": (delay.exponential, {"mean": 1, "never": 0.0, "failures": None}),
        "Delay.read": (delay.read, {"words": "7", "never": 0.0}),
        "Delay.from_dict": (delay.from_dict, {"description": delay.fixed(1).to_dict()}),
        "Drift": (drift, {"kind": 1, "size": 0.1, "people": 1.0}),
        "Drift.sites": (drift.sites, {"size": 0.1, "block": 1}),
        "Drift.step": (drift.step, {"size": 0.1, "at": 1}),
        "Drift.season": (drift.season, {"size": 0.1, "period": 9}),
        "Drift.trend": (drift.trend, {"size": 0.1, "over": 9}),
        "Drift.from_dict": (drift.from_dict, {"description": drift.step(0.1, 9).to_dict()}),
        "make_gap_scenarios": (make_gap_scenarios, {"arms": 3, "gap": 0.1, "base": 0.5}),
        "GapScenarios.find_hardest": (
            make_gap_scenarios(3, 0.1, 0.5).find_hardest,
            {"epsilons": [1.0], "trust": "global"},
        ),
        "notebook_bar": (discreet.notebook_bar, {"title": "planning"}),
        "suggest_range": (discreet.suggest_range, {"values": [1.0, 2.0], "room": 0.1}),
        "adap_tt": (discreet.adap_tt, plain),
        "adap_tt_star": (discreet.adap_tt_star, plain),
        "ctb_tt": (discreet.ctb_tt, {**plain, "beta": 0.5, "sampling": "uniform"}),
        "dp_se": (discreet.dp_se, {**plain, "threshold": "proved"}),
        "gauss_tt": (discreet.gauss_tt, {**plain, "gamma": 0.1}),
        "ttucb": (discreet.ttucb, {"delta": 0.1, "s": 1.2, "alpha": 1.2, "bonus": "ucb"}),
        "ttucb_batched": (discreet.ttucb_batched, {"delta": 0.1, "grid": "doubling"}),
        "ttucb_forgetting": (discreet.ttucb_forgetting, {"delta": 0.1, "grid": "doubling"}),
        "bet_se": (
            bet_se,
            {
                **plain,
                "trust": "global",
                "indifference_zone": 0.0,
                "target_difference": 0.0,
                "outcomes": "yes-no",
            }
            | {"sampling": "elimination"},
        ),
        "recommended": (
            discreet.recommended,
            {**plain, "trust": "global", "target_difference": 0.0, "outcomes": "yes-no"},
        ),
        "Strategy": (discreet.Strategy, BETS.to_dict()),
        "Strategy.from_dict": (discreet.Strategy.from_dict, {"description": BETS.to_dict()}),
        "Strategy.from_json": (discreet.Strategy.from_json, {"document": BETS.to_json()}),
        "Strategy.with_": (BETS.with_, {"delta": 0.1, "indifference_zone": 0.1, "trust": "none"}),
        "UserStrategy": (
            UserStrategy,
            {"name": "once", "make": Once, "delta": 0.1, "epsilon": None}
            | {"trust": "none", "indifference_zone": 0.0},
        ),
        "UserStrategy.with_": (OWN.with_, {"name": "twice", "make": Once, "delta": 0.2}),
        "UserStrategy.start": (OWN.start, {"arms": 2, "rng": None}),
    }
    for name in ("CustomThreshold", "CustomBonus", "CustomGrid"):
        found[name] = (getattr(discreet, name), {"name": "mine", "function": abs})
    return found


def works(folder: Path) -> dict[str, Call]:
    """Simulations, plans, studies and audits: of a strategy that stops at once."""
    days = {"accrual": 1.0, "delay": 1, "deadline": 3, "enrolment": None, "release": None}
    runs = {"runs": 1, "seed": 0}
    study = Study({"arms": ARMS}, [OWN], runs=1)
    saved = folder / "results.parquet"
    results().save(saved)
    data = folder / "past.csv"
    data.write_text("arm,outcome\na,1\nb,0\na,1\nb,1\n")
    described = Study({"arms": ARMS}, [BETS], runs=1).to_dict()
    toml = folder / "study.toml"
    toml.write_text('instances = ["mu4"]\n[[strategies]]\npreset = "ttucb"\ndelta = 0.1\n')
    return {
        "simulate": (
            simulate,
            {"instance": ARMS, "strategy": OWN, **runs, "max_samples": 10, "threads": 1}
            | {"progress": None, "first_run": 0},
        ),
        "simulate: days": (simulate, {"instance": ARMS, "strategy": OWN, **runs, **days}),
        "plan": (  # refused at last: a plan compares with bet-se, whose kernel would be compiled
            discreet.plan,
            {"scenarios": ARMS, "epsilons": 1.0, "delta": 0.1, "strategies": [OWN]}
            | {"trust": "global", **runs, "max_participants": 20, "budget": None}
            | {
                "probability": 0.9,
                "progress": None,
                "target_difference": None,
                "outcomes": None,
                **days,
            },
        ),
        "plan_ranges": (
            discreet.plan_ranges,
            {"outcomes": PAST, "range": (0, 1), "strategy": OWN, "direction": "max"}
            | {"out_of_range": "refuse", **runs, "max_participants": 20, "progress": None},
        ),
        "check_reach": (
            discreet.check_reach,
            {"strategy": discreet.dp_se(1.0, 0.1), "arms": 2, "max_participants": 10},
        ),
        "bounds": (
            discreet.bounds,
            {"instance": ARMS, "epsilons": [1.0], "delta": 0.1, "beta": 0.5, "sigma": 0.5},
        ),
        "CharacteristicTime.scaled": (
            discreet.bounds(ARMS).t_kl.scaled,
            {"factor": 2.0},
        ),
        "Study": (
            Study,
            {"instances": {"arms": ARMS}, "strategies": [OWN], **runs, "max_samples": 10}
            | {"left_out": ()},
        ),
        "Study: days": (Study, {"instances": {"arms": ARMS}, "strategies": [BETS], **days}),
        "Study.from_dict": (Study.from_dict, {"description": described}),
        "Study.from_toml": (Study.from_toml, {"path": toml}),
        "run_study": (
            discreet.run_study,
            {"study": study, "folder": folder / "study", "executor": None}
            | {"progress": None, "threads": 1},
        ),
        "audit_correctness": (
            discreet.audit_correctness,
            {"strategy": OWN, **runs, "level": 0.9, "delta": 0.1, "progress": None}
            | {"instances": {"arms": ARMS}, "max_samples": 10, "field": False},
        ),
        "audit_privacy": (
            discreet.audit_privacy,
            {"strategy": LOCAL, "runs": 40, "level": 0.9, "noise": "numpy", "seed": 1}
            | {"parts": ("single",), "rehearsal": discreet.Rehearsal, "progress": None},
        ),
        "Rehearsal": (
            discreet.Rehearsal,
            {"strategy": BETS, "people": 10, "source": NoNoise(), "arms": 2},
        ),
        "make_hard_instances": (discreet.make_hard_instances, {}),
        "Results.error_interval": (results().error_interval, {"level": 0.9}),
        "Results.save": (results().save, {"path": folder / "other.parquet"}),
        "Results.load": (Results.load, {"path": saved}),
        "Sampled.read": (
            discreet.Sampled.read,
            {"path": data, "arm": "arm", "outcome": "outcome", "range": (0, 1)}
            | {"direction": "max", "out_of_range": "refuse"},
        ),
    }


def _here(trial: Trial) -> dict[str, Call]:
    """What only a trial in a database of one's own has."""
    if not hasattr(trial, "record"):
        return {}
    return {
        "Trial.record": (trial.record, {"limit": 3, "before": 9}),
    }


def lives(url: str) -> dict[str, Call]:
    """A live trial, with people whose outcomes are not in."""
    rules: dict[str, Any] = {"sites": ["x", "y"], "returning": "same-arm"}
    trial = Trial.create(url, "t", ["a", "b", "c"], BETS, 10**6, **rules)
    local = Trial.create(url, "local", ["a", "b"], LOCAL, 100)
    id, own = trial.ask(site="x", participant="1").assignments[0].id, local.ask().assignments[0].id
    text = trial.transcript()
    new = {"url": url, "name": "new", "arms": ["a", "b"], "strategy": BETS, "max_participants": 9}
    new |= {"retain": "until-release", "range": (0, 1), "direction": "max"}
    new |= {"out_of_range": "refuse", "randomisation": None}
    new |= {"sites": ["x"], "deadline": None, "release": "complete", "enrolment": "waiting"}
    new |= {"returning": "same-arm", "blinding": "codes", "user": None, "token": None, "ca": None}
    response = discreet.respond(1, 1.0)
    return _here(trial) | {
        "Trial.create": (Trial.create, new),
        "Trial.open": (
            Trial.open,
            {"url": url, "name": "t", "head": None, "user": None, "token": None, "ca": None},
        ),
        "Trial.ask": (
            trial.ask,
            {"n": 1, "participants": None, "site": "x", "participant": "p", "key": None},
        ),
        "Trial.tell": (trial.tell, {"id": id, "outcome": 1}),
        "Trial.tell_many": (trial.tell_many, {"outcomes": {id: 1}}),
        "Trial.answer": (local.answer, {"id": own, "response": response}),
        "Trial.answer_many": (local.answer_many, {"responses": {own: response}}),
        "Trial.amend": (trial.amend, {"id": id, "outcome": 1}),
        "Trial.miss": (trial.miss, {"id": id}),
        "Trial.reissue": (trial.reissue, {"id": id}),
        "Trial.unblind": (trial.unblind, {"id": id, "reason": "a fever", "key": None}),
        "Trial.list_codes": (trial.list_codes, {}),
        "Trial.was_answered": (trial.was_answered, {"key": "k"}),
        "Trial.as_user": (trial.as_user, {"user": "me", "site": "x"}),
        "Trial.manage": (
            trial.manage,
            {"action": "pause", "reason": "rest", "about": None, "seen": None},
        ),
        **{
            f"Trial.manage: {action}": (
                trial.manage,
                {"action": action, "reason": "rest", "about": about},
            )
            for action, about in ACTS.items()
        },
        "Trial.open_assignments": (trial.open_assignments, {"site": "x"}),
        "Trial.audit_trail": (trial.audit_trail, {"limit": 3}),
        "Trial.verify": (trial.verify, {"head": None, "progress": None}),
        "Trial.expire": (trial.expire, {}),
        "Trial.status": (trial.status, {}),
        "Trial.transcript": (trial.transcript, {}),
        "Trial.close": (trial.close, {}),
        "list_trials": (discreet.list_trials, {"url": url, "token": None, "ca": None}),
        "backup_trials": (
            discreet.backup_trials,
            {"url": url, "file": "kept.db", "user": None},
        ),
        "restore_trials": (
            discreet.restore_trials,
            {"file": "kept.db", "url": url, "heads": (), "reason": "lost", "user": None}
            | {"i_know_that_epsilon_is_spent_again": False},
        ),
        "verify_transcript": (
            discreet.verify_transcript,
            {"transcript": text, "head": None, "progress": None},
        ),
        "trial_page": (discreet.trial_page, {"transcript": text}),
        "transcript_frame": (discreet.transcript_frame, {"transcript": text}),
        "respond": (
            discreet.respond,
            {"outcome": 1, "epsilon": 1.0, "gamma": None, "range": (0, 1)}
            | {"direction": "max", "out_of_range": "refuse", "middle_level": None},
        ),
        "Response": (
            discreet.Response,
            {"mechanism": "rr", "epsilon": 1.0, "gamma": None, "value": 1}
            | {"scale": response.scale, "middle_level": None},
        ),
        "Response.parse": (discreet.Response.parse, {"word": str(response)}),
    }


def public_calls() -> set[str]:
    """The public functions and classes, and their methods that take something."""
    found, bench = set(), discreet.Rehearsal  # its methods are for mistakes of one's own
    for name in set(discreet.__all__) - FAR:
        one = getattr(discreet, name)
        if inspect.isclass(one) and not issubclass(one, BaseException):
            found |= {f"{name}.{method}" for method in _methods(one)} if one is not bench else set()
        if callable(one) and not (inspect.isclass(one) and issubclass(one, BaseException)):
            found.add(name)
    return found - RECORDS - MADE_ELSEWHERE


def _methods(one: type) -> set[str]:
    """Those of the class itself that are called with something; of a trial all, also
    those of the classes that it is made of.
    """
    functions = (types.FunctionType, staticmethod, classmethod)
    parts = dict(inspect.getmembers_static(one)) if one is Trial else vars(one)
    return {
        name
        for name, part in parts.items()
        if not name.startswith("_")
        and isinstance(part, functions)
        and (one is Trial or set(inspect.signature(getattr(one, name)).parameters) - {"self"})
    }
