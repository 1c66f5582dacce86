"""Ways to spoil what was stored: trees of JSON, and bytes."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np

HOSTILE: tuple[Any, ...] = (
    *(None, True, False, -1, 0, 1, 5, 2**31, 2**53, 2**63, 10**400, -(10**400)),
    *(0.5, -0.5, 1e308, -1e308, 1e-320, math.nan, math.inf, -math.inf),
    *("", "text", "0.5", "\x00", "\ud800", "\x1b[31m", "x" * 20_000, [], {}, [1], [[1.0]], [None], {"a": 1}, [[], [1]]),
)


def paths(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The place of every part of a tree of JSON."""
    found = [path] if path else []
    if isinstance(tree, dict):
        return found + [deep for key, part in tree.items() for deep in paths(part, (*path, key))]
    if isinstance(tree, list):
        return found + [deep for key, part in enumerate(tree) for deep in paths(part, (*path, key))]
    return found


def mutate(tree: Any, rng: np.random.Generator) -> Any:
    """A copy with one part replaced, removed, doubled or swapped with another."""
    spoiled = copy.deepcopy(tree)
    places = paths(spoiled)
    path = places[rng.integers(len(places))]
    parent = at(spoiled, path[:-1])
    way = rng.integers(6)
    if way == 0:
        del parent[path[-1]]
    elif way == 1 and isinstance(parent, list):
        parent.insert(path[-1], copy.deepcopy(parent[path[-1]]))
    elif way == 2:
        other = places[rng.integers(len(places))]
        parent[path[-1]] = copy.deepcopy(at(tree, other))
    elif way == 3 and isinstance(parent, dict):
        parent[str(HOSTILE[rng.integers(len(HOSTILE))])[:9]] = parent.pop(path[-1])
    else:
        parent[path[-1]] = copy.deepcopy(HOSTILE[rng.integers(len(HOSTILE))])
    return spoiled


def at(tree: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        tree = tree[key]
    return tree


def spoil_bytes(text: bytes, rng: np.random.Generator) -> bytes:
    """One bit flipped, a stretch removed, doubled or made zero, or the end cut off."""
    index, length = int(rng.integers(len(text))), int(rng.integers(1, 40))
    way = rng.integers(8)
    if way < 4:
        return text[:index] + bytes([text[index] ^ 1 << int(rng.integers(8))]) + text[index + 1 :]
    if way == 4:
        return text[:index] + text[index + length :]
    if way == 5:
        return text[: index + length] + text[index:]
    if way == 6:
        return text[:index] + bytes(length) + text[index + length :]
    return text[:index]
