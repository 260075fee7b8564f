"""Run other people's code where it can do no harm: in a child that may hang, crash or overeat.

A peer that loops for ever, runs out of memory or dies of a segmentation fault costs one item,
not the run. Children are forked, so problems are shared without copying. POSIX only.
"""

from __future__ import annotations

import multiprocessing
import resource
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Limits:
    """What a child may use.

    Attributes:
        seconds: per item.
        bytes: of memory on top of what the parent has.
    """

    seconds: float = 20.0
    bytes: float = 4e9


@dataclass(frozen=True)
class Outcome:
    """What became of one item.

    Attributes:
        value: the function's value; None if there is none.
        failure: why there is no value; empty if there is one.
    """

    value: Any = None
    failure: str = ""


def run_isolated(
    function: Callable[[Any], Any], items: Sequence[Any], limits: Limits
) -> Iterator[Outcome]:
    """Apply a function to items in a child process; a fresh child after each mishap."""
    done = 0
    while done < len(items):
        context = multiprocessing.get_context("fork")
        reader, writer = context.Pipe(duplex=False)
        arguments = (writer, function, items[done:], limits)
        child = context.Process(target=_work, args=arguments, daemon=True)
        child.start()
        writer.close()
        for outcome in _receive(reader, len(items) - done, limits):
            done += 1
            yield outcome
        child.kill()
        child.join()
        reader.close()


def _receive(reader: Connection, count: int, limits: Limits) -> Iterator[Outcome]:
    """Outcomes from a child, the last one a mishap if it did not get through all its items."""
    for _ in range(count):
        if not reader.poll(limits.seconds):
            yield Outcome(failure=f"more than {limits.seconds:g} s")
            return
        try:
            yield reader.recv()
        except EOFError:
            yield Outcome(failure="crashed or out of memory")
            return


def _work(
    writer: Connection, function: Callable[[Any], Any], items: Sequence[Any], limits: Limits
) -> None:
    """Body of a child."""
    _limit_memory(limits.bytes)
    for item in items:
        try:
            outcome = Outcome(function(item))
        except MemoryError:
            outcome = Outcome(failure="out of memory")
        except Exception as error:  # whatever a peer throws is a reported failure
            outcome = Outcome(failure=f"{type(error).__name__}: {error}")
        writer.send(outcome)


def _limit_memory(extra: float) -> None:
    """Let this process grow by `extra` bytes at most, where the system can tell its size."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        size = int(statm.read_text().split()[0]) * resource.getpagesize()
        most = size + int(extra)
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))
