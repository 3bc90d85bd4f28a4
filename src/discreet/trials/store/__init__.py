"""Where trials live: tables, transactions, databases. The keeper of SQLAlchemy."""

from discreet.errors import MissingExtraError

try:
    import sqlalchemy  # noqa: F401
except ImportError:
    raise MissingExtraError('live trials need SQLAlchemy: pip install "discreet[live]"') from None
