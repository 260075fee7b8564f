"""What notebooks show: tables that a parser accepts, with the values in them."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import mujoco
import numpy as np
import pytest

import holdfast as hf
from holdfast import _html
from holdfast.tools import scenes
from holdfast.tools.compare import compare
from holdfast.tools.progress import progress_bar
from holdfast.tools.verify import verify


class Table(HTMLParser):
    """Cells of the tables in a text, by rows; complains about tags that do not match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.rows: list[list[str]] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


def shown(thing: Any) -> list[list[str]]:
    rows = Table(thing._repr_html_()).rows
    assert len({len(row) for row in rows}) == 1
    return rows


def problem() -> hf.ContactProblem:
    return hf.ContactProblem(M=np.eye(2), v=[1.0, -3.0], N=[[0.0, 1.0]], S=[[1.0, 0.0]], mu=[0.5])


def test_problem_and_solution() -> None:
    assert ["contacts", "N, S, T", "1"] in shown(problem())
    assert ["friction", "mu", "0.5"] in shown(problem())
    head, row = shown(hf.Coulomb().solve(problem()))
    assert head[2] == "normal [N s]" and row[:5] == ["0", "sticks", "3", "1", "0.3333"]


def test_empty_problem() -> None:
    nothing = hf.ContactProblem(M=np.eye(2), v=[1.0, 0.0])
    assert ["coordinates", "M", "2"] in shown(nothing)
    assert len(shown(hf.Frictionless().solve(nothing))) == 1


def test_contacts_comparison_and_verdict() -> None:
    model = mujoco.MjModel.from_xml_string(scenes.pinched_capsule())
    data, stepper = mujoco.MjData(model), hf.Stepper(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    states = []
    for _ in range(5):
        stepper.step(data)
        states.append((data.time, data.qpos.copy(), data.qvel.copy(), data.ctrl.copy()))
    head, *rows = shown(stepper.contacts)
    assert len(rows) == len(stepper.contacts) == 4 and rows[0][0] == "capsule / left"
    assert rows[0][head.index("normal force [N]")] == "4"
    assert len(shown(hf.Contacts.none())) == 1
    rows = shown(compare(model, data, duration=0.004))
    assert rows[0][1] == "creep, µm/s" and rows[0][-1] == "needs / declared µ"
    assert [row[0] for row in rows[1:]] == [
        "MuJoCo", "elliptic", "+ noslip 10", "+ noslip 100", "holdfast", "holdfast, no slip",
    ]  # fmt: skip
    verdict = verify(model, *map(np.array, zip(*states, strict=True)))
    judged = [row[4] for row in shown(verdict)[1:]]  # nothing here is an equality or slides
    assert judged == ["pass"] * 8 + ["not judged", "pass", "not judged"]
    assert not any("nan" in cell for row in shown(verdict) for cell in row)


def test_names_are_escaped_and_long_tables_cut() -> None:
    text = _html.table(("a", "b"), [("<script>", "&")] * 40)
    assert "<script>" not in text and "and 10 more" in text
    assert Table(text).rows[1] == ["<script>", "&"] and len(Table(text).rows) == 31


def test_progress_in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    """With what IPython offers: a display that can be updated."""
    import sys
    from types import ModuleType, SimpleNamespace

    seen: list[str] = []
    handle = SimpleNamespace(update=seen.append)
    ipython, display = ModuleType("IPython"), ModuleType("IPython.display")
    shell = type("ZMQInteractiveShell", (), {})()
    vars(ipython).update(get_ipython=lambda: shell, display=display)
    vars(display).update(HTML=str, display=lambda html, display_id: seen.append(html) or handle)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    with progress_bar("comparing <b>") as progress:
        progress(0.5)
        progress(1.0)
    assert 'value="0.0000"' in seen[0] and 'value="1.0000"' in seen[-1]
    assert "comparing &lt;b&gt;" in seen[0]
