"""The command line: `discreet …`, or `python -m discreet …`. A module for each group of
commands.
"""

from discreet.cli.app import main

__all__ = ["main"]
