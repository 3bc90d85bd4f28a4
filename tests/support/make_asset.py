"""Makes tests/assets/trial-v<schema>.db: `python -m tests.support.make_asset`, once for
each version of the schema.
"""

from pathlib import Path

from discreet import adap_tt_star
from discreet.trials.store import schema
from discreet.trials.trial import Trial


def main() -> None:
    path = Path(__file__).parent.parent / "assets" / f"trial-v{schema.SCHEMA}.db"
    if path.exists():
        raise SystemExit(f"{path} is there: an old version is never made again")
    url, arms = f"sqlite:///{path}", ["5 mg", "10 mg", "20 mg"]
    trial = Trial.create(
        url, "dose-finding", arms, adap_tt_star(epsilon=1.0, delta=0.05), max_people=500
    )
    while trial.status().people < 23:
        for assignment in trial.ask(1).assignments:
            trial.tell(assignment.id, 1.0 if assignment.arm == "10 mg" else 0.25)
    trial.ask(1)
    trial.close()


if __name__ == "__main__":
    main()
