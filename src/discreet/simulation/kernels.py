"""Compiles the leaf modules (`MODULES`) with Numba and runs them; the only file that imports numba.

Simulated rewards and noise are drawn in laws.py, phased.py, stream.py and dpse.py only. One numpy Generator per run is
the only source of randomness, drawn from in an order that compiled, uncompiled and naive runs share:

* phased: for each arm in turn the sum of phase 1, then its noise; later the sum and the noise of each ended phase (one
  global episode: of every arm in turn);
* unphased: one reward (then one noise) a sample, the first K for arms 0 ... K-1;
* DP-SE: in each epoch, for each active arm in turn, the sum and the noise.

With NUMBA_DISABLE_JIT=1 everything runs as plain Python with the same results.
"""

import hashlib
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar, cast

import numba
import numpy as np

from discreet.arrays import Flags, Floats, Ints
from discreet.simulation import laws as laws_module
from discreet.simulation.laws import BERNOULLI, BETA, DISCRETE, Generator, Laws, bernoulli, beta, discrete, responses
from discreet.simulation.loops import betting as play
from discreet.strategies import decision
from discreet.strategies import epochs as dpse
from discreet.strategies.betting import rounds as betting
from discreet.strategies.decision import ELIMINATION, PhasedRules, StreamRules
from discreet.strategies.phased import counts as board
from discreet.strategies.phased import decide as phased
from discreet.strategies.phased import leap
from discreet.strategies.phased.decide import NEVER, Release, State, Thresholds, passes_with
from discreet.strategies.phased.leap import Board
from discreet.strategies.stream import decide as stream_module
from discreet.strategies.stream.decide import Stream

__all__ = [
    "BERNOULLI",
    "BETA",
    "DISCRETE",
    "NEVER",
    "Board",
    "Laws",
    "Release",
    "State",
    "Stream",
    "advance",
    "bernoulli",
    "best_arm",
    "beta",
    "discrete",
    "new_board",
    "new_state",
    "new_stream",
    "record",
    "release_all",
    "responses",
    "run_dpse",
    "run_dpse_block",
    "run_global",
    "run_phased",
    "run_phased_block",
    "run_stream",
    "tracked",
    "travel",
]

F = TypeVar("F", bound=Callable[..., Any])

MODULES = (decision, board, leap, laws_module, phased, stream_module, dpse)
"""Leaf modules: plain functions on arrays, compiled here."""


# --- compiling ------------------------------------------------------------------------------------


def user_cache() -> Path:
    """The user's cache folder by the platform's custom."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "discreet"


def source_hash() -> str:
    """Names the kernel cache: Numba does not notice a change in a file other than the function's own."""
    digest = hashlib.sha256(numba.__version__.encode())
    for file in (*(module.__file__ for module in (*MODULES, betting, play)), __file__):
        digest.update(Path(str(file)).read_bytes())
    return digest.hexdigest()[:16]


def _ours(folder: Path) -> bool:
    """Whether nobody else could put kernels of theirs there."""
    status = folder.stat()
    return not hasattr(os, "getuid") or (status.st_uid == os.getuid() and not status.st_mode & 0o022)


def kernel_cache() -> Path | None:
    """A writable folder for compiled kernels: the user's, else a private temporary one; None if there is neither."""
    name = f"kernels-{source_hash()}"
    user = getattr(os, "getuid", lambda: "user")()
    for base in (user_cache, lambda: Path(tempfile.gettempdir()) / f"discreet-{user}"):
        try:
            folder = base() / name
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                pass
        except (OSError, RuntimeError):
            continue
        if all(_ours(place) for place in (folder, folder.parent)):
            return folder
    return None


_CACHE = kernel_cache()


def jitted(function: F, cache: bool, **options: Any) -> F:
    """Compile without the GIL, if asked cached in `kernel_cache`; Numba's own cache setting is left as it was."""
    config: Any = numba.config
    before = config.CACHE_DIR
    config.CACHE_DIR = str(_CACHE or "")
    try:
        cache = cache and _CACHE is not None
        return cast(F, numba.njit(nogil=True, error_model="numpy", cache=cache, **options)(function))
    finally:
        config.CACHE_DIR = before


def entry(function: F) -> F:
    """Compile what Python calls: it may allocate, and it is cached together with all it calls."""
    return jitted(function, True)


def inner(function: F) -> F:
    """Compile what kernels call: no allocation, hence no counting of references, which costs more than the work.

    Numba otherwise counts on every array taken out of a NamedTuple, with an atomic instruction each time. These have no
    way in from Python (a call would crash), which halves the time to compile; Python calls `leaf` of them.
    """
    inline = function.__name__ in INLINED
    splice = "always" if function.__name__ in SPLICED else "never"
    return jitted(
        function,
        False,
        _nrt=False,
        forceinline=inline,
        inline=splice,
        no_cpython_wrapper=True,
        no_cfunc_wrapper=True,
    )


INLINED = (
    *("fill_rest", "misplaced", "line_covers", "newton_level", "fill_guess", "guess_ended", "land"),
    *("pulls_to_end", "expected_end"),
)
"""Leaves put into their callers by LLVM: passing a Board copies some ninety words."""
SPLICED = ("uncovered", "try_landing", "leap_fixed", "travel", "advance")
"""Big leaves with one caller, put into it before compiling: each level of calls would optimise them once more."""
_LEAVES: dict[str, Any] = {}


def bound(function: F) -> F:
    """A copy of a leaf that calls the compiled leaves."""
    source = cast(FunctionType, function)
    copy = FunctionType(source.__code__, _LEAVES, source.__name__, source.__defaults__)
    copy.__module__ = source.__module__
    return cast(F, copy)


def compile_leaves() -> None:
    """Compile the functions of the leaf modules so that they call each other compiled; each when first needed."""
    for module in MODULES:
        _LEAVES.update(vars(module))
    names = {module.__name__ for module in MODULES}
    for name, source in list(_LEAVES.items()):
        if isinstance(source, FunctionType) and source.__module__ in names:
            _LEAVES[name] = entry(bound(source)) if name.startswith("new_") else inner(bound(source))


def leaf(function: F) -> F:
    """A leaf as Python may call it, compiled when first called."""
    return entry(bound(function))


def compiled(function: F) -> F:
    """A leaf as kernels call it."""
    return cast(F, _LEAVES[function.__name__])


def __getattr__(name: str) -> Any:
    """Every other function of the leaf modules is here as well, uncompiled."""
    for module in MODULES:
        if isinstance(vars(module).get(name), FunctionType):
            return vars(module)[name]
    raise AttributeError(name)


compile_leaves()
best_arm = leaf(decision.best_arm)
tracked = leaf(leap.tracked)
travel = leaf(leap.travel)
release_all = leaf(phased.release_all)
record = leaf(phased.record)
advance = leaf(phased.advance)
new_board = compiled(leap.new_board)
new_state = compiled(phased.new_state)
new_stream = compiled(stream_module.new_stream)
phased_loop = compiled(phased.phased_loop)
stream_loop = compiled(stream_module.stream_loop)
dpse_loop = compiled(dpse.dpse_loop)


# --- phased estimators ----------------------------------------------------------------------------


@entry
def run_phased(
    rng: Generator,
    laws: Laws,
    release: Release,
    rules: PhasedRules,
    leaping: bool,
    max_samples: int,
    pulls: Ints,
    trace: Floats,
) -> tuple[int, int, bool, int]:
    """One run with one episode per arm: (samples, recommendation, stopped, rounds); writes `pulls` and `trace`."""
    state = new_state(pulls.size)
    result = phased_loop(rng, laws, release, rules, leaping, max_samples, state, trace)
    for arm in range(pulls.size):
        pulls[arm] = state.board.pulls[arm]
    return result


@entry
def run_phased_block(
    rng: Generator,
    laws: Laws,
    release: Release,
    rules: PhasedRules,
    max_samples: int,
    samples: Ints,
    recommendation: Ints,
    stopped: Flags,
    rounds: Ints,
    pulls: Ints,
) -> None:
    """As many leaping runs as the outputs have rows, one after the other on one Generator.

    Making a Generator and handing it over costs about what a run does, and holds back the other threads; here it
    is paid once a block.
    """
    arms = pulls.shape[1]
    none = np.empty((0, 4 + arms))
    for run in range(samples.size):
        state = new_state(arms)
        samples[run], recommendation[run], stopped[run], rounds[run] = phased_loop(
            rng, laws, release, rules, True, max_samples, state, none
        )
        for arm in range(arms):
            pulls[run, arm] = state.board.pulls[arm]


def run_global(
    rng: Generator,
    laws: Laws,
    release: Release,
    rules: PhasedRules,
    thresholds: Thresholds,
    bonus: Callable[[int], float],
    leaping: bool,
    max_samples: int,
    pulls: Ints,
    trace: Floats,
) -> tuple[int, int, bool, int]:
    """One run with one global episode (paper, app. rounds of adaptivity).

    Counts are no powers of two here, so thresholds (low, high) and bonus are Python functions of the counts, called at
    phase ends only: there are about log2(samples) of them. Sampling in between is compiled like that of `run_phased`.
    """
    if rules.sampling == ELIMINATION:
        raise ValueError("elimination does not fit one global episode: a dropped arm never doubles")
    arms = pulls.size
    state = new_state(arms)
    samples, rounds, arm = arms, 0, arms - 1
    while True:
        if arm >= 0:
            release_all(rng, laws, release, state)
            record(trace, rounds, samples, arm, state)
            rounds += 1
            state.bonus[:] = [bonus(int(count)) for count in state.counts]
        best = best_arm(state.mean, state.active)
        stopped = arm >= 0 and all(
            passes_with(state, rules, best, other, thresholds) for other in range(arms) if other != best
        )
        if stopped or samples >= max_samples:
            break
        arm, samples = advance(state, rules, leaping, samples, max_samples, True)
    pulls[:] = state.board.pulls
    return samples, int(best), stopped, rounds


# --- every sample released ------------------------------------------------------------------------


@entry
def run_stream(
    rng: Generator, laws: Laws, noise: float, rules: StreamRules, max_samples: int, pulls: Ints, trace: Floats
) -> tuple[int, int, bool, int]:
    """One run that releases every sample: (samples, recommendation, stopped, rounds); writes `pulls` and `trace`."""
    stream = new_stream(pulls.size)
    result = stream_loop(rng, laws, noise, rules, max_samples, stream, trace)
    for arm in range(pulls.size):
        pulls[arm] = stream.pulls[arm]
    return result


# --- DP-SE ----------------------------------------------------------------------------------------


@entry
def run_dpse(
    rng: Generator, laws: Laws, epsilon: float, delta: float, max_samples: int, pulls: Ints, trace: Floats
) -> tuple[int, int, bool, int]:
    """One run of DP-SE: (samples, recommendation, stopped, rounds); writes `pulls` and `trace`."""
    mean, active = np.empty(pulls.size), np.empty(pulls.size, np.bool_)
    return dpse_loop(rng, laws, epsilon, delta, max_samples, mean, active, pulls, trace)


@entry
def run_dpse_block(
    rng: Generator,
    laws: Laws,
    epsilon: float,
    delta: float,
    max_samples: int,
    samples: Ints,
    recommendation: Ints,
    stopped: Flags,
    rounds: Ints,
    pulls: Ints,
) -> None:
    """As many runs of DP-SE as the outputs have rows, one after the other on one Generator.

    Handing a Generator over costs five times what a run does; here it is paid once a block.
    """
    arms = pulls.shape[1]
    mean, active, none = np.empty(arms), np.empty(arms, np.bool_), np.empty((0, 4 + arms))
    for run in range(samples.size):
        samples[run], recommendation[run], stopped[run], rounds[run] = dpse_loop(
            rng, laws, epsilon, delta, max_samples, mean, active, pulls[run], none
        )


# --- bet-se ---------------------------------------------------------------------------------------


BETTING: dict[str, Any] = {**vars(betting), **vars(play)}
"""The names that the compiled leaves of betting.py and play.py see: each other."""


def betting_leaf(function: F) -> F:
    """Compile a leaf of betting.py or play.py so that it calls the other leaves compiled."""
    source = cast(FunctionType, function)
    copy = FunctionType(source.__code__, BETTING, source.__name__, source.__defaults__)
    copy.__module__ = source.__module__
    BETTING[source.__name__] = entry(copy)
    return cast(F, BETTING[source.__name__])


for _leaf in (*betting.LEAVES, *play.LEAVES):
    betting_leaf(cast(Callable[..., Any], _leaf))


def run_betting(
    rng: Generator,
    laws: Laws,
    bets: betting.Bets,
    setting: betting.Setting,
    max_samples: int,
    pulls: Ints,
    trace: Floats,
) -> tuple[int, int, bool, int]:
    """One run of bet-se: (samples, recommendation, stopped, rounds); writes `pulls` and `trace`.

    Rewards are rounded at random to bits, so their means are all that a law has to say.
    """
    found = BETTING["play_betting"](rng, laws.mean, bets, setting, max_samples, pulls, trace)
    return cast(tuple[int, int, bool, int], found)
