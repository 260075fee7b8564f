"""What every contact model offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from holdfast.contact.problem import ContactProblem
from holdfast.contact.solution import ContactSolution


class ContactModel(ABC):
    """Physics of contact: turns a problem into a complementarity problem and the answer back."""

    @abstractmethod
    def solve(self, problem: ContactProblem, warm_start: Any = None) -> ContactSolution:
        """Solve one problem.

        Args:
            problem: what is known before the step.
            warm_start: solution of an earlier, similar problem, or its `ContactSolution.loaded`:
                numbers of contacts and, from n on, of rows of U. Others are passed over.

        Returns:
            Motion and forces, certified by the solver.

        Raises:
            InputError: the problem lacks something that the model needs, or contradicts itself.
            SolveError: there is no answer (see `InfeasibleError`) or none could be certified.
        """
