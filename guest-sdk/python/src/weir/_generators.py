"""Generators of random numbers that the program makes while its component is built.

The component keeps them as they are then. So each instance would draw the same numbers from them.
"""

from __future__ import annotations

import random
import weakref
from typing import Any

_seed = random.Random.seed
_setstate = random.Random.setstate
_without_seed: weakref.WeakSet[random.Random] = weakref.WeakSet()


def watch() -> None:
    """From now on, notes the generators that get no seed of their own. Before the program is imported."""
    random.Random.seed = _watched_seed  # type: ignore[method-assign]
    random.Random.setstate = _watched_setstate  # type: ignore[method-assign]


def reseed() -> None:
    """Gives these, and that of the module `random`, another seed. The program's own seeds stay. At the start."""
    random.Random.seed = _seed  # type: ignore[method-assign]
    random.Random.setstate = _setstate  # type: ignore[method-assign]
    random.seed()
    for generator in list(_without_seed):
        generator.seed()
    _without_seed.clear()


def _watched_seed(self: random.Random, a: Any = None, version: int = 2) -> None:
    _seed(self, a, version)
    if a is None:
        _without_seed.add(self)
    else:
        _without_seed.discard(self)


def _watched_setstate(self: random.Random, state: Any) -> None:
    _setstate(self, state)
    _without_seed.discard(self)
