"""Everything discreet raises on purpose. Each message says what is wrong and what to do
about it.

DiscreetError ├── InvalidInputError     a value outside its range, or values that do not
fit together (also a ValueError) │   └── TiedBestArmError  a quantity that needs a
unique best arm was asked of an instance without one ├── MissingExtraError     a library
that a part needs is not installed; says how to install it (also an ImportError) ├──
StoreError            the database of a trial cannot be read or written; nothing was
done │   └── TamperedError     the record of a trial is not what was written, or older
than what is known of it ├── RefusedError          a service does not let this caller do
this: it has no token, or one for something else └── NoConvergenceError    a numerical
method did not reach its tolerance; please report it with the input

Warnings (UserWarning) say that what was asked for was done, and what to know of it.
"""

import inspect
import warnings


class DiscreetError(Exception):
    """The base class of all our errors: `except DiscreetError` catches everything that
    discreet raises on purpose.
    """


class InvalidInputError(DiscreetError, ValueError):
    """A value outside its range, or values that do not fit together."""


class TiedBestArmError(InvalidInputError):
    """Two or more arms share the largest mean where one must be best."""


class MissingExtraError(DiscreetError, ImportError):
    """A library that belongs to an extra is not installed."""


class NoConvergenceError(DiscreetError):
    """A numerical method did not reach its tolerance."""


class StoreError(DiscreetError):
    """The database of a trial cannot be read or written."""


class TamperedError(StoreError):
    """The record of a trial was changed, or restored from a backup."""


class RefusedError(DiscreetError):
    """A service refused a caller who may not do what they asked for."""

    def __init__(self, words: str, known: bool = True) -> None:
        super().__init__(words)
        self.known = known
        """Whether the caller has a token at all."""


class RoundedWarning(UserWarning):
    """Outcomes that are numbers are rounded to yes or no, which takes more people than
    necessary.
    """


class ErasingWarning(UserWarning):
    """Outcomes that a trial erases stay readable in the files of the database for a
    while, because the database user lacks the right to clean up there.
    """


class LoggedOutcomesWarning(UserWarning):
    """The database server writes outcomes into its log."""


class ReadableFileWarning(UserWarning):
    """The file in which trials are kept is open to other users of the machine."""


def warn_caller(words: str, kind: type[Warning]) -> None:
    """Warn at the line that called discreet, however deep in it this is."""
    frame, level = inspect.currentframe(), 1
    while frame is not None and frame.f_globals.get("__name__", "").startswith("discreet."):
        frame, level = frame.f_back, level + 1
    warnings.warn(words, kind, stacklevel=level)
