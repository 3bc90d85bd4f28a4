"""The command line: `discreet …`, or `python -m discreet …`."""

from discreet.cli.app import main

__all__ = ["main"]
