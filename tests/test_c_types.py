"""C types that are parsed all at once."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from dmlgpu.runtime.device import Device
from dmlgpu.runtime.wgpu_private import _TYPES, parse_c_types

COUNTING = """
from cffi import cparser
seen, parse = [], cparser.Parser.parse_type
def counting(self, name):
    seen.append(name)
    return parse(self, name)
cparser.Parser.parse_type = counting
import numpy, dmlgpu
assert dmlgpu.cumulative_sum(numpy.ones(1000))[-1] == 1000
print(*seen, sep="\\n")
"""


@pytest.fixture
def ffi(device: Device) -> Any:
    from wgpu.backends.wgpu_native import ffi

    return ffi


@pytest.mark.parametrize("name", _TYPES)
def test_a_type_is_what_cffi_makes_of_it(ffi: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert parse_c_types(ffi)
    parsed = ffi._parsed_types[name]
    monkeypatch.delitem(ffi._parsed_types, name)
    assert ffi._typeof(name, consider_function_as_funcptr=True) is parsed[0]
    assert ffi._parsed_types[name] == parsed


def test_a_first_result_parses_few_others(device: Device) -> None:
    """As few as a newer wgpu-py may have come to ask for; some fifty are parsed if none is before."""
    command = [sys.executable, "-W", "ignore", "-c", COUNTING]
    seen = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert max(name.count("WGPU") for name in seen) > 30
    assert len(seen) < 10, seen


def test_what_cannot_be_parsed_changes_nothing() -> None:
    def typeof(_: str) -> Any:
        raise ValueError("no such type")

    kept: dict[str, Any] = {}
    assert not parse_c_types(SimpleNamespace(_parsed_types=kept, typeof=typeof))
    assert not parse_c_types(SimpleNamespace(_parsed_types=kept, typeof=lambda _: SimpleNamespace(args=())))
    assert kept == {}
    assert not parse_c_types(SimpleNamespace(typeof=typeof))
