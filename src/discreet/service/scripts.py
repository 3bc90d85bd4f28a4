"""The script that randomises answers in people's browsers, and its hash, which the
protocol of a trial names.
"""

import base64
import hashlib
from functools import lru_cache
from pathlib import Path

from discreet.strategies.strategy import Strategy

STATIC = Path(__file__).parent / "static"
RESPOND = STATIC / "respond.js"
OTHER = (
    "this service's script for randomising answers is not the one that the trial's protocol "
    "names, so it is not used: tell the person who invited you. Your answer can still be "
    "randomised elsewhere, with discreet respond"
)


@lru_cache(maxsize=1)
def script_hash() -> str:
    """The SHA-256 of the script as this installation serves it, in hex."""
    return hashlib.sha256(RESPOND.read_bytes()).hexdigest()


def integrity(hash: str) -> str:
    """A hash, as a browser is told to check it."""
    return "sha256-" + base64.b64encode(bytes.fromhex(hash)).decode()


def script_for(strategy: Strategy) -> str | None:
    """What the protocol of a new trial says of the script, if people answer by it."""
    return script_hash() if strategy.trust_model.randomised else None
