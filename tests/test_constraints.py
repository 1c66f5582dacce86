"""Constraints between design variables: what can be read, their gradients, and designs that satisfy them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from edrbo.errors import InvalidSpaceError, NotStorableError
from edrbo.space import Categorical, Integer, Real, Space

UNIT = {"a": (0, 1), "b": (0, 1), "c": (0, 1)}


def meets(space: Space, coded: np.ndarray, text: str) -> list[bool]:
    """Python's own opinion of the designs; equality up to rounding."""
    left, sign, right = text.rpartition("==") if "==" in text else text.rpartition("<=")
    names = {"min": min, "max": max, "abs": abs, "exp": np.exp, "log": np.log, "sqrt": np.sqrt}
    found = []
    for design in space.decode_designs(coded):
        gap = eval(left, names, design) - eval(right, names, design)
        found.append(abs(gap) < 1e-8 if sign == "==" else gap <= 1e-8)
    return found


@pytest.mark.parametrize(
    ("text", "python"),
    [
        ("a + b <= 1", lambda a, b: a + b - 1),
        ("a - -b*2 <= 0.5", lambda a, b: a + 2 * b - 0.5),
        ("1 / (1 + a) >= b**2", lambda a, b: b**2 - 1 / (1 + a)),
        ("2**a < exp(b)", lambda a, b: 2**a - np.exp(b)),
        ("log(a + 1) * sqrt(b) == .1", lambda a, b: np.log(a + 1) * np.sqrt(b) - 0.1),
        ("max(a, b, 0.3) ≤ min(a + b, 1)", lambda a, b: max(a, b, 0.3) - min(a + b, 1)),
        ("a =< b", lambda a, b: a - b),
        ("abs(a - b) = .2", lambda a, b: abs(a - b) - 0.2),
        ("`a` · b ≥ 0.1", lambda a, b: 0.1 - a * b),
    ],
)
def test_values_and_gradients(text: str, python: object) -> None:
    """Against Python's own arithmetic, and against differences; coded by a range, an integer's cell and a logarithm."""
    space = Space({"a": Integer(0, 4), "b": Real(0.01, 3, log=True)}, constraints=[text])
    region = space.region
    assert region is not None
    (relation,) = space._relations
    points = np.array([[0.31, 0.42], [0.77, 0.63]])
    values = np.array([[-0.5 + 5 * x, 0.01 * 300**y] for x, y in points])
    expected = [python(*row) for row in values]  # type: ignore[operator]
    np.testing.assert_allclose(relation.margin.evaluate(values)[0], expected, rtol=1e-12, atol=1e-12)
    margin, gradient = region.margins(points)
    for k in range(2):
        step = np.eye(2)[k] * 1e-6
        slope = (region.margins(points + step)[0] - region.margins(points - step)[0]) / 2e-6
        np.testing.assert_allclose(gradient[:, :, k], slope, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(margin[:, 0] * region._scale[0], expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("text", "slopes"),
    [("2 * (a - b) / 4 + 1 <= 3", [0.5, -0.5, -2]), ("a * b <= 1", None), ("a**2 <= 1", None), ("-a <= 0", [-1, 0, 0])],
)
def test_what_is_linear_is_recognized(text: str, slopes: list[float] | None) -> None:
    (relation,) = Space({"a": (0, 1), "b": (0, 1)}, constraints=[text])._relations
    found = relation.margin.affine(2)
    assert (None if found is None else found.tolist()) == slopes


def test_chains_and_names_of_all_kinds() -> None:
    space = Space(
        {"line speed": (0, 1), "µ": (0, 1), "lambda": (0, 1)}, constraints=["0.2 <= `line speed` + µ <= `lambda`"]
    )
    assert len(space._relations) == 2
    assert [space.region.inside(np.array([row])).item() for row in ([0.2, 0.1, 0.4], [0.2, 0.1, 0.2])] == [True, False]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a + x3 <= 1", "'x3' at character 5 is no design variable"),
        ("a + wether <= 1", "did you mean 'weather'"),
        ("a + load <= 1", "'load' at character 5 is a context"),
        ("kind <= 1", "'kind' at character 1 is categorical"),
        ("a ^ 2 <= 1", r"write \*\* for a power"),
        ("a <= 'b'", "is no number"),
        ("a <= True", "is no number"),
        ("a <= 1e999", "is too large"),
        ("a.real <= 1", "'a.real' at character 1 cannot be used"),
        ("__import__('os') <= a", "cannot be used"),
        ("[a][0] <= 1", "cannot be used"),
        ("(lambda: 1)() <= a", "cannot be used"),
        ("sin(a) <= 1", "the functions are"),
        ("sqrt(a, a) <= 1", "wrong arguments"),
        ("a + <= 1", "cannot be read at character 5"),
        ("a +", "cannot be read"),
        ("a + 1", "is not a comparison"),
        ("a <= 1 and a >= 0.5", "an entry of its own"),
        ("a <= 0,5", "decimals with a point"),
        ("2a <= 1", r"as in 2 \* x"),
        ("a != 1", "not known"),
        ("1 <= 2", "names no design variable"),
        ("a <= 1\0", "cannot be read"),
        ("(" * 300 + "a <= 1", "cannot be read"),
        ("-" * 400 + "a <= 1", "too deeply nested"),
        ("a" * 501, "501 characters"),
    ],
)
def test_what_cannot_be_read_is_said(text: str, words: str) -> None:
    design = {"a": (0, 1), "weather": (0, 1), "kind": ["u", "v"]}
    with pytest.raises(InvalidSpaceError, match=words):
        Space(design, {"load": (0, 1)}, constraints=[text])


@pytest.mark.parametrize("given", ["a <= 1", 3, len, [3], [None], ["a <= 1", "a <= 1"], {"a <= 1"}, {"a": "a <= 1"}])
def test_wrong_lists(given: object) -> None:
    with pytest.raises(InvalidSpaceError):
        Space({"a": (0, 1)}, constraints=given)


@pytest.mark.parametrize(
    ("design", "constraints", "broken"),
    [
        (UNIT, ["a + b >= 2.5"], r"'a \+ b >= 2.5'"),
        (UNIT, ["a + b <= 0.5", "a >= 0.3", "b >= 0.3"], "breaks"),
        (UNIT, ["a * b >= 1.01"], r"a \* b"),
        ({"n": Integer(1, 4), "m": Integer(1, 4)}, ["2 * n + 2 * m == 7"], "2 .* n"),
        ({"n": Integer(1, 4)}, ["n < 1"], "n < 1"),
        (UNIT, ["log(a - 2) <= 1"], "log"),
        (UNIT, [lambda design: False], "function <lambda>"),
    ],
)
def test_a_space_without_a_design_is_found_at_once(design: object, constraints: list[object], broken: str) -> None:
    with pytest.raises(InvalidSpaceError, match=f"no design satisfies the constraints.*{broken}"):
        Space(design, constraints=constraints)  # type: ignore[arg-type]


def test_a_needle_in_a_haystack_is_found() -> None:
    """Only one combination of levels is left."""
    space = Space({f"n{i}": Integer(0, 9) for i in range(4)}, constraints=["n0 + n1 + n2 + n3 >= 36"])
    assert space.region is not None
    assert space.decode_designs(space.region.example) == [{f"n{i}": 9 for i in range(4)}]


NUMBERS = st.floats(-1.0, 1.0).map(lambda number: round(number, 2))


@st.composite
def spaces(draw: st.DrawFn) -> tuple[Space, list[str]]:
    """A few half-spaces or a mixture through a point that is inside, over variables of all kinds."""
    kinds = [(0, 1), Real(0, 1, step=0.05), Real(0.1, 10, log=True), Integer(0, 6), Categorical(("u", "v"))]
    design = {
        f"x{i}": kind
        for i, kind in enumerate([(0, 1), *draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=3))])
    }
    names = [name for name, kind in design.items() if not isinstance(kind, Categorical)]
    inside = {name: {"real": 0.5, "integer": 3}[getattr(design[name], "kind", "real")] for name in names}
    texts = []
    for _ in range(draw(st.integers(1, 3))):
        slopes = {name: draw(NUMBERS) for name in names}
        if not any(slopes.values()):
            continue
        level = sum(slopes[name] * inside[name] for name in names)
        total = " + ".join(f"{slope} * {name}" for name, slope in slopes.items())
        texts.append(f"{total} <= {level + draw(st.sampled_from([0.0, 0.05, 0.5]))}")
    if draw(st.booleans()):
        texts.append(f"{' + '.join(names)} == {sum(inside.values())}")
    texts = list(dict.fromkeys(texts)) or ["x0 <= 0.5"]
    return Space(design, constraints=texts), texts


@settings(max_examples=15)
@given(spaces(), st.integers(0, 100))
def test_designs_are_inside_and_can_be_set(made: tuple[Space, list[str]], seed: int) -> None:
    space, texts = made
    region = space.region
    assert region is not None
    cloud = np.random.default_rng(seed).random((40, space.d_x))
    for found in (region.points(cloud, 20, seed), region.admit(cloud), region.neighbors(region.example)):
        assert len(found)
        np.testing.assert_array_equal(space.snap(found), found)
        for text in texts:
            assert all(meets(space, found, text))


@settings(max_examples=6)
@example(5, 5)  # many starts in corners, where most directions lead out
@given(st.integers(2, 5), st.integers(0, 100))
def test_a_mixture_is_filled_evenly(count: int, seed: int) -> None:
    """Uniform on the simplex: no share is larger than another on average, and few are at a face."""
    names = [f"x{i}" for i in range(count)]
    space = Space({name: (0, 1) for name in names}, constraints=[f"{' + '.join(names)} == 1"])
    assert space.region is not None
    found = space.region.points(np.random.default_rng(seed).random((256, count)), 256, seed)
    assert len(found) == 256
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-9)
    np.testing.assert_allclose(found.mean(axis=0), 1.0 / count, atol=5 * 0.3 / 16)
    assert (found < 1e-6).mean() < 0.02


def test_nonlinear_equalities_and_functions() -> None:
    space = Space(UNIT, constraints=["a**2 + b**2 + c**2 == 1", lambda design: design["a"] >= 2 * design["b"]])
    assert space.region is not None
    found = space.region.points(np.random.default_rng(0).random((64, 3)), 32, 0)
    assert len(found) == 32
    np.testing.assert_allclose((found**2).sum(axis=1), 1.0, atol=1e-8)
    assert (found[:, 0] >= 2 * found[:, 1]).all()


def test_strict_comparisons_exclude_equality() -> None:
    space = Space({"n": Integer(0, 5), "m": Integer(0, 5)}, constraints=["n < m"])
    assert space.region is not None
    found = space.decode_designs(space.region.admit(np.random.default_rng(1).random((30, 2))))
    assert all(row["n"] < row["m"] for row in found)  # type: ignore[operator]
    assert any(row["n"] == row["m"] - 1 for row in found)  # type: ignore[operator]


def test_storing_and_comparing() -> None:
    space = Space(UNIT, {"load": None}, constraints=["a + b ≤ 1", "a = 2*c"])
    assert space.to_dict()["constraints"] == ["a + b <= 1", "a == 2*c"]
    again = Space.from_dict(space.to_dict())
    assert again == space
    assert hash(again) == hash(space)
    assert again != Space(UNIT, {"load": None})
    assert "constraints" not in Space(UNIT).to_dict()
    assert Space(UNIT, constraints=None) == Space(UNIT)
    assert "constraints=['a + b <= 1', 'a == 2*c']" in repr(space)
    with pytest.raises(NotStorableError):
        Space(UNIT, constraints=[lambda design: True]).to_dict()


def test_functions_that_fail_or_answer_nonsense() -> None:
    with pytest.raises(InvalidSpaceError, match="KeyError"):
        Space(UNIT, constraints=[lambda design: design["z"] > 0])
    with pytest.raises(InvalidSpaceError, match="'yes'"):
        Space(UNIT, constraints=[lambda design: "yes"])


# -------------------------------------------------------------------- first designs in thin regions

THIN = {
    "a simplex with a ratio": (4, ["a + b + c + d == 1", "a >= 2 * b"]),
    "a corner": (3, ["a + b + c <= 0.45"]),
    "a tube": (3, ["a - b <= 0.04", "b - a <= 0.04", "b - c <= 0.04", "c - b <= 0.04"]),
}


def _uniform_in(name: str, random: np.random.Generator) -> np.ndarray:
    """Many designs, by construction."""
    if name == "a simplex with a ratio":
        drawn = random.dirichlet(np.ones(4), 200_000)
        return drawn[drawn[:, 0] >= 2 * drawn[:, 1]]
    if name == "a corner":
        drawn = 0.45 * random.random((600_000, 3))
        return drawn[drawn.sum(axis=1) <= 0.45]
    drawn = random.random((400_000, 3))
    drawn[:, ::2] = drawn[:, 1:2] + 0.08 * (drawn[:, ::2] - 0.5)
    return drawn[((drawn >= 0) & (drawn <= 1)).all(axis=1)]


@pytest.mark.parametrize("name", list(THIN))
def test_points_of_a_thin_region_are_uniform(name: str) -> None:
    """Kolmogorov and Smirnov's distance in each variable. Projections gathered points at walls (0.16 in the simplex),
    and directions at random did not lead along a tube (0.18)."""
    count, constraints = THIN[name]
    space = Space(dict.fromkeys("abcd"[:count], (0.0, 1.0)), constraints=constraints)
    exact = _uniform_in(name, np.random.default_rng(0))
    drawn = []
    for seed in range(12):
        points = space.region.points(np.random.default_rng(seed).random((128, count)), 128, seed)
        assert space.region.inside(points).all()
        drawn.append(points)
    found = np.concatenate(drawn)
    levels = np.linspace(0.05, 0.95, 19)
    for k in range(count):
        place = np.quantile(exact[:, k], levels)
        assert np.abs(np.searchsorted(np.sort(found[:, k]), place) / len(found) - levels).max() < 0.07
