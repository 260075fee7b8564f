"""Which law holds between two bodies: from Python, from the MJCF, or the model's default.

In the MJCF a law is a custom text, so that a scene stays one file::

    <custom>
      <text name="holdfast:finger,cube" data="viscous 0.1"/>
      <text name="holdfast:ice,*" data="frictionless"/>
      <text name="holdfast:foot,floor" data="coulomb 0.6"/>
      <text name="holdfast:*,*" data="stick"/>
    </custom>

Names are those of geoms or bodies; ``*`` is anything. Python says the same with
``laws={("finger", "cube"): hf.viscous(0.1)}`` and goes before the MJCF. A pair of geoms goes
before a pair of bodies, and names go before ``*``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from holdfast.contact.laws import Law, coulomb, frictionless, stick, viscous
from holdfast.errors import InputError
from holdfast.mujoco._mj import mujoco

PREFIX = "holdfast:"
ANY = "*"
_KNOWN = "coulomb, coulomb <mu>, stick, frictionless or viscous <mu_v>"
_WITH_NUMBER = {"coulomb": (coulomb, "mu"), "viscous": (viscous, "mu_v")}
_HELD_OR_FREE = ("stick", "frictionless")


class Laws:
    """Law of each pair of geoms, looked up once per pair.

    Attributes:
        uniform: whether all pairs have the same.
        only: the kind of that one; None if there are several.
    """

    def __init__(self, model: Any, laws: Mapping[Any, Law] | None, default: Law) -> None:
        self._body = np.array(model.geom_bodyid)
        self._default = default
        self._rules: list[tuple[float, set[int], set[int], Law]] = []
        given = dict(laws or {})
        for pair, law in given.items():
            self._add(model, pair, law, from_python=True)
        for pair, law in from_mjcf(model).items():
            self._add(model, pair, law, from_python=False)
        self._rules.sort(key=lambda rule: -rule[0])
        self._cache: dict[tuple[int, int], Law] = {}
        self.uniform = not self._rules
        self.only = default.kind if self.uniform else None

    def _add(self, model: Any, pair: Any, law: Any, *, from_python: bool) -> None:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise InputError("laws", f"has the key {pair!r}; expected a pair of names")
        if not isinstance(law, Law):
            raise InputError("laws", f"gives {pair!r} the law {law!r}; use {_KNOWN}")
        found = [_geoms(model, name) for name in pair]
        rank = 4 * from_python + sum(rank for rank, _ in found) / 2
        self._rules.append((rank, found[0][1], found[1][1], law))

    def of(self, geoms: np.ndarray) -> list[Law]:
        """Law of each pair of geoms, (n, 2) numbers."""
        if self.uniform:
            return [self._default] * len(geoms)
        return [self._of_pair(int(a), int(b)) for a, b in geoms]

    def sticking(self, geoms: np.ndarray, dim: np.ndarray) -> np.ndarray | None:
        """(n,) contacts that stick while the others are frictionless.

        None if some have drag or Coulomb friction.
        """
        if self.uniform:
            kind = self._default.kind
            return (dim > 1) & (kind == "stick") if kind in _HELD_OR_FREE else None
        laws = self.of(geoms)
        if any(law.kind not in _HELD_OR_FREE for law in laws):
            return None
        return np.array([law.kind == "stick" for law in laws], dtype=bool) & (dim > 1)

    def _of_pair(self, a: int, b: int) -> Law:
        law = self._cache.get((a, b))
        if law is None:
            law = self._default
            for _, first, second, candidate in self._rules:
                if (a in first and b in second) or (b in first and a in second):
                    law = candidate
                    break
            self._cache[a, b] = law
        return law


def from_mjcf(model: Any) -> dict[tuple[str, str], Law]:
    """Laws written in the model as custom texts."""
    laws = {}
    for i in range(model.ntext):
        name = mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_TEXT, i) or ""
        if not name.startswith(PREFIX):
            continue
        pair = tuple(part.strip() for part in name[len(PREFIX) :].split(","))
        if len(pair) != 2:
            raise InputError(f"custom/text {name!r}", "names no pair; write holdfast:first,second")
        start, size = int(model.text_adr[i]), int(model.text_size[i])
        text = bytes(model.text_data[start : start + size]).rstrip(b"\0").decode()
        laws[pair] = parse(text, name)
    return laws


def parse(text: str, where: str = "law") -> Law:
    """A law from its text: "coulomb", "coulomb 0.6", "stick", "frictionless", "viscous 0.1"."""
    words = text.split()
    if words == ["coulomb"]:
        return coulomb()
    if words == ["stick"]:
        return stick()
    if words == ["frictionless"]:
        return frictionless()
    if len(words) == 2 and words[0] in _WITH_NUMBER:
        make, name = _WITH_NUMBER[words[0]]
        try:
            return make(float(words[1]))
        except InputError:
            raise
        except ValueError as error:
            raise InputError(where, f"has {words[1]!r} for {name}; expected a number") from error
    raise InputError(where, f"is {text!r}; expected {_KNOWN}")


def _geoms(model: Any, name: Any) -> tuple[int, set[int]]:
    """Rank (0 anything, 1 a body, 2 a geom) and the geoms that a name stands for."""
    if name == ANY:
        return 0, set(range(model.ngeom))
    geom = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_GEOM, str(name))
    if geom >= 0:
        return 2, {geom}
    body = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, str(name))
    if body >= 0:
        return 1, set(np.flatnonzero(model.geom_bodyid == body).tolist())
    known = [model.geom(i).name for i in range(model.ngeom)]
    known += [model.body(i).name for i in range(model.nbody)]
    raise InputError(
        "laws", f"names {name!r}, which is neither a geom nor a body; known are "
        + ", ".join(sorted(set(filter(None, known)))[:20])
    )  # fmt: skip
