"""How a process of the service works at an even pace."""

import gc
import sys

from discreet.trials import mechanisms

SWITCH = 0.0005
"""Seconds after which a thread that computes lets others: whoever leads a commit waits
for the database a dozen times, and each time anew behind the event loop.
"""
GARBAGE = 20_000
"""New objects after which garbage is looked for: some hundred calls."""


def settle_down() -> None:
    """Let calls be served at an even pace: threads take turns often, what releases
    need is loaded, and what was loaded is not looked through for garbage with every few
    calls.
    """
    mechanisms.load()
    sys.setswitchinterval(SWITCH)
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE)
