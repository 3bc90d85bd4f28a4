"""Every answer as a table: where there is --json there is --csv, with one value a cell,
and it spoils no file.
"""

import json
import stat
import sys
from pathlib import Path
from typing import Any

import click
import polars as pl
import pytest
from click.testing import CliRunner, Result

from discreet import Trial, bet_se, transcript_frame
from discreet.cli import main
from discreet.tabular import format_csv
from tests.support.tree import commands

WITHOUT = {
    "trial tell": "its --csv is the file that is read",
    "trial export": "its --out is the table",
    "trial report": "its answer is the name of the page",
    "report": "its answer is the name of the page",
    "trial grants": "its answer is a program",
}
"""Commands with --json that write no table, and why."""
ARMS = ("--means", "0.9,0.2", "--epsilon", "1")
FREE = ("--strategy", "bet-se", "--trust", "none", "--delta", "0.3")
ID, RULE = "ID", ("--reason", "a fever")
HELD: dict[str, tuple[tuple[str, ...], set[str]]] = {
    "bounds": (ARMS, {"epsilon", "lower_bound_global", "allocation_t_kl_1"}),
    "simulate": ((*ARMS, "--strategy", "bet-se", "--runs", "3"), {"samples", "pulls_1"}),
    "plan": ((*ARMS, "--runs", "3"), {"strategy", "participants_median", "participants_q90"}),
    "sweep": (("study.toml", "--out", "study"), {"instance", "mean"}),
    "audit correctness": ((*FREE, "--runs", "2"), {"case", "errors", "high", "delta"}),
    "audit privacy": (
        ("--strategy", "bet-se", "--epsilon", "1", "--runs", "40", "--noise", "numpy"),
        {"leak", "hits", "low", "epsilon"},
    ),
    "trial create": (
        ("new", "--arms", "a,b", "--max-participants", "100", *FREE[:4]),
        {"name", "protocol_hash", "head"},
    ),
    "trial list": ((), {"name", "state", "participants"}),
    "trial ask": (("dose", "--site", "x", "--count", "2"), {"id", "arm"}),
    "trial open": (("dose",), {"id", "arm", "site", "age", "deadline"}),
    "trial codes": (("dose",), {"code", "arm"}),
    "trial unblind": (("dose", ID, *RULE), {"id", "arm"}),
    "trial amend": (("dose", ID, "0"), {"accepted"}),
    "trial reissue": (("dose", ID), {"id", "arm"}),
    "trial miss": (("dose", ID), {"accepted"}),
    "trial status": (("dose",), {"arm", "mean", "interval_low", "trial"}),
    "trial expire": (("dose",), {"released", "stopped"}),
    "trial manage": (("dose", "pause", *RULE), {"action", "reason", "head"}),
    "trial audit-trail": (("dose",), {"at", "user", "action", "participants"}),
    "trial transcript": (("dose",), {"event", "kind", "arm"}),
    "trial verify": (("dose",), {"intact", "head", "problem"}),
    "trial backup": (("kept.db",), {"name", "head"}),
    "trial restore": (
        ("kept.db", "--url", "sqlite:///again.db", *RULE, "--i-know-that-epsilon-is-spent-again"),
        {"name", "done"},
    ),
    "token list": ((), {"number", "name", "valid"}),
    "token create": (("ann", "--role", "manager"), {"secret", "token_number"}),
    "token revoke": (("1",), {"revoked"}),
    "respond": (("--epsilon", "1", "--outcome", "1"), {"response", "value"}),
    "verify": (("dose.json",), {"intact", "head", "problem"}),
}
"""What is typed, in this order, and columns of what is written."""
STAFF = {"id", "secret", "code", "user", "token_number"}
"""Columns that not everybody may see: only the owner may read the file."""
STUDY = 'runs = 2\nepsilon = [1.0]\ndelta = 0.1\ninstances = ["mu4"]\n'


def command(*words: str) -> Result:
    return CliRunner().invoke(main, list(words))


@pytest.fixture
def trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trial:
    """One in the usual place, in which staff see codes; with a study beside it."""
    monkeypatch.chdir(tmp_path)
    Path("study.toml").write_text(f'{STUDY}[[strategies]]\npreset = "bet-se"\n')
    rules: dict[str, Any] = {"sites": ["x"], "blinding": "codes"}
    place = "sqlite:///discreet-trials.db"
    return Trial.create(place, "dose", ["a", "b"], bet_se(0.1, 1.0), 1000, **rules)


def test_where_there_is_json_there_is_csv() -> None:
    leaves = {name: one for name, one in commands(main).items() if not isinstance(one, click.Group)}
    options = {name: {word for p in one.params for word in p.opts} for name, one in leaves.items()}
    answering = {name for name, words in options.items() if "--json" in words}
    assert answering - WITHOUT.keys() == HELD.keys() | {"reproduce"}
    assert {name for name in answering if "--csv" not in options[name]} == WITHOUT.keys() - {
        "trial tell"
    }


def test_every_answer_is_a_table(trial: Trial) -> None:
    """None of these is in `WITHOUT`; `reproduce`, which takes minutes, is tested where
    it is made.
    """
    first = trial.ask(site="x").assignments[0].id
    trial.tell(first, 1)
    Path("dose.json").write_text(json.dumps(trial.transcript()))
    for name, (words, wanted) in HELD.items():
        typed = [first if word == ID else word for word in words]
        done = command(*name.split(), *typed, "--csv", "table.csv", "--json")
        assert done.exit_code == 0, (name, done.output)
        table = pl.read_csv("table.csv", infer_schema_length=None)
        assert wanted <= set(table.columns), name
        if STAFF & wanted:
            assert stat.S_IMODE(Path("table.csv").stat().st_mode) == 0o600, name
        if name == "trial reissue":
            first = str(table["id"][0])
        Path("table.csv").unlink()


def test_what_a_small_install_leaves_out_is_named(
    trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Live trials need neither library; what does says so before it works."""
    for library in ("polars", "numba"):
        monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.delitem(sys.modules, "discreet.simulation.compile", raising=False)
    for call in (["ask", "dose", "--site", "x"], ["status", "dose"], ["verify", "dose"]):
        done = command("trial", *call)
        assert done.exit_code == 0, done.output
    runs = ("simulate", *ARMS, "--strategy", "bet-se", "--runs", "2")
    past = ("bounds", "--data", "study.toml", "--arm", "a", "--outcome", "b")
    for words, library in {
        ("bounds", *ARMS, "--csv", "a.csv"): "polars",
        (*runs, "--out", "a.parquet"): "polars",
        ("sweep", "study.toml", "--out", "a"): "polars",
        past: "polars",
    }.items():
        done = command(*words)
        assert done.exit_code == 1, (words, done.output)
        assert done.output.rstrip().endswith(f"pip install {library}")
        assert len(done.output.splitlines()) == 1
    assert not {"a", "a.csv", "a.parquet"} & {path.name for path in Path().iterdir()}


def test_an_empty_list_has_its_columns(trial: Trial) -> None:
    done = command("trial", "open", "dose", "--csv", "table.csv")
    assert done.exit_code == 0, done.output
    assert Path("table.csv").read_text() == "id,arm,site,age,deadline\n"


def test_the_record_is_exported(trial: Trial) -> None:
    trial.ask(5, site="x")
    frame = format_csv(transcript_frame(trial.transcript()))
    for words in (("export", "dose", "--out", "t.csv"), ("transcript", "dose", "--csv", "t.csv")):
        done = command("trial", *words)
        assert done.exit_code == 0, done.output
        assert Path("t.csv").read_text() == frame
        Path("t.csv").unlink()


def test_no_file_is_spoilt(trial: Trial) -> None:
    Path("dose.json").write_text(json.dumps(trial.transcript()))
    names = {path.name for path in Path().iterdir()}
    before = {path: path.read_bytes() for path in Path().glob("*.[jt]*")}
    runs = ("simulate", *ARMS, "--strategy", "bet-se")
    kept = "discreet-trials.db"
    for words, why in {
        ("bounds", "--means", "0.9,0.2", "--csv", "no/a"): "no such folder",
        (*runs, "--out", "both", "--csv", "both"): "a file of its own",
        ("verify", "dose.json", "--csv", "./dose.json"): "a file of its own",
        ("sweep", "study.toml", "--out", "s", "--csv", "study.toml"): "a file of its own",
        ("trial", "status", "dose", "--csv", kept): "it is a database",
        ("trial", "list", "--csv", f"{kept}-wal"): "it is a database",
        ("token", "list", "--csv", f"{kept}-line"): "it is a database",
        ("trial", "export", "dose", "--out", kept): "trial itself is kept there",
    }.items():
        done = command(*words)
        assert done.exit_code == 2, words
        assert why in done.output
    assert {path: path.read_bytes() for path in Path().glob("*.[jt]*")} == before
    assert {path.name for path in Path().iterdir()} == names
    assert trial.verify().intact
