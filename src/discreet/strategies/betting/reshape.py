"""An arm is dropped by hand, or added: the book and the rounds under way get a row less
or more. Why this keeps the guarantee stands on the docs page "Betting elimination".
"""

from typing import NamedTuple

import numpy as np

from discreet.strategies.betting.ahead import Flight, close
from discreet.strategies.betting.book import Book, new_book
from discreet.strategies.betting.interval import Beside


class Dropped(NamedTuple):
    """What is known of an arm that was dropped by hand."""

    arm: int
    total: list[float]
    """A row of `Book.total`."""
    aside: list[list[float]]
    lift: float
    """See `Beside`."""


def without(row: int, book: Book) -> Book:
    """The book without one arm: everybody else is in, and bets begin anew. What was
    learned about means stays.
    """
    new = new_book(book.out.size - 1, book.wealth.shape[1])
    return new._replace(
        total=np.delete(book.total, row, 0),
        mean=np.delete(book.mean, row),
        precision=np.delete(book.precision, row),
        close=book.close,
    )


def with_one_more(book: Book) -> Book:
    """The book with another arm, the last one, of which nothing is known."""
    one = new_book(1, book.wealth.shape[1])
    by_arm = set(Book._fields) - {"close", "pair", "met"}
    return book._replace(
        **{name: np.concatenate([getattr(book, name), getattr(one, name)]) for name in by_arm}
    )


def beside_without(row: int, beside: Beside) -> Beside:
    """What intervals need of the other arms."""
    return Beside(np.delete(beside.aside, row, 0), np.delete(beside.lift, row))


def beside_with_one_more(beside: Beside) -> Beside:
    """The same with another arm."""
    aside = np.zeros((1, *beside.aside.shape[1:]))
    return Beside(np.concatenate([beside.aside, aside]), np.append(beside.lift, 0.0))


def flight_without(row: int, flight: Flight) -> Flight:
    """A round that was under way when an arm was dropped: closed, and nobody bets on
    it, since whoever dropped the arm may have known of it.
    """
    return close(flight, True)._replace(
        heavy=max(flight.heavy - (flight.heavy >= row), 0),
        playing=np.delete(flight.playing, row),
        dealt=np.delete(flight.dealt, row),
    )


def flight_with_one_more(flight: Flight) -> Flight:
    """A round under way does not know an arm that was added."""
    return flight._replace(
        playing=np.append(flight.playing, False), dealt=np.append(flight.dealt, 0)
    )
