"""Which law holds between two bodies: from Python, from the MJCF, or the stepper's default.

In the MJCF a law is a custom text, so that a scene stays one file::

    <custom>
      <text name="holdfast:finger,cube" data="viscous 0.1"/>
      <text name="holdfast:tyre,road" data="coulomb 0.6"/>
      <text name="holdfast:ice,*" data="frictionless"/>
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

from holdfast.contact.arrays import LawKind
from holdfast.contact.laws import Law, coulomb, frictionless, stick, viscous
from holdfast.errors import InputError
from holdfast.models import ContactModel, Coulomb, Frictionless, Mixed, NoSlip, Viscous
from holdfast.mujoco._mj import mujoco

PREFIX = "holdfast:"
ANY = "*"
DECLARED = -1.0  # the coefficient of a Coulomb law that takes the one of the model
_KNOWN = "coulomb, coulomb <mu>, stick, frictionless or viscous <mu_v>"
_KINDS = {"coulomb": LawKind.COULOMB, "stick": LawKind.NO_SLIP, "viscous": LawKind.VISCOUS,
          "frictionless": LawKind.FRICTIONLESS}  # fmt: skip


def law_kind(law: Law) -> tuple[int, float]:
    """Number and coefficient of a law for the contact solve."""
    if law.kind == "coulomb":
        return int(LawKind.COULOMB), DECLARED if law.mu is None else law.mu
    return int(_KINDS[law.kind]), law.mu_v


def law_of_model(contact: Any) -> Law | None:
    """The law that a contact model stands for; None if it is solved in its own way."""
    if contact is None:
        return coulomb()
    if isinstance(contact, Law):
        return contact
    if isinstance(contact, NoSlip):
        return stick() if contact.grip == "loaded" else None
    if isinstance(contact, Frictionless):
        return frictionless()
    if isinstance(contact, Viscous):
        plain = contact.level == "velocity" and not contact.per_pair
        mu_v: Any = contact.mu_v
        if not plain or mu_v is None or np.ndim(mu_v) != 0:
            return None
        return viscous(float(mu_v))
    if isinstance(contact, Coulomb):
        return coulomb(contact.mu) if contact.mu is None or np.ndim(contact.mu) == 0 else None
    if isinstance(contact, Mixed):
        return contact.laws if isinstance(contact.laws, Law) else None
    if isinstance(contact, ContactModel):
        return None
    raise InputError("contact", f"is {contact!r}; expected a contact model such as Coulomb()")


class PairLaws:
    """Rules for pairs of geoms, the first that fits holds; then the default.

    Attributes:
        default: law of all pairs that no rule names.
        laws: of the rules, in their order.
        first, second: (rules, ngeom) the geoms that a rule names on either side.
    """

    def __init__(self, model: Any, laws: Mapping[Any, Law] | None, default: Law) -> None:
        self.default = default
        rules: list[tuple[float, set[int], set[int], Law]] = []
        if laws is not None and not isinstance(laws, Mapping):
            raise InputError("laws", f"is {laws!r}; expected laws by pairs of names, such as "
                             "{('finger', 'cube'): hf.stick()}")  # fmt: skip
        for pair, law in dict(laws or {}).items():
            rules.append(_rule(model, pair, law, from_python=True))
        for pair, law in from_mjcf(model).items():
            rules.append(_rule(model, pair, law, from_python=False))
        rules.sort(key=lambda rule: -rule[0])
        self.laws = [law for *_, law in rules]
        self.first, self.second = np.zeros((2, len(rules), model.ngeom), dtype=bool)
        for k, (_, first, second, _) in enumerate(rules):
            self.first[k, list(first)], self.second[k, list(second)] = True, True

    def of_pair(self, a: int, b: int) -> Law:
        """Law of a pair of geoms."""
        for k, law in enumerate(self.laws):
            one, two = self.first[k], self.second[k]
            if (one[a] and two[b]) or (one[b] and two[a]):
                return law
        return self.default

    def numbers(self) -> tuple[np.ndarray, np.ndarray]:
        """Number and coefficient of the law of each rule."""
        both = [law_kind(law) for law in self.laws]
        kinds = np.array([kind for kind, _ in both], dtype=np.int64)
        return kinds, np.array([value for _, value in both], dtype=float)


def _rule(
    model: Any, pair: Any, law: Any, *, from_python: bool
) -> tuple[float, set[int], set[int], Law]:
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise InputError("laws", f"has the key {pair!r}; expected a pair of names")
    if isinstance(law, ContactModel):
        law = law_of_model(law)
    if not isinstance(law, Law):
        raise InputError("laws", f"gives {pair!r} the law {law!r}; use {_KNOWN}")
    found = [_geoms(model, name) for name in pair]
    rank = 4 * from_python + sum(rank for rank, _ in found) / 2
    return rank, found[0][1], found[1][1], law


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
    plain = {"stick": stick, "frictionless": frictionless, "coulomb": coulomb}
    if len(words) == 1 and words[0] in plain:
        return plain[words[0]]()
    if len(words) == 2 and words[0] in ("viscous", "coulomb"):
        try:
            value = float(words[1])
        except ValueError as error:
            raise InputError(where, f"has {words[1]!r}; expected a number") from error
        try:
            return viscous(value) if words[0] == "viscous" else coulomb(value)
        except InputError as error:
            raise InputError(where, f"is {text!r}: {error}") from error
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
