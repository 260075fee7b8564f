"""One thread of BLAS, for all threads that ask for it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from holdfast.batch.blas_threads import one_blas_thread


def counts() -> set[int]:
    return {each["num_threads"] for each in threadpool_info()}


def test_one_thread_within_and_as_before_afterwards() -> None:
    import scipy.linalg  # noqa: F401

    if not threadpool_info():
        pytest.skip("no library of threads")
    with threadpool_limits(limits=2):
        before = counts()
        with one_blas_thread():
            assert counts() == {1}
            with one_blas_thread():
                assert counts() == {1}
            assert counts() == {1}
        assert counts() == before
    with pytest.raises(ZeroDivisionError), one_blas_thread():
        raise ZeroDivisionError
    with one_blas_thread():
        assert counts() == {1}


def test_threads_that_come_and_go_get_the_same_bits() -> None:
    """The limit stays while anybody needs it, whoever asked first."""
    rng = np.random.default_rng(0)
    given = [rng.normal(size=(200, 200)) for _ in range(40)]

    def norm(A: np.ndarray) -> float:
        with one_blas_thread():
            return float(np.linalg.norm(A @ A))

    alone = [norm(A) for A in given]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(norm, given)) == alone
