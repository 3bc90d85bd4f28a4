"""Compiles leaves with Numba: the only module that imports it.

`compiled(function)` is a marked function (see `discreet.jit`) as Python may call it,
with every leaf that it calls compiled too. Leaves are found by identity in the
namespace of the module they are written in; each is compiled when first needed. With
NUMBA_DISABLE_JIT=1 everything runs as plain Python with the same results.
"""

import hashlib
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar, cast

import numba

from discreet import jit
from discreet.jit import marks


@contextmanager
def notify_of_compilation(tell: Callable[[], None]) -> Iterator[None]:
    """Call `tell` when the first kernel meanwhile is compiled; not if all of them are
    kept from before.
    """
    from numba.core import event

    class Once(event.Listener):
        """Listen for the first compilation."""

        told = False

        def on_start(self, event: Any) -> None:
            """Call `tell` if this kernel is the first to be compiled."""
            if not self.told:
                self.told = True
                tell()

        def on_end(self, event: Any) -> None:
            """Do nothing."""

    with event.install_listener("numba:compile", Once()):
        yield


F = TypeVar("F", bound=Callable[..., Any])
Function = Callable[..., Any]


class Compiler:
    """Compile marked functions so that they call each other compiled.

    `replaced` puts other functions in the place of leaves; then nothing is cached, as
    Numba knows a function by its own code only.
    """

    def __init__(self, replaced: Mapping[Function, Function] | None = None) -> None:
        self.replaced = dict(replaced or {})
        self.cache = not self.replaced
        self.lock = threading.RLock()
        self.spaces: dict[str, dict[str, Any]] = {}
        self.inner: dict[Function, Any] = {}
        self.entries: dict[Function, Any] = {}

    def compile(self, function: F) -> F:
        """Return a marked function as Python may call it."""
        with self.lock:
            if function not in self.entries:
                mark = marks[cast(FunctionType, function)]
                as_called = self._compile_callee(function)
                self.entries[function] = (
                    as_called if mark.allocates else self._compile_entry(function)
                )
        return cast(F, self.entries[function])

    def _compile_callee(self, function: Function) -> Any:
        """Return a marked function as other marked functions call it."""
        function = self.replaced.get(function, function)
        if function not in self.inner:
            mark = marks[cast(FunctionType, function)]
            self.inner[function] = (
                self._compile_entry(function)
                if mark.allocates
                else self._compile_inner(function, mark)
            )
        return self.inner[function]

    def _compile_entry(self, function: Function) -> Any:
        """Compile what Python calls: it may allocate, and it is cached together with
        all it calls.
        """
        return _compile_with_numba(self._bind(function), self.cache)

    def _compile_inner(self, function: Function, mark: jit.Mark) -> Any:
        """Compile what only leaves call: no allocation, hence no counting of
        references, which costs much.

        Numba otherwise counts on every array taken out of a NamedTuple, with an atomic
        instruction each time. These have no way in from Python (a call would crash),
        which halves the time to compile.
        """
        return _compile_with_numba(
            self._bind(function),
            False,
            _nrt=False,
            forceinline=mark.inlined,
            inline="always" if mark.spliced else "never",
            no_cpython_wrapper=True,
            no_cfunc_wrapper=True,
        )

    def _bind(self, function: Function) -> FunctionType:
        """Return a copy of a marked function that calls the compiled ones."""
        source = cast(FunctionType, function)
        copy = FunctionType(
            source.__code__,
            self._make_namespace(source.__module__),
            source.__name__,
            source.__defaults__,
        )
        copy.__module__ = source.__module__
        return copy

    def _make_namespace(self, module: str) -> dict[str, Any]:
        """Return the names that the marked functions of a module see, with those
        functions compiled.
        """
        if module not in self.spaces:
            names = vars(sys.modules[module])
            self.spaces[module] = space = dict(names)
            space |= {
                name: self._compile_callee(value)
                for name, value in names.items()
                if _is_marked(value)
            }
        return self.spaces[module]


_compiler = Compiler()


def compile_kernel(function: F) -> F:
    """Return a marked function as Python may call it, compiled when it is first called."""
    return _compiler.compile(function)


def leave_uncompiled(function: F) -> F:
    """Return a marked function as it is: what can stand in the place of
    `compile_kernel`.
    """
    return function


def _is_marked(value: object) -> bool:
    return isinstance(value, FunctionType) and value in marks


def _compile_with_numba(function: FunctionType, cache: bool, **options: Any) -> Any:
    """Compile without the GIL, if asked cached in `find_kernel_cache`; Numba's own cache
    setting is left as it was.
    """
    config: Any = numba.config
    before = config.CACHE_DIR
    folder = find_kernel_cache() if cache else None
    config.CACHE_DIR = str(folder or "")
    try:
        return numba.njit(nogil=True, error_model="numpy", cache=folder is not None, **options)(
            function
        )
    finally:
        config.CACHE_DIR = before


# --- where kernels are kept -----------------------------------------------------------


def hash_sources() -> str:
    """Return the name of the kernel cache: Numba does not notice a change in a file
    other than the function's own.
    """
    digest = hashlib.sha256(numba.__version__.encode())
    for content in _read_sources():
        digest.update(content)
    return digest.hexdigest()[:16]


def _read_sources() -> Iterator[bytes]:
    """Yield the files in which marked functions, or named tuples that they may work on,
    are written; imported or not.
    """
    package = Path(jit.__file__).parent
    yield Path(jit.__file__).read_bytes()
    yield Path(__file__).read_bytes()
    for room in ("theory", "strategies", "simulation"):
        for file in sorted((package / room).rglob("*.py")):
            content = file.read_bytes()
            if b"@jit" in content or b"(NamedTuple)" in content:
                yield content


def find_user_cache() -> Path:
    """Return the user's cache folder by the platform's custom."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "discreet"


def _is_protected(folder: Path) -> bool:
    """Return whether nobody else can put kernels of theirs into a folder."""
    status = folder.stat()
    return not hasattr(os, "getuid") or (
        status.st_uid == os.getuid() and not status.st_mode & 0o022
    )


@lru_cache(maxsize=1)
def find_kernel_cache() -> Path | None:
    """Return a writable folder for compiled kernels: the user's, else a private
    temporary one; None if there is neither.
    """
    name = f"kernels-{hash_sources()}"
    user = getattr(os, "getuid", lambda: "user")()
    for base in (find_user_cache, lambda: Path(tempfile.gettempdir()) / f"discreet-{user}"):
        try:
            folder = base() / name
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                pass
        except (OSError, RuntimeError):
            continue
        if all(_is_protected(place) for place in (folder, folder.parent)):
            return folder
    return None
