"""What every contact model offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from holdfast.contact.problem import ContactProblem
from holdfast.contact.solution import ContactSolution


class ContactModel(ABC):
    """Physics of contact: turns a contact problem into motion and forces."""

    @abstractmethod
    def solve(self, problem: ContactProblem, warm_start: Any = None) -> ContactSolution:
        """Solve one problem.

        Args:
            problem: the contact problem.
            warm_start: solution of an earlier, similar problem, or its `ContactSolution.loaded`:
                numbers of contacts and, from n on, of rows of U. Numbers beyond those are ignored.

        Returns:
            Motion and forces, certified by the solver.

        Raises:
            InputError: the problem lacks something that the model needs, or contradicts itself.
            SolveError: there is no answer (see `InfeasibleError`) or none could be certified.
        """

    def advance(self, problem: ContactProblem, warm_start: Any = None) -> ContactSolution:
        """Solve one step: velocity and impulses at its end, whatever the level of the model.

        At velocity level this is `solve`. A model at acceleration level is asked for the
        acceleration that leads to the targets of the velocity level within the step,
        ``N (v + h a) >= c_N`` and ``J (v + h a) = c_J``, and its forces act for the whole step.
        """
        return self.solve(problem, warm_start)
