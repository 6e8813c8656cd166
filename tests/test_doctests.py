"""The examples in docstrings run, and print what they say."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import dmlgpu


def modules() -> list[str]:
    """Return the names of all modules of the package that can be imported without running something."""
    found = pkgutil.walk_packages(dmlgpu.__path__, f"{dmlgpu.__name__}.")
    return [dmlgpu.__name__, *(module.name for module in found if not module.name.endswith("__main__"))]


@pytest.mark.parametrize("name", modules())
def test_examples(device: dmlgpu.Device, name: str) -> None:
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0


@pytest.mark.parametrize("name", ["dmlgpu.arrays.functions", "dmlgpu.arrays.array", "dmlgpu.arrays.pieces"])
def test_every_public_function_has_an_example(name: str) -> None:
    module = importlib.import_module(name)
    finder = doctest.DocTestFinder(exclude_empty=False)
    found = {test.name: bool(test.examples) for test in finder.find(module)}
    public = set(module.__all__) & set(dmlgpu.__all__)
    assert public
    assert all(found[f"{name}.{each}"] for each in public)
