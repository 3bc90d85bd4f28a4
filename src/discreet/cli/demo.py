"""The story of `discreet demo`: a dose-finding trial from the plan to the published page."""

import json
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from discreet.cli.output import quiet_warnings
from discreet.errors import DiscreetError
from discreet.files import check_writable, write_file
from discreet.instances import Bernoulli
from discreet.planning.plan import Plan
from discreet.planning.plan import plan as make_plan
from discreet.planning.scenarios import make_gap_scenarios
from discreet.reports import charts
from discreet.reports.document import Document, Figure, Paragraph, Part, Section, Table
from discreet.reports.html import render, take_picture
from discreet.reports.plan import build_plan, build_plan_sections, describe_path, draw_path_figure
from discreet.reports.terminal import print_table, say
from discreet.reports.terminal import render as print_document
from discreet.reports.trial import build_status, trial_page
from discreet.results import Results
from discreet.simulation import engine
from discreet.simulation.paths import RunPath, run_path
from discreet.strategies.presets import bet_se, recommended
from discreet.trials import mechanisms
from discreet.trials.responses import flip_coin
from discreet.trials.trial import Trial
from discreet.wording import format_participants

DOSES = Bernoulli((0.35, 0.5, 0.7, 0.55), ("5 mg", "10 mg", "20 mg", "40 mg"))
EPSILON = 0.5
DELTA = 0.05
GAP = 0.15
SEED = 1
RUNS = 500
HEAD = ("look", "patients", *DOSES.names)
QUESTION = (
    "Which of four doses of a drug helps most patients? We want to be wrong at most one time in "
    "twenty (δ = 0.05), keep every patient's outcome private (ε = 0.5), and enrol as few "
    "patients as possible. A trusted data office sees the outcomes; only noisy means leave it."
)


def tell_story(report: Path, folder: Path) -> None:
    """Tell the story, and write the report; the live trial and its transcript go to a
    new folder.
    """
    say(f"{QUESTION}\n(The first time, compiling the simulator takes half a minute or so.)")
    plan = the_plan()
    path = one_trial()
    trials, free = without_privacy(path)
    write_report(report, plan, path, trials, free)
    live_trial(folder)
    the_service(folder)
    _heading(6, "The reports")
    say(
        "The plan and the simulated trial with pictures, and the live trial, as pages that need "
        "no network:"
    )
    for file in (report, folder / "live-trial.html", folder / "transcript.json"):
        say(str(file.absolute()), wrap=False)


def _heading(number: int, words: str) -> None:
    say(f"\n{number}  {words}\n{'─' * (len(words) + 3)}")


def the_plan() -> Plan:
    """Plan the trial from the difference that matters alone, show the plan and return it."""
    _heading(1, "The plan")
    say(
        "About half of the patients respond, and a dose that is better than the others by "
        f"{GAP:g} is worth finding. The plan takes the hardest case that fits this description, "
        "and three levels of privacy.\n"
    )
    plan = make_plan(
        make_gap_scenarios(DOSES.arms, GAP, 0.5), (0.1, EPSILON, 1.0), DELTA, runs=RUNS, seed=SEED
    )
    print_document(build_plan(plan, example=False))
    return plan


def one_trial() -> RunPath:
    """One simulated trial, look by look: what the outside world sees of it."""
    _heading(2, "One trial, step by step")
    say(
        f"Now a trial at ε = {EPSILON:g}, simulated. In truth the doses help 35, 50, 70 and 55 % "
        "of patients, but nobody knows that. At each look the mean of every dose still in "
        "question is released, with noise. '±' is half the width of a 95 % confidence interval for "
        "all looks together.\n"
    )
    path = run_path(DOSES, recommended(EPSILON, DELTA, target_difference=GAP).strategy, SEED)
    print_table(Table(HEAD, looks(path)))
    for words in story(path):
        say(words)
    return path


def looks(path: RunPath) -> list[list[str]]:
    """Return a row for each look: patients so far, and for every dose its estimate or
    that it is eliminated.
    """
    rows, out = [], np.zeros(len(path.names), np.bool_)
    halves = (path.high - path.low) / 2
    for number, people_now in enumerate(path.samples):
        cells = [
            f"{mean:.2f} ± {half:.2f}" if fresh else "eliminated" if gone else "–"
            for mean, half, fresh, gone in zip(
                path.means[number], halves[number], path.released[number], out, strict=True
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
            words.append(
                f"After {people_now:,.0f} patients there is enough evidence against {names}, which "
                "is dropped."
            )
        out = path.evidence[number] >= 1
    answer = (
        f"Only {path.names[path.recommendation]} is left: the answer, after "
        f"{format_participants(path.samples[-1])} patients."
    )
    return [*words, answer]


def without_privacy(path: RunPath) -> tuple[Results, Results]:
    """Simulate such trials with and without privacy, compare them and return both."""
    _heading(3, "What it would have taken without privacy")
    trials = engine.simulate(DOSES, bet_se(DELTA, EPSILON, target_difference=GAP), RUNS, SEED)
    free = engine.simulate(DOSES, bet_se(DELTA, trust="none", target_difference=GAP), RUNS, SEED)
    for words in comparison(path, trials, free):
        say(words)
    return trials, free


def comparison(path: RunPath, trials: Results, free: Results) -> Sequence[str]:
    """Return the cost of privacy in sentences."""
    private, plain = (float(found.samples.mean()) for found in (trials, free))
    return (
        f"{RUNS} such trials took {format_participants(private)} patients on average, "
        f"{format_participants(plain)} without privacy: privacy makes the trial "
        f"{private / plain:.2g} times as long. This one took "
        f"{format_participants(path.samples[-1])}.",
        f"The right dose was named in {trials.correct.mean():.1%} of the private trials.",
    )


def live_trial(folder: Path) -> None:
    """Run a live trial with durable storage and exact noise, in which only the patients
    are simulated.
    """
    _heading(4, "A live trial")
    file = folder / "trial.db"
    say(
        f"This is not a simulation but a real trial, kept in {file.name}; only its patients "
        "are simulated. Staff enrol patients and record their outcomes; the trial "
        "releases noisy sums, erases the outcomes, and stops by itself. Its noise comes from "
        "the system and cannot be repeated, so it ends differently each time.\n"
    )
    strategy = recommended(EPSILON, DELTA, target_difference=GAP).strategy
    trial = Trial.create(
        f"sqlite:///{file}", "dose-finding", DOSES.names, strategy, max_participants=20_000
    )
    rates = dict(zip(DOSES.names, DOSES.means, strict=True))
    while not (batch := trial.ask(500)).stopped:
        trial.tell_many({one.id: flip_coin(rates[one.arm]) for one in batch.assignments})
    transcript = trial.transcript()
    for line in transcript_lines(transcript):
        say(line)
    print_document(build_status(trial.status()))
    intact = "intact" if trial.verify().intact else "NOT INTACT"
    say(f"Recomputed from the public record alone: {intact}.")
    write_file(folder / "transcript.json", json.dumps(transcript, indent=1, ensure_ascii=False))
    write_file(folder / "live-trial.html", trial_page(transcript))


def the_service(folder: Path) -> None:
    """Show the published page of the live trial, as the service serves it."""
    from importlib.util import find_spec

    _heading(5, "The trial as a service")
    say(
        "With discreet serve, hospitals enrol patients and record outcomes in a browser, and "
        "everybody else can follow the trial. This is the published page of the live trial.\n"
    )
    if find_spec("starlette") is None:
        say('The service is not installed: pip install "discreet[serve]".')
        return

    show_pages(f"sqlite:///{folder / 'trial.db'}", "dose-finding", folder)


def transcript_lines(transcript: dict[str, Any]) -> list[str]:
    """Return the releases of the public record as lines of text."""
    lines, assigned = ["Its transcript, which may be published:"], 0
    for event in transcript["events"]:
        assigned += len(event.get("arms", ()))
        releases = event.get("releases", ())
        what = "lead" if any(one["sum"] is None for one in releases) else "mean"
        for one in releases:
            words = f"{one['count']:>5} outcomes of {transcript['protocol']['arms'][one['arm']]}"
            if one["sum"] is not None and one["count"]:
                value = one["sum"] * event["unit"] / one["count"]
                words = f"{words:<26} {what} {value:6.3f}  ε = {one['epsilon']:g}"
            lines.append(f"  {event['seq']:>3}  after {assigned:>5} patients: {words}")
    return [*lines, ""]


def write_report(file: Path, plan: Plan, path: RunPath, trials: Results, free: Results) -> None:
    """Write the report of the demo, with charts."""
    done = charts.distribution({"no privacy": free, f"ε = {EPSILON:g}": trials})
    picture = Figure(
        lambda: charts.render(charts.draw_distribution(done)),
        "Share of the trials that have ended, against patients enrolled, with privacy and without",
        "Share of the trials with a result, against the patients enrolled by then.",
    )
    trial: list[Part] = [
        Paragraph(describe_path(path)),
        Table(HEAD, looks(path)),
        Paragraph(" ".join(story(path))),
    ]
    sections = [
        *build_plan_sections(plan, example=False),
        Section("One trial, step by step", [*trial, draw_path_figure(path)]),
        Section("Without privacy", [Paragraph(" ".join(comparison(path, trials, free))), picture]),
    ]
    write_file(
        file, render(Document("Dose finding in private: a demonstration", sections, QUESTION))
    )


SIZE = "1100,3600"
"""The page from its head to the record."""


def show_pages(url: str, name: str, folder: Path) -> None:
    """Publish the trial, take a picture of its page, and say how to look at it
    oneself.
    """
    with _served(url, name) as address:
        picture = _pictured(f"{address}/p/{name}", folder / "service.png")
    if picture is None:
        say(
            "There is no picture: neither chromium nor chrome was found, or it made none. The "
            "page was served for a moment."
        )
    else:
        say("The page was served for a moment, and a browser took a picture of it:")
        say(str(picture.absolute()), wrap=False)
    say(
        "To look at the trial in your own browser as its manager, run this command and open "
        "the link that it prints."
    )
    say(f"discreet serve --url {url}", wrap=False)


@contextmanager
def _served(url: str, name: str) -> Iterator[str]:
    """The address of a service of the trials, until it is left; the trial is
    published.
    """
    from discreet.service.server import ServerConfig, make_server, open_listener
    from discreet.service.state import AppState

    place = ServerConfig(port=0)
    with open_listener(place) as door, closing(AppState(url, who="discreet demo")) as home:
        home.token_table.publish(name, "discreet demo")
        server = make_server(home, place)
        thread = threading.Thread(target=server.run, args=([door],), name="service")
        thread.start()
        try:
            yield replace(place, port=door.getsockname()[1]).url
        finally:
            server.end()
            thread.join()


def _pictured(address: str, file: Path) -> Path | None:
    """A picture of a page, if there is a browser that makes one."""
    try:
        take_picture(address, file, SIZE)
    except DiscreetError:
        return None
    return file


def run_demo(out: str | None) -> None:
    """Show the demo, and write its report to `out`, or into a new folder."""
    mechanisms.load_opendp()
    charts.require_matplotlib()
    if out is not None:
        check_writable(out)
    folder = Path(tempfile.mkdtemp(prefix="discreet-demo-"))
    with quiet_warnings():
        tell_story(Path(out) if out else folder / "report.html", folder)
