"""Where compiled kernels are kept, and how processes that start together share the work.

A kernel is looked for, and kept, in the first of these directories that can be written, or that
has it already: the one that NUMBA_CACHE_DIR names, ``__pycache__`` beside the source, the user's
cache directory, and one of the user's own among the temporary files. So an installation that was
warmed up may be read-only afterwards; and where nothing can be written, kernels are compiled in
each process, and a message says so.

The stamp of a cached kernel is made of the contents of all sources that kernels are made of, not of
their dates: nodes of a cluster that share a directory agree on it.

Who compiles a kernel holds a lock on its directory. A second process waits for the first one, and
then finds the kernel.
"""

# pyright: reportIncompatibleMethodOverride=false
# (Types of Numba's abstract methods are those of their empty bodies.)

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from numba import config
from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    NullCache,
    _CacheLocator,
    _SourceFileBackedLocatorMixin,
)
from numba.core.compiler_lock import global_compiler_lock

_WITHOUT_KERNELS = ("_command.py", "_html.py", "gym.py")  # modules of the package itself
_WITH_KERNELS = ("linalg", "lcp", "contact", "models", "mujoco", "events")
_LOCK = "holdfast.lock"
_REFERENCE = 0.0034  # [s] that `_speed` takes where compilation was timed
NOWHERE = (
    "holdfast: no directory for compiled kernels is writable, neither {tried}; they are compiled "
    "again in every process. Set NUMBA_CACHE_DIR to a writable directory"
)
TEMPORARY = (
    "holdfast: the installation and the user's cache directory cannot be written; compiled kernels "
    "are kept in {path}. Set NUMBA_CACHE_DIR to a persistent directory"
)
NOT_KEPT = "holdfast: a compiled kernel could not be saved in {path}: {error}"


@cache
def tell(text: str) -> None:
    """Say something on stderr, once."""
    print(text, file=sys.stderr, flush=True)


def sources() -> list[Path]:
    """Files of the package that may hold kernels: an edit of one compiles them again."""
    root = Path(__file__).parent
    own = [file for file in root.glob("*.py") if file.name not in _WITHOUT_KERNELS]
    return sorted([*own, *(file for name in _WITH_KERNELS for file in (root / name).rglob("*.py"))])


@cache
def stamp() -> str:
    """A digest of all sources of kernels, and of MuJoCo's version, whose structs they know."""
    root, digest = Path(__file__).parent, hashlib.sha256()
    for file in sources():
        digest.update(
            file.relative_to(root).as_posix().encode() + b"\0" + file.read_bytes() + b"\0"
        )
    with contextlib.suppress(PackageNotFoundError):
        digest.update(version("mujoco").encode())
    return digest.hexdigest()


@cache
def can_write(path: str) -> bool:
    """Whether files can be made in a directory, which is made if need be."""
    try:
        os.makedirs(path, exist_ok=True)
        tempfile.TemporaryFile(dir=path).close()
    except OSError:
        return False
    return True


def _temporary() -> str | None:
    """A directory of the user's own among the temporary files; None if there cannot be one.

    Cached kernels are run: nobody else may be able to write there.
    """
    user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
    try:
        path = os.path.join(tempfile.gettempdir(), f"holdfast-{user}")
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o700)
        found = os.lstat(path)
    except OSError:  # also if there is no directory for temporary files
        return None
    own = not hasattr(os, "getuid") or (found.st_uid == os.getuid() and not found.st_mode & 0o022)
    return path if stat.S_ISDIR(found.st_mode) and own else None


def directories(file: str) -> Iterator[str]:
    """Directories for the kernels of a source file, the best one first."""
    part = _CacheLocator.get_suitable_cache_subpath(file)
    given = getattr(config, "CACHE_DIR", "")
    if given:
        yield os.path.join(given, part)
    yield os.path.join(os.path.dirname(file), "__pycache__")
    with contextlib.suppress(OSError, RuntimeError):
        yield os.path.join(_user_directory(), part)
    temporary = _temporary()
    if temporary is not None:
        yield os.path.join(temporary, part)


def _user_directory() -> str:
    from numba.misc.appdirs import AppDirs

    return AppDirs(appname="numba", appauthor=False).user_cache_dir


class _Locator(_SourceFileBackedLocatorMixin, _CacheLocator):
    """A directory that was chosen."""

    def __init__(self, function: Any, file: str, path: str) -> None:
        self._py_file, self._lineno, self._path = file, function.__code__.co_firstlineno, path

    def get_cache_path(self) -> Any:
        """The directory."""
        return self._path

    def get_source_stamp(self) -> Any:
        """What the sources were when a kernel was kept."""
        return stamp()


def _implementation(path: str) -> type[CompileResultCacheImpl]:
    """What Numba asks for the files of a kernel in a directory."""

    class Locator(_Locator):
        @classmethod
        def from_function(cls, py_func: Any, py_file: str) -> Locator:
            return cls(py_func, py_file, path)

    class Implementation(CompileResultCacheImpl):
        _locator_classes = [Locator]  # noqa: RUF012

    return Implementation


class KernelCache(FunctionCache):
    """The cache of a kernel, in a directory that can be written or has the kernel already."""

    def __init__(self, function: Any, path: str) -> None:
        self._impl_class = _implementation(path)
        super().__init__(function)

    def has_any(self) -> bool:
        """Whether the kernel is there, for some types of arguments."""
        with contextlib.suppress(Exception):  # what cannot be read is not there
            return bool(self._cache_file._load_index())
        return False

    def has(self, signature: Any, target: Any) -> bool:
        """Whether the kernel is there for these types of arguments."""
        with contextlib.suppress(Exception):
            key = self._index_key(signature, target.codegen())
            return key in self._cache_file._load_index()
        return False

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The kernel, or None; a file that is damaged is compiled again."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the kernel; if the disk is full it works all the same."""
        try:
            super().save_overload(sig, data)
        except OSError as error:
            if can_write(self.cache_path):  # a read-only one was chosen for what it has
                tell(NOT_KEPT.format(path=self.cache_path, error=error))


def cache_of(function: Any) -> Any:
    """A cache for a kernel; one that keeps nothing if no directory serves."""
    file = function.__code__.co_filename
    for path in directories(file):
        if can_write(path):
            return KernelCache(function, path)
        if os.path.isdir(path):
            found = KernelCache(function, path)
            if found.has_any():
                return found
    return NullCache()


def _warn_of_place(cached: Any, file: str) -> None:
    """Say where kernels are kept if they will not last."""
    if isinstance(cached, NullCache):
        tell(NOWHERE.format(tried=" nor ".join(dict.fromkeys(directories(file)))))
    elif (temporary := _temporary()) is not None and cached.cache_path.startswith(temporary):
        tell(TEMPORARY.format(path=temporary))


@contextlib.contextmanager
def compiling(cached: Any, signature: Any, target: Any, file: str,
              announcement: Callable[[], str] | None = None) -> Iterator[None]:  # fmt: skip
    """Compile or load a kernel in here: no other process compiles it at the same time.

    Args:
        cached: its cache.
        signature: types of its arguments.
        target: Numba's target context.
        file: its source.
        announcement: what to say on stderr if it has to be compiled.
    """
    if isinstance(cached, KernelCache) and cached.has(signature, target):
        yield
        return
    _warn_of_place(cached, file)
    # Numba's lock comes first, as in threads that compile one of ours from a function of the user.
    with global_compiler_lock, _turn(cached) as waited:
        there = waited and isinstance(cached, KernelCache) and cached.has(signature, target)
        if announcement is not None and not there and (text := announcement()):
            tell(text)
        yield


@cache
def _lock_of(path: str, _process: int) -> FileLock:
    """The lock of a directory: one object for all kernels, which compile within each other.

    A process that is forked needs one of its own.
    """
    return FileLock(os.path.join(path, _LOCK))


@contextlib.contextmanager
def _turn(cached: Any) -> Iterator[bool]:
    """Hold the lock of a directory, if it can be locked; whether somebody else had it."""
    if not isinstance(cached, KernelCache) or not can_write(cached.cache_path):
        yield False
        return
    lock, waited, held = _lock_of(cached.cache_path, os.getpid()), False, False
    try:
        lock.acquire(timeout=0)
        held = True
    except Timeout:
        tell("holdfast: another process is compiling; waiting for it")
        waited = True
        with contextlib.suppress(OSError, NotImplementedError):
            lock.acquire()
            held = True
    except (OSError, NotImplementedError):  # a file system without locks: twice is better than not
        pass
    try:
        yield waited
    finally:
        if held:
            lock.release()


def estimate(seconds: float) -> str:
    """How long something will take here that took so long where it was timed, in words."""
    wanted = seconds * _speed() / _REFERENCE
    step = 5 if wanted < 60 else 30
    return f"about {max(step, step * round(wanted / step))} s"


def _speed() -> float:
    """Processor time of a bit of Python, which is most of what compilers do here [s]."""
    best = float("inf")
    for _ in range(3):
        start = time.thread_time()
        names = {f"x{i}": (i, str(i)) for i in range(12000)}
        sorted(names.values(), key=lambda pair: pair[1])
        best = min(best, time.thread_time() - start)
    return best
