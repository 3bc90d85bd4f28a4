"""Tables for other programs: one value a cell, CSV that reads back, nothing that a
spreadsheet or a browser would run.
"""

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from discreet import (
    Bernoulli,
    InvalidInputError,
    Study,
    Trial,
    bet_se,
    bounds,
    plan,
    run_study,
    simulate,
    transcript_frame,
)
from discreet.tabular import flatten, format_csv, make_frame
from discreet.trials.transcript import _event_rows

SCRIPT = "<script>alert('1')</script>"
FORMULA = "=HYPERLINK(1)"
ARMS = Bernoulli([0.9, 0.2], [SCRIPT, FORMULA])


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One of each that can be had as a table; names are script and a formula."""
    folder = tmp_path_factory.mktemp("frames")
    where = f"sqlite:///{folder}/trials.db"
    trial = Trial.create(where, SCRIPT, list(ARMS.names), bet_se(0.1, 4.0), max_participants=50)
    trial.tell_many({one.id: 1 for one in trial.ask(10).assignments})
    days: dict[str, Any] = {"accrual": 5, "delay": 3, "deadline": 7}
    return {
        "results": simulate(ARMS, bet_se(0.1, 1.0), runs=3, **days),
        "plan": plan(ARMS, [1.0], 0.1, runs=3, budget=400, **days),
        "bounds": bounds(ARMS, [0.1, 1.0]),
        "no ε": bounds(ARMS),
        "status": trial.status(),
        "trial": trial,
        "where": where,
        "study": run_study(Study({SCRIPT: ARMS}, [bet_se(0.1, 1.0)], runs=2), folder / "study"),
    }


def frames(shown: dict[str, Any]) -> dict[str, pl.DataFrame]:
    """All of them as frames; a study's table is one."""
    made = {name: one.to_frame() for name, one in shown.items() if hasattr(one, "to_frame")}
    return made | {"study": shown["study"]}


def test_every_frame_is_written_and_read_back(shown: dict[str, Any], tmp_path: Path) -> None:
    for name, frame in frames(shown).items():
        assert not any(kind.is_nested() for kind in frame.dtypes), name
        frame.write_csv(tmp_path / "frame.csv")
        frame.write_excel(tmp_path / "frame.xlsx")
        with zipfile.ZipFile(tmp_path / "frame.xlsx") as book:
            sheet = book.read("xl/worksheets/sheet1.xml").decode()
        assert sheet.count("<row ") == 1 + len(frame), name
        assert "<f>" not in sheet, name  # a formula
        for again in (
            pl.read_csv(tmp_path / "frame.csv", infer_schema_length=None),
            pl.read_csv(io.StringIO(format_csv(frame)), infer_schema_length=None),
        ):
            assert again.columns == frame.columns, name
            assert len(again) == len(frame), name
            for column, kind in frame.schema.items():
                if kind.is_numeric():
                    found, wanted = again[column].cast(kind), frame[column]
                    assert found.is_null().to_list() == wanted.is_null().to_list(), column
                    assert found.drop_nulls().to_list() == pytest.approx(
                        wanted.drop_nulls().to_list(), rel=1e-14, abs=0
                    ), column


def test_rows(shown: dict[str, Any]) -> None:
    made = frames(shown)
    assert made["status"]["arm"].to_list() == list(ARMS.names)
    assert set(made["status"]["trial"]) == {SCRIPT}
    assert made["bounds"]["epsilon"].to_list() == [0.1, 1.0]
    assert len(made["no ε"]) == 1
    rows = made["plan"]
    assert rows["participants_median"].count() == 2 + len(shown["plan"].enrolments)
    assert rows["days_median"].count() == len(shown["plan"].enrolments)
    of = dict(rows.group_by("table").len().iter_rows())
    lists = ("no_privacy", "per_epsilon", "enrolments", "power", "affordable")
    assert of == {name: len(getattr(shown["plan"], name)) for name in lists}
    assert {"gap", "conclusive_interval_low", "epsilon_interval_high"} < set(rows.columns)
    assert set(rows["trust"].drop_nulls()) == {"global", "none"}
    runs = made["results"]
    assert (runs["pulls_0"] + runs["pulls_1"]).to_list() == runs["samples"].to_list()


def test_no_text_is_a_formula(shown: dict[str, Any]) -> None:
    for name, frame in frames(shown).items():
        for row in pl.read_csv(io.StringIO(format_csv(frame)), infer_schema=False).rows():
            texts = [text for text in row if text and text[0] in "=+@"]
            assert not texts, name
    assert f"'{FORMULA}" in format_csv(shown["status"].to_frame())
    mixed = pl.DataFrame({"=a": [-1.5, None], "b": [True, None]})
    assert format_csv(mixed) == "'=a,b\n-1.5,TRUE\n,\n"


@pytest.mark.parametrize("name", ["results", "plan", "bounds", "no ε", "status"])
def test_a_notebook_shows_names_as_text(shown: dict[str, Any], name: str) -> None:
    text = shown[name]._repr_html_()
    assert "<table" in text
    assert "<script" not in text
    if name in ("bounds", "status"):
        assert "&lt;script&gt;" in text
    if name in ("results", "status"):
        assert "wrong with probability at most 0.1" in text


def test_numbers(tmp_path: Path) -> None:
    frame = make_frame([{"mean": 1897.9999999999998, "share": 1 / 3, "unit": 2.0**-40}])
    assert format_csv(frame) == "mean,share,unit\n1898.0,0.3333333333333333,9.094947017729282e-13\n"
    trial = Trial.create(f"sqlite:///{tmp_path}/t.db", "t", ["a", "b"], bet_se(0.1, 4.0), 50)
    kinds = trial.status().to_frame().schema
    assert {kinds[name] for name in ("mean", "interval_low", "interval_high")} == {pl.Float64}
    assert kinds["recommendation"] == pl.String


def test_flat() -> None:
    assert flatten({"a-b": {"c": [1, [2]]}, "interval": None, "d_interval": (3, 4)}) == {
        **{"a_b_c_0": 1, "a_b_c_1_0": 2, "interval_low": None, "interval_high": None},
        **{"d_interval_low": 3, "d_interval_high": 4},
    }
    frame = make_frame([{"a": 1, "b": True, "c": "x", "d": None}, {"a": 0.5, "e": 2}])
    assert frame.dtypes == [pl.Float64, pl.Boolean, pl.String, pl.String, pl.Int64]


# --- transcripts ----------------------------------------------------------------------


def test_a_transcript_is_a_table_of_what_it_says(shown: dict[str, Any]) -> None:
    record = shown["trial"].transcript()
    frame = transcript_frame(record)
    assert pl.read_csv(io.StringIO(format_csv(frame))).columns == frame.columns
    assert set(frame["event"]) == {event["seq"] for event in record["events"]}
    dealt = [arm for one in record["events"] if one["kind"] == "assigned" for arm in one["arms"]]
    people = frame.filter(pl.col("kind") == "assigned")
    assert people["arm"].to_list() == [ARMS.names[arm] for arm in dealt]
    assert people["participant"].to_list() == list(range(1, len(dealt) + 1))
    told = json.dumps(record)
    for name in frame.columns:
        inner = name.split("_")[0]
        assert inner in ("event", "participant", "arm", "mean") or f'"{inner}"' in told, name


def test_means_are_in_units_of_the_outcomes() -> None:
    protocol = {"arms": ["A", "B"], "range": [0.0, 400.0], "direction": "min"}
    batches = [{"arm": 0, "count": 8, "sum": 24}, {"arm": 1, "count": 8, "sum": None}]
    body = {"seq": 1, "kind": "released", "releases": batches, "unit": 0.25}
    record: dict[str, Any] = {"protocol_hash": "", "status": {}}
    for trust, more, means in (
        ("global", {}, [100.0, None]),
        ("global", {"margin": 0}, [None, None]),
        ("local", {}, None),
    ):
        record |= {"protocol": {**protocol, "strategy": {"trust": trust}}, "events": [body | more]}
        frame = transcript_frame(record)
        found = frame["mean"].to_list() if "mean" in frame.columns else None
        assert found == means, trust


def test_single_answers_and_added_arms_have_rows() -> None:
    names = ["A", "B"]
    added = {"seq": 2, "kind": "managed", "action": "add-arm", "about": "C", "reason": "r"}
    assert _event_rows(dict(added), names)[0]["about"] == "C"
    ended = {"seq": 3, "kind": "stopped", "conclusive": True, "recommendation": 2}
    assert _event_rows(ended, names)[0]["recommendation"] == "C"
    answered = {"seq": 4, "kind": "answered", "answers": [[1, 0], [2, 1]], "unit": 1.0}
    assert [(row["participant"], row["answer"]) for row in _event_rows(answered, names)] == [
        (1, 0),
        (2, 1),
    ]


def test_what_is_no_transcript_is_refused() -> None:
    wrong: dict[str, Any] = {"protocol": {"arms": ["A"]}, "protocol_hash": "", "status": {}}
    for events in ([{"kind": "assigned"}], [1], [{"seq": 1, "kind": "released", "releases": 3}]):
        with pytest.raises(InvalidInputError, match="are not as they should be"):
            transcript_frame({**wrong, "events": events})
