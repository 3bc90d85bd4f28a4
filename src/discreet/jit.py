"""Marks the functions that the simulator compiles. It knows no compiler: a marked
function stays plain Python.

A marked function works on arrays, numbers and named tuples of them, with ``math`` for scalars, and
calls only marked functions. The live trial runs them as they stand;
`discreet.simulation.compile` finds them by their mark.
"""

from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple, TypeVar, cast, overload

F = TypeVar("F", bound=Callable[..., Any])


class Mark(NamedTuple):
    """How a marked function is compiled."""

    allocates: bool = False
    """It makes arrays, or takes slices of them; all others must not."""
    inlined: bool = False
    """Put into its callers by LLVM: passing a large named tuple copies every word of
    it.
    """
    spliced: bool = False
    """Big and with one caller, put into it before compiling: each level of calls would
    optimise it once more.
    """


marks: dict[FunctionType, Mark] = {}
"""Every marked function of the modules that have been imported."""


@overload
def jit(function: F) -> F: ...
@overload
def jit(*, allocates: bool = ..., inlined: bool = ..., spliced: bool = ...) -> Callable[[F], F]: ...
def jit(
    function: Any = None, *, allocates: bool = False, inlined: bool = False, spliced: bool = False
) -> Any:
    """Mark a function for the compiler: `@jit`, or `@jit(allocates=True)`."""

    def mark(function: F) -> F:
        marks[cast(FunctionType, function)] = Mark(allocates, inlined, spliced)
        return function

    return mark if function is None else mark(function)
