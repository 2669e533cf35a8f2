"""The oracles themselves, against packages that compute one pair at a time."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from scipy.linalg import orthogonal_procrustes
from scipy.spatial import procrustes
from scipy.spatial.distance import correlation, cosine, jensenshannon
from sklearn.linear_model import Ridge

from likeness.oracles import ORACLES, hard_attention, oracle


def _tokens(measure):
    return lambda a, b: np.mean([measure(p, q) for p, q in zip(a, b, strict=True)])


def _rls(a, b):
    a, b = a - a.mean(0), b - b.mean(0)
    return 1 - orthogonal_procrustes(a, b)[1] / (np.linalg.norm(a) * np.linalg.norm(b))


def _ridge_cc(a, b):
    def smoother(x):
        size = np.square(x - x.mean(0)).sum()
        fit = Ridge(alpha=0.1 * size / (len(x) - 1), solver="svd").fit(x, np.eye(len(x)))
        return fit.predict(x) - 1 / len(x)

    p, q = smoother(a), smoother(b)
    return 1 - (p * q).sum() / (np.linalg.norm(p) * np.linalg.norm(q))


PACKAGES = {
    "cos": _tokens(cosine),
    "corr": _tokens(lambda p, q: correlation(p, q) / 2),
    "js": _tokens(lambda p, q: jensenshannon(p, q, 2)),
    "bc": _tokens(lambda p, q: 1 - np.sqrt(p * q).sum()),
    "pc": _rls,
    "cc": _ridge_cc,
}


@pytest.fixture(scope="module", params=[(25, 25, True), (9, 14, False), (14, 9, False)])
def sample(request):
    queries, keys, causal = request.param
    return hard_attention(24, queries, keys, seed=5, causal=causal)


@pytest.mark.parametrize("name", PACKAGES)
def test_packages_agree(name, sample):
    found = oracle(name, sample)
    wide = sample.astype(np.float64)
    for i in range(0, 24, 2):
        for j in range(i + 1, 24, 3):
            assert found[i, j] == pytest.approx(PACKAGES[name](wide[i], wide[j]), abs=2e-8)


def test_scipys_disparity_is_one_minus_the_square(sample):
    wide = sample.astype(np.float64)
    assert (1 - oracle("pc", sample)[0, 1]) ** 2 == pytest.approx(
        1 - procrustes(wide[0], wide[1])[2], abs=1e-9
    )


def test_dcor_package_agrees(tmp_path):
    # a process of its own without numba: dcor would compile for half a minute what is not called
    samples = [hard_attention(12, *shape, seed=5) for shape in ((25, 25), (9, 14), (14, 9))]
    np.savez(tmp_path / "samples.npz", *[sample.astype(np.float64) for sample in samples])
    code = (
        "import sys\n"
        "from unittest.mock import MagicMock\n"
        "sys.modules |= {'numba': MagicMock(), 'numba.types': MagicMock()}\n"
        "import dcor, numpy as np\n"
        "print(*[dcor.distance_correlation(a[i], a[j], method='naive')"
        " for a in np.load(sys.argv[1]).values() for i in range(12) for j in range(i)])"
    )
    ran = subprocess.run(
        [sys.executable, "-I", "-c", code, str(tmp_path / "samples.npz")],
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    pairs = np.tril_indices(12, -1)
    found = np.concatenate([oracle("dcor", sample)[pairs] for sample in samples])
    assert np.abs(1 - np.array(ran.stdout.split(), float) - found).max() < 2e-8


def test_every_distance_has_an_oracle():
    assert set(PACKAGES) | {"dcor"} == set(ORACLES)
