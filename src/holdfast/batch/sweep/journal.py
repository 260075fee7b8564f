"""The journal of a sweep: a line of JSON for every finished case, on the disk before it counts.

Lines are only ever appended. A process that is killed leaves a line that is not complete at most;
it is dropped when the journal is opened again. So that cases that are under way when the disk
fills up can still be noted, some room is reserved ahead: zero bytes after the last line.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from holdfast.errors import InputError, SweepError

try:
    import fcntl
except ImportError:  # Windows: two sweeps at once into one file are not noticed
    fcntl = None

FORMAT = 1
ROOM = 64 * 1024  # bytes that are reserved ahead: some hundred lines


class Journal:
    """A journal that is open for writing.

    Args:
        path: made if it is not there.
        stamp: of what makes the results; those of another stamp are refused.
        fresh: discard what is there.

    Attributes:
        rows: what was in the journal, by the key of the case; the last line of a key counts.
        damaged: number of lines that could not be read.
        full: why no more room can be reserved; empty if there is room.
    """

    def __init__(self, path: Path, stamp: dict[str, Any], *, fresh: bool = False) -> None:
        self.path, self.full, self.damaged = path, "", 0
        self.rows: dict[str, dict[str, Any]] = {}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
        except OSError as error:
            raise InputError("out", f"{path} cannot be written: {error.strerror}") from error
        try:
            self._lock()
            if fresh:
                os.ftruncate(self._file, 0)
            self._end = self._reserved = 0
            self._read(stamp)
        except BaseException:
            os.close(self._file)
            raise

    def _lock(self) -> None:
        if fcntl is None:
            return
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InputError("out", f"another sweep is writing {self.path}; wait for it, or name "
                             "another file") from error  # fmt: skip
        except OSError:  # a file system without locks
            return

    def _read(self, stamp: dict[str, Any]) -> None:
        """Read what is there and go to the end of the last complete line."""
        with open(self.path, "rb") as file:
            text = file.read()
        text = text[: text.rfind(b"\n") + 1]
        head, *lines = text.split(b"\n")
        if text:
            self._check(head, json.loads(json.dumps(stamp)))
        for line in filter(None, lines):
            try:
                row = json.loads(line.lstrip(b"\0"))
                self.rows[row["key"]] = row
            except (ValueError, KeyError, TypeError):
                self.damaged += 1
        self._end = len(text)
        os.ftruncate(self._file, self._end)
        self._reserved = self._end
        if not text:
            self._write_line({"format": FORMAT, "stamp": stamp})
        self._reserve()

    def _check(self, head: bytes, stamp: dict[str, Any]) -> None:
        try:
            found = json.loads(head)
            there = found["stamp"] if found["format"] == FORMAT else None
        except (ValueError, KeyError, TypeError):
            there = None
        if not isinstance(there, dict):
            raise InputError("out", f"{self.path} is not the journal of a sweep; name another file")
        differ = sorted(k for k in {*there, *stamp} if there.get(k) != stamp.get(k))
        if differ:
            what = "; ".join(f"{k} was {there.get(k)}, is {stamp.get(k)}" for k in differ)
            raise InputError("out", f"{self.path} has results of another sweep ({what}); name "
                             "another file, or discard them with fresh=True (--fresh)")  # fmt: skip

    def append(self, row: dict[str, Any]) -> None:
        """Note a finished case, on the disk when this returns.

        Raises:
            SweepError: not even the reserved room is left; the journal is as before.
        """
        try:
            self._write_line(row)
        except OSError as error:
            self.full = error.strerror or str(error)
            raise SweepError(f"{self.path}: {self.full}") from error
        self.rows[row["key"]] = row
        if self._reserved - self._end < ROOM // 2:
            self._reserve()

    def _write_line(self, row: dict[str, Any]) -> None:
        line = json.dumps(row, separators=(",", ":")).encode() + b"\n"
        try:
            os.lseek(self._file, self._end, os.SEEK_SET)
            left = memoryview(line)
            while left:
                left = left[os.write(self._file, left) :]
            os.fsync(self._file)
        except OSError:
            os.ftruncate(self._file, self._end)  # needs no room
            self._reserved = self._end
            raise
        self._end += len(line)
        self._reserved = max(self._reserved, self._end)

    def _reserve(self) -> None:
        """Have `ROOM` bytes after the last line; note in `full` if there are none."""
        wanted = self._end + ROOM - self._reserved
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(self._file, self._reserved, wanted)
            else:
                os.lseek(self._file, self._reserved, os.SEEK_SET)
                wanted = os.write(self._file, bytes(wanted))
            self._reserved += wanted
        except OSError as error:
            self.full = error.strerror or str(error)

    def close(self) -> None:
        """Give back the reserved room; the journal stays."""
        os.ftruncate(self._file, self._end)
        os.close(self._file)
