"""`discreet demo`: a dose-finding question from the plan to the report, told in chapters.

Each chapter prints what it found; those before the live trial return it for the report.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table as Grid

from discreet.files import write
from discreet.instance import Bernoulli
from discreet.planning.plan import Plan, gap_scenarios
from discreet.planning.plan import plan as make_plan
from discreet.reports.charts import figures as plots
from discreet.reports.page import Part, Picture, Section, Table, Text, page
from discreet.reports.plan import path_picture, path_words, plan_sections
from discreet.reports.terminal import people, show_plan, show_trial
from discreet.results import Results
from discreet.simulation import engine
from discreet.simulation.paths import RunPath, run_path
from discreet.strategies.strategy import bet_se, recommended

DOSES = Bernoulli((0.35, 0.5, 0.7, 0.55), ("5 mg", "10 mg", "20 mg", "40 mg"))
EPSILON, DELTA, GAP = 0.5, 0.05, 0.15
SEED, RUNS = 1, 500
QUESTION = (
    "Which of four doses of a drug helps most patients? We want to be wrong at most one time in twenty (δ = 0.05), "
    "keep every patient's outcome private (ε = 0.5), and enrol as few patients as possible. A trusted data office "
    "sees outcomes; all that leaves it are noisy means."
)


def demo(report: Path, folder: Path, console: Console) -> None:
    """Tell the story, and write the report; the live trial and its transcript go to a new folder."""
    console.print(f"{QUESTION}\n(The first time, compiling the simulator takes half a minute or so.)")
    plan = the_plan(console)
    path = one_trial(console)
    trials, free = without_privacy(console, path)
    write_report(report, plan, path, trials, free)
    live_trial(console, folder)
    _heading(console, 5, "The reports")
    console.print("The plan and the simulated trial with pictures, and the live trial; pages that need no network:")
    for file in (report, folder / "live-trial.html", folder / "transcript.json"):
        console.print(str(file.absolute()), soft_wrap=True)


def _heading(console: Console, number: int, words: str) -> None:
    console.print(f"\n{number}  {words}\n{'─' * (len(words) + 3)}")


def the_plan(console: Console) -> Plan:
    """How many patients, before anything is known but what difference matters."""
    _heading(console, 1, "The plan")
    console.print(
        f"About half of the patients respond, and a dose better than the others by {GAP:g} is worth finding. The plan "
        "takes the hardest case that fits these words, and three levels of privacy.\n"
    )
    plan = make_plan(gap_scenarios(DOSES.arms, GAP, 0.5), (0.1, EPSILON, 1.0), DELTA, runs=RUNS, seed=SEED)
    show_plan(plan, console)
    return plan


def one_trial(console: Console) -> RunPath:
    """One simulated trial, look by look: what the outside world sees of it."""
    _heading(console, 2, "One trial, step by step")
    console.print(
        f"Now a trial at ε = {EPSILON:g}, simulated. In truth the doses help 35, 50, 70 and 55 % of patients; nobody "
        "knows that. At each look the mean of every dose still in question is released, with noise. '±' is half of a "
        "95 % confidence interval for all looks together.\n"
    )
    path = run_path(DOSES, recommended(EPSILON, DELTA).strategy, SEED)
    grid = Grid(box=box.SIMPLE_HEAD)
    for heading in HEAD:
        grid.add_column(heading, justify="right", no_wrap=True)
    for cells in looks(path):
        grid.add_row(*cells)
    console.print(grid)
    for words in story(path):
        console.print(words)
    return path


HEAD = ("look", "people", *DOSES.names)


def looks(path: RunPath) -> list[list[str]]:
    """A row for each look: people so far, and for every dose its released mean or that it is out."""
    rows, out = [], np.zeros(len(path.names), np.bool_)
    for number, people_now in enumerate(path.samples):
        cells = [
            f"{mean:.2f} ± {min(half, 1.0):.2f}" if fresh else "out" if gone else "–"
            for mean, half, fresh, gone in zip(
                path.means[number], path.bonus[number], path.released[number], out, strict=True
            )
        ]
        rows.append([str(number + 1), f"{people_now:,.0f}", *cells])
        out = path.evidence[number] >= 1
    return rows


def story(path: RunPath) -> list[str]:
    """Which dose goes out when, and the answer."""
    words, out = [], np.zeros(len(path.names), np.bool_)
    for number, people_now in enumerate(path.samples):
        gone = (path.evidence[number] >= 1) & ~out
        if gone.any():
            names = " and ".join(name for name, left in zip(path.names, gone, strict=True) if left)
            words.append(f"After {people_now:,.0f} patients: the evidence against {names} suffices, out.")
        out = path.evidence[number] >= 1
    answer = f"Only {path.names[path.recommendation]} is left: the answer, after {people(path.samples[-1])} patients."
    return [*words, answer]


def without_privacy(console: Console, path: RunPath) -> tuple[Results, Results]:
    """What such trials take on average, private and not."""
    _heading(console, 3, "What it would have taken without privacy")
    trials = engine.simulate(DOSES, bet_se(DELTA, EPSILON), RUNS, SEED)
    free = engine.simulate(DOSES, bet_se(DELTA, trust="none"), RUNS, SEED)
    for words in comparison(path, trials, free):
        console.print(words)
    return trials, free


def comparison(path: RunPath, trials: Results, free: Results) -> Sequence[str]:
    """The price of privacy in sentences."""
    private, plain = (float(found.samples.mean()) for found in (trials, free))
    return (
        f"{RUNS} such trials took {people(private)} patients on average, {people(plain)} without privacy: privacy "
        f"makes the trial {private / plain:.2g} times as long. This one took {people(path.samples[-1])}.",
        f"The right dose was named in {trials.correct.mean():.1%} of the private trials.",
    )


def live_trial(console: Console, folder: Path) -> None:
    """The same on people: a real trial with durable storage and exact noise, only that the people are simulated."""
    from discreet.reports.trial import trial_page
    from discreet.trials.outcomes import chance
    from discreet.trials.trial import Trial

    _heading(console, 4, "A live trial")
    file = folder / "trial.db"
    console.print(
        f"This is no simulation of a trial but a trial, kept in {file.name}; only its people are made up. Whoever "
        "enrols people asks for assignments and tells outcomes; the trial releases noisy sums, erases the outcomes, "
        "and stops by itself. Its noise comes from the system and cannot be repeated, so each time it ends otherwise.\n"
    )
    strategy = recommended(EPSILON, DELTA).strategy
    trial = Trial.create(f"sqlite:///{file}", "dose-finding", DOSES.names, strategy, max_people=20_000)
    rates = dict(zip(DOSES.names, DOSES.means, strict=True))
    while not (batch := trial.ask(500)).stopped:
        trial.tell_many({person.id: chance(rates[person.arm]) for person in batch.assignments})
    transcript = trial.transcript()
    for line in transcript_lines(transcript):
        console.print(line)
    show_trial(trial.status(), console)
    intact = "intact" if trial.verify().intact else "NOT INTACT"
    console.print(f"Recomputed from the public record alone: {intact}.")
    write(folder / "transcript.json", json.dumps(transcript, indent=1, ensure_ascii=False))
    write(folder / "live-trial.html", trial_page(transcript))


def transcript_lines(transcript: dict[str, Any]) -> list[str]:
    """The public record in sentences, assignments summed up."""
    lines, assigned = ["Its transcript, which may be published:"], 0
    for event in transcript["events"]:
        assigned += len(event.get("arms", ()))
        for one in event.get("releases", ()):
            mean = one["sum"] * event["unit"] / one["count"]
            words = f"{one['count']:>5} outcomes of {transcript['protocol']['arms'][one['arm']]}"
            lines.append(
                f"  {event['seq']:>3}  after {assigned:>5} people: {words:<26} mean {mean:6.3f}  ε = {one['epsilon']:g}"
            )
    return [*lines, ""]


def write_report(file: Path, plan: Plan, path: RunPath, trials: Results, free: Results) -> None:
    """The same on a page, with pictures."""
    done = plots.distribution({"no privacy": free, f"ε = {EPSILON:g}": trials})
    picture = Picture(
        plots.render(plots.draw_distribution(done)),
        "Share of the trials that have ended, against people enrolled, with privacy and without",
        "Share of the trials that have an answer, against the patients enrolled by then.",
    )
    trial: list[Part] = [Text(path_words(path)), Table(HEAD, looks(path)), Text(" ".join(story(path)))]
    sections = [
        *plan_sections(plan, trial=False),
        Section("One trial, step by step", [*trial, path_picture(path)]),
        Section("Without privacy", [Text(" ".join(comparison(path, trials, free))), picture]),
    ]
    write(file, page("Dose finding in private: a demonstration", sections, QUESTION))
