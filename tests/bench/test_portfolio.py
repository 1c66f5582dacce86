"""Portfolio data, its surrogate and the fit; the original evaluations where they are at hand."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from edrbo.bench import problems
from edrbo.bench.problems.oracle.distributions import clipped_normal, iid
from edrbo.bench.problems.portfolio import data as portfolio_data
from edrbo.bench.problems.portfolio import problem as portfolio_problem
from edrbo.bench.problems.portfolio.data import (
    COLUMNS,
    ENVIRONMENT_VARIABLE,
    PortfolioData,
    fingerprint,
    import_portfolio_data,
    imported_path,
    read_portfolio_data,
)
from edrbo.bench.problems.portfolio.problem import fit_record
from edrbo.bench.problems.portfolio.surrogate import (
    PUBLISHED,
    PortfolioHyperparameters,
    PortfolioSurrogate,
    fit_portfolio_surrogate,
    kernel,
    negative_log_likelihood,
)
from edrbo.errors import InvalidValueError

pytestmark = pytest.mark.numpy_numeric

ORIGINAL = os.environ.get(ENVIRONMENT_VARIABLE, "")
needs_original = pytest.mark.skipif(
    not ORIGINAL, reason=f"{ENVIRONMENT_VARIABLE} names no file of the original evaluations, which cannot be shipped"
)
SCALES = PortfolioHyperparameters((0.3, 2.0, 0.4, 0.5, 1.0), noise=0.02, mean=-0.3, output_mean=-1.0, output_sd=2.0)


def small_table(n: int = 60, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    inputs = rng.random((n, 5))
    outputs = np.sin(4 * inputs[:, 0]) + inputs[:, 2] * inputs[:, 3] + 0.05 * rng.standard_normal(n)
    return np.column_stack([inputs, outputs])


def small_data(n: int = 60, seed: int = 0) -> PortfolioData:
    table = small_table(n, seed)
    return PortfolioData(table[:, :5], table[:, 5], fingerprint(table), shipped=False)


def write_csv(path: Path, table: np.ndarray, header: str = ",".join(COLUMNS)) -> Path:
    np.savetxt(path, table, delimiter=",", header=header, comments="", fmt="%.9f")
    return path


@pytest.fixture(autouse=True)
def own_data_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portfolio_data, "user_data_directory", lambda: tmp_path / "user")
    monkeypatch.setattr(portfolio_problem, "user_data_directory", lambda: tmp_path / "user")
    monkeypatch.delenv(ENVIRONMENT_VARIABLE, raising=False)


def test_reading_checks_and_orders_the_columns(tmp_path: Path) -> None:
    table = small_table()
    plain = read_portfolio_data(write_csv(tmp_path / "a.csv", table))
    turned = read_portfolio_data(write_csv(tmp_path / "b.csv", table[:, ::-1], ",".join(COLUMNS[::-1])))
    np.testing.assert_allclose(plain.inputs, table[:, :5], atol=1e-9)
    np.testing.assert_array_equal(turned.outputs, plain.outputs)
    assert turned.fingerprint == plain.fingerprint
    assert not plain.original


def test_compressed_files_are_read(tmp_path: Path) -> None:
    plain = write_csv(tmp_path / "a.csv", small_table())
    packed = tmp_path / "a.csv.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert read_portfolio_data(packed).fingerprint == read_portfolio_data(plain).fingerprint


def broken(kind: str) -> tuple[np.ndarray, str]:
    table, header = small_table(), ",".join(COLUMNS)
    if kind == "outside":
        table[3, 1] = 1.5
    elif kind == "few":
        table = table[:10]
    elif kind == "constant":
        table[:, 5] = 1
    elif kind == "infinite":
        table[7, 5] = np.inf
    elif kind == "columns":
        header = "x1,x2,x3,c1,c2,z"
    return table, header


@pytest.mark.parametrize(
    ("kind", "complaint"),
    [
        ("outside", "x2 is 1.5 in data row 4"),
        ("few", "10 rows"),
        ("constant", "all values of y are equal"),
        ("infinite", "data row 8 has a value that is not finite"),
        ("columns", "starts with the columns"),
    ],
)
def test_broken_tables_are_refused_with_the_place(kind: str, complaint: str, tmp_path: Path) -> None:
    path = write_csv(tmp_path / "broken.csv", *broken(kind))
    with pytest.raises(InvalidValueError, match=complaint):
        read_portfolio_data(path)


def test_unreadable_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError):
        read_portfolio_data(tmp_path / "missing.csv")
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(InvalidValueError):
        read_portfolio_data(tmp_path / "empty.csv")
    (tmp_path / "words.csv").write_text(",".join(COLUMNS) + "\n" + "0.1,0.2,zero,0,0,1\n")
    with pytest.raises(InvalidValueError, match="1"):
        read_portfolio_data(tmp_path / "words.csv")
    (tmp_path / "bytes.csv").write_bytes(b"\xff\xfe\x00\x81")
    with pytest.raises(InvalidValueError):
        read_portfolio_data(tmp_path / "bytes.csv")
    (tmp_path / "bytes.csv.gz").write_bytes(b"not gzip")
    with pytest.raises(InvalidValueError):
        read_portfolio_data(tmp_path / "bytes.csv.gz")


def test_fingerprint_sees_values_and_not_their_printing(tmp_path: Path) -> None:
    table = np.round(small_table(), 9)
    for digits in ("%.9f", "%.15g", "%.12e"):
        np.savetxt(tmp_path / "t.csv", table, delimiter=",", header=",".join(COLUMNS), comments="", fmt=digits)
        assert read_portfolio_data(tmp_path / "t.csv").fingerprint == fingerprint(table)
    changed = table.copy()
    changed[5, 5] += 1e-5
    assert fingerprint(changed) != fingerprint(table)


def test_surrogate_is_minus_the_posterior_mean() -> None:
    """Against the textbook formula with a dense inverse."""
    data = small_data()
    surrogate = PortfolioSurrogate.of(data, SCALES)
    rng = np.random.default_rng(1)
    x, c = rng.random((7, 3)), rng.random((7, 2))
    z = np.hstack([x, c])

    def covariance(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.exp(-0.5 * (((a[:, None] - b) / np.array(SCALES.lengthscales)) ** 2).sum(-1))

    precision = np.linalg.inv(covariance(data.inputs, data.inputs) + SCALES.noise * np.eye(60))
    standardized = (data.outputs - SCALES.output_mean) / SCALES.output_sd
    mean = SCALES.mean + covariance(z, data.inputs) @ precision @ (standardized - SCALES.mean)
    expected = -(SCALES.output_mean + SCALES.output_sd * mean)
    np.testing.assert_allclose(surrogate.objective(x, c), expected, atol=1e-10)
    table = surrogate.objective(x[:, None, :], c)
    np.testing.assert_allclose(np.diag(table), expected, atol=1e-10)
    np.testing.assert_allclose(table[2], surrogate.objective(x[2], c), atol=1e-10)


def test_expectation_factorizes() -> None:
    surrogate = PortfolioSurrogate.of(small_data(), SCALES)
    context_distribution = iid(clipped_normal(0.4, 0.3), 2)
    nodes, weights = context_distribution.quadrature(panels=4, order=12)
    x = np.random.default_rng(2).random((5, 3))
    by_tensor_rule = surrogate.objective(x[:, None, :], nodes) @ weights
    np.testing.assert_allclose(surrogate.expectation(x, context_distribution), by_tensor_rule, atol=1e-9)


def test_likelihood_and_its_gradient() -> None:
    data = small_data(40)
    at = np.log([0.3, 1.0, 0.5, 0.4, 0.8, 0.05])
    value, gradient, mean = negative_log_likelihood(at, data.inputs, data.outputs)
    covariance = kernel(data.inputs, data.inputs, np.exp(at[:5]).tolist()) + 0.05 * np.eye(40)
    reference = multivariate_normal(np.full(40, mean), covariance).logpdf(data.outputs)
    assert value == pytest.approx(-reference, rel=1e-10)
    for nearby in (mean - 1e-3, mean + 1e-3):  # the profiled mean is the best one
        assert multivariate_normal(np.full(40, nearby), covariance).logpdf(data.outputs) < reference
    steps = 1e-5 * np.eye(6)
    numeric = [
        (
            negative_log_likelihood(at + step, data.inputs, data.outputs)[0]
            - negative_log_likelihood(at - step, data.inputs, data.outputs)[0]
        )
        / 2e-5
        for step in steps
    ]
    np.testing.assert_allclose(gradient, numeric, rtol=1e-6, atol=1e-6)


def test_fit_finds_what_matters() -> None:
    """The function is curved in x1, and does not depend on x2 and c2 at all."""
    data = small_data(150)
    fitted = fit_portfolio_surrogate(data)
    assert fitted == fit_portfolio_surrogate(data)
    first, second, _, _, fifth = fitted.lengthscales
    assert first < 2
    assert min(second, fifth) > 2
    assert fitted.noise * fitted.output_sd**2 == pytest.approx(0.05**2, rel=0.5)
    halved = fit_portfolio_surrogate(data, max_rows=75)
    assert halved.output_mean == fitted.output_mean
    assert halved.lengthscales != fitted.lengthscales


def test_unknown_file_is_fitted_once_and_says_what_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_csv(tmp_path / "mine.csv", small_table())
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, str(path))
    problem = problems.get("portfolio-normal")
    assert problem.data is not None
    assert "not comparable with published numbers" in problem.data
    assert problem.data in problem.description
    assert problems.get("portfolio-normal") is problem
    (kept,) = (tmp_path / "user").glob("portfolio-*.json")
    record = json.loads(kept.read_text())
    assert record["optimum"]["portfolio-normal"] == pytest.approx(problem.optimum, abs=1e-9)
    record["hyperparameters"]["noise"] = 0.5
    kept.write_text(json.dumps(record))
    assert fit_record(read_portfolio_data(path))["hyperparameters"]["noise"] == 0.5
    kept.write_text("{ torn")
    assert fit_record(read_portfolio_data(path))["hyperparameters"]["noise"] != 0.5


def test_imported_file_takes_the_place_of_the_shipped_one(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "mine.csv", small_table(seed=5))
    imported = import_portfolio_data(path)
    assert imported_path().exists()
    assert read_portfolio_data(imported_path()).fingerprint == imported.fingerprint
    data = problems.get("portfolio-uniform").data
    assert data is not None
    assert imported.fingerprint[:12] in data


def test_refused_file_leaves_the_imported_one_alone(tmp_path: Path) -> None:
    import_portfolio_data(write_csv(tmp_path / "good.csv", small_table()))
    before = imported_path().read_bytes()
    with pytest.raises(InvalidValueError):
        import_portfolio_data(write_csv(tmp_path / "bad.csv", small_table()[:5]))
    assert imported_path().read_bytes() == before


def test_shipped_data_say_that_they_are_regenerated() -> None:
    problem = problems.get("portfolio-uniform")
    assert problem.data is not None
    assert problem.data.startswith("regenerated, seed ")
    assert problem.data.endswith("not comparable with published numbers")
    shipped = read_portfolio_data(portfolio_data.SHIPPED)
    stored = json.loads(portfolio_problem.SHIPPED_FIT.read_text(encoding="utf-8"))
    assert stored["fingerprint"] == shipped.fingerprint
    assert len(shipped.outputs) == 3_000


@needs_original
def test_original_file_gives_the_published_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    import_portfolio_data(Path(ORIGINAL))
    table = read_portfolio_data(imported_path())
    assert table.original
    assert fit_record(table)["hyperparameters"]["noise"] == PUBLISHED.noise
    problem = problems.get("portfolio-normal")
    assert problem.data == "original simulator evaluations (imported)"
    assert problem.optimum == pytest.approx(19.74901387, abs=1e-6)
    np.testing.assert_allclose(problem.x_star, [0, 1, 0.096135], atol=1e-6)
