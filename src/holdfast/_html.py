"""Problems, solutions and tables as HTML, for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np

MOST = 30  # rows of a table that are shown; the others are counted

_CELL = "padding:.15em .7em;text-align:{};font-variant-numeric:tabular-nums"


def table(
    headings: Sequence[str], rows: Iterable[Sequence[str]], *, title: str = "", note: str = ""
) -> str:
    """A table of text cells; the first column is aligned to the left."""
    rows = list(rows)
    sides = ["left", *["right"] * (len(headings) - 1)]
    head = "".join(
        f'<th style="{_CELL.format(side)}">{escape(text)}</th>'
        for text, side in zip(headings, sides, strict=True)
    )
    body = "".join(
        "<tr>" + "".join(
            f'<td style="{_CELL.format(side)}">{escape(text)}</td>'
            for text, side in zip(row, sides, strict=True)
        ) + "</tr>"
        for row in rows[:MOST]
    )  # fmt: skip
    if len(rows) > MOST:
        note = f"and {len(rows) - MOST} more" + (f"; {note}" if note else "")
    return (
        (f"<div><b>{escape(title)}</b></div>" if title else "")
        + f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        + (f'<div style="opacity:.7;font-size:.9em">{escape(note)}</div>' if note else "")
    )


def of_problem(problem: Any) -> str:
    """A contact problem: how many coordinates and rows of each kind."""
    sizes = (
        ("M", "coordinates", problem.m),
        ("N, S, T", "contacts", problem.n),
        ("R", "rows of torsional and rolling friction", len(problem.R)),
        ("J", "equality rows", problem.j),
        ("U", "limits", len(problem.U)),
        ("D", "rows of dry friction", len(problem.D)),
    )
    rows = [(what, name, str(count)) for name, what, count in sizes if count or name == "M"]
    mu = np.asarray(problem.mu, dtype=float) if problem.mu is not None else np.zeros(0)
    if mu.size:
        span = f"{mu.min():.3g}" if mu.min() == mu.max() else f"{mu.min():.3g} to {mu.max():.3g}"
        rows.append(("friction", "mu", span))
    if problem.h is not None:
        rows.append(("step [s]", "h", f"{problem.h:.6g}"))
    return table(("ContactProblem", "symbol", "value"), rows)


def of_solution(solution: Any) -> str:
    """A solution: what each contact does, and how exact the answer is."""
    level = solution.level == "velocity"
    force, speed = ("N s", "m/s") if level else ("N", "m/s²")
    headings = ("contact", "does", f"normal [{force}]", f"tangential [{force}]", "ratio",
                f"slides [{speed}]", f"leaves [{speed}]")  # fmt: skip
    sizes = (np.linalg.norm(x, axis=1) for x in (solution.tangent, solution.sliding))
    size, slides = sizes
    ratio, words = solution.required_friction(), ("open", "sticks", "slides")
    rows = [
        (str(i), words[int(solution.state[i])], *(
            f"{column[i]:.4g}"
            for column in (solution.normal, size, ratio, slides, solution.separation)
        ))
        for i in range(solution.problem.n)
    ]  # fmt: skip
    exact = "exact" if solution.is_exact() else "not exact"
    note = (f"{exact}: law {solution.law_residual():.1e}, momentum "
            f"{solution.momentum_residual():.1e}")  # fmt: skip
    return table(headings, rows, title=f"{type(solution).__name__}, {solution.level}", note=note)


def of_contacts(contacts: Any) -> str:
    """The contacts of a step."""
    headings = ("bodies", "geoms", "point [m]", "normal force [N]", "friction force [N]",
                "needs µ", "declared µ", "law")  # fmt: skip
    rows = [
        (
            " / ".join(contacts.bodies[i]),
            " / ".join(contacts.geoms[i]),
            ", ".join(f"{x:.4g}" for x in contacts.point[i]),
            f"{contacts.normal_force[i]:.4g}",
            f"{contacts.tangent_force[i]:.4g}",
            f"{contacts.required[i]:.3g}" + (" (exceeds)" if contacts.exceeded[i] else ""),
            f"{contacts.declared[i]:.3g}",
            contacts.law[i].kind,
        )
        for i in range(len(contacts))
    ]
    return table(headings, rows, title=f"{len(contacts)} contacts")
