"""A plugin for the array API's own suite, of `test_array_api.py`: it draws no complex numbers, which no device has."""

from __future__ import annotations

import importlib

helpers = importlib.import_module("array_api_tests.hypothesis_helpers")
helpers.numeric_dtypes = helpers.real_dtypes  # type: ignore[attr-defined]
