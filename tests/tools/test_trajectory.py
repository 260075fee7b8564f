"""Saved runs: whatever a file holds, it is read, or refused with a reason."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import mujoco
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast as hf
from holdfast.tools import trajectory
from holdfast.tools.trajectory import parse_trajectory

MODEL = mujoco.MjModel.from_xml_string(
    "<mujoco><worldbody><body><joint/><geom size='.1'/></body></worldbody></mujoco>"
)
GOOD: dict[str, Any] = {
    "time": np.arange(3.0), "qpos": np.zeros((3, 1)), "qvel": np.zeros((3, 1)),
    "metadata": np.array(json.dumps({"contact": "noslip", "scene": "a.xml"})),
    "event_time": np.array([0.5]), "event_kind": np.array(["impact"]),
    "event_bodies": np.array([["a", "b"]]),
}  # fmt: skip


def packed(**arrays: Any) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def test_a_good_file() -> None:
    run = parse_trajectory(packed(**GOOD), "run.npz")
    run.check(MODEL)
    assert run.no_slip and [str(event) for event in run.events] == ["0.5000 s  impact, a / b"]


@pytest.mark.parametrize(
    "change, reason",
    [
        ({"time": None}, "lacks time"),
        ({"qpos": np.zeros((2, 1))}, "qpos"),
        ({"qpos": np.full((3, 1), np.nan)}, "qpos: is not finite"),
        ({"time": np.array([2.0, 1.0, 0.0])}, "time"),
        ({"time": np.array(["a", "b", "c"])}, "time"),
        ({"metadata": np.array("{")}, "JSON"),
        ({"metadata": np.array("[1]")}, "JSON object"),
        ({"metadata": np.array("[" * 100_000)}, "JSON"),
        ({"qvel": np.array([{}, {}, {}], dtype=object)}, "cannot be read"),
    ],
)
def test_bad_contents_are_refused(change: dict[str, Any], reason: str) -> None:
    arrays = {name: value for name, value in (GOOD | change).items() if value is not None}
    with pytest.raises(hf.InputError, match=reason):
        parse_trajectory(packed(**arrays), "run.npz").check(MODEL)


def test_events_that_make_no_sense_are_left_out() -> None:
    assert parse_trajectory(packed(**GOOD | {"event_time": np.array(["x"])}), "r").events == []
    assert parse_trajectory(packed(**GOOD | {"event_bodies": np.zeros(3)}), "r").events == []


def test_a_file_that_unpacks_to_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trajectory, "LARGEST", 2**20)
    stream = io.BytesIO()
    np.savez_compressed(stream, **GOOD | {"qpos": np.zeros((3, 2**17))})
    assert len(stream.getvalue()) < 2**15
    with pytest.raises(hf.InputError, match="at most"):
        parse_trajectory(stream.getvalue(), "bomb.npz")


def test_a_header_that_promises_too_much_is_refused() -> None:
    stream = io.BytesIO()
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999,), }"
    with zipfile.ZipFile(stream, "w") as file:
        for name in ("time", "qpos", "qvel"):
            start = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little")
            file.writestr(f"{name}.npy", start + header)
    with pytest.raises(hf.InputError, match="cannot be read"):
        parse_trajectory(stream.getvalue(), "huge.npz")


@given(st.binary(max_size=300), st.integers(0, 2000), st.integers(1, 50))
def test_damaged_files_are_refused_or_read(noise: bytes, at: int, length: int) -> None:
    """No other error than ours, whatever bytes there are."""
    good = packed(**GOOD)
    damaged = good[:at] + noise[:length] + good[at + length :]
    for content in (noise, damaged, good[:at]):
        try:
            parse_trajectory(content, "run.npz").check(MODEL)
        except hf.InputError as error:
            assert str(error)
