// C interface to eiquadprog's fast dual active-set solver, for the benchmarks only.
//
// The solver and its matrices are kept between calls, so that a call pays for one copy of the
// matrices into Eigen's own storage (its interface takes nothing else) and for no allocation
// while the sizes stay the same. Arrays come in Fortran order, Eigen's own.

#include <eiquadprog/eiquadprog-fast.hpp>

using eiquadprog::solvers::EiquadprogFast;

namespace {

struct Workspace {
  EiquadprogFast solver;
  Eigen::MatrixXd M, N, no_rows;
  Eigen::VectorXd q, b, no_targets, x;
  Eigen::Index m = -1, n = -1;

  void resize(Eigen::Index new_m, Eigen::Index new_n) {
    if (new_m == m && new_n == n) return;
    m = new_m;
    n = new_n;
    no_rows.resize(0, m);
    no_targets.resize(0);
    x.resize(m);
    solver.reset(m, 0, n);
  }
};

}  // namespace

// Minimise x' M x / 2 + q' x subject to N x + b >= 0. Writes x_out (m) and z_out (n).
// Returns the status of EiquadprogFast: 0 is solved.
extern "C" int eiquadprog_shim_solve(int m, int n, const double* M, const double* q,
                                     const double* N, const double* b, double* x_out,
                                     double* z_out) {
  static Workspace work;
  using Matrix = Eigen::Map<const Eigen::MatrixXd>;
  using Vector = Eigen::Map<const Eigen::VectorXd>;
  work.resize(m, n);
  work.M = Matrix(M, m, m);
  work.N = Matrix(N, n, m);
  work.q = Vector(q, m);
  work.b = Vector(b, n);
  const int status = work.solver.solve_quadprog(work.M, work.q, work.no_rows, work.no_targets,
                                                work.N, work.b, work.x);
  Eigen::Map<Eigen::VectorXd>(x_out, m) = work.x;
  Eigen::Map<Eigen::VectorXd> z(z_out, n);
  z.setZero();
  const auto& active = work.solver.getActiveSet();
  const auto& multipliers = work.solver.getLagrangeMultipliers();
  for (std::size_t k = 0; k < work.solver.getActiveSetSize(); ++k) {
    z[active[k]] = multipliers[k];
  }
  return status;
}
