"""The corpora of the fuzzers, and a few inputs more; `make fuzz` goes on where this stops."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

import dmlgpu

from .fuzz.targets import TARGETS


@pytest.mark.parametrize("name", TARGETS)
def test_the_corpus(device: dmlgpu.Device, name: str) -> None:
    lines = TARGETS[name].corpus()
    assert lines
    assert len(lines) == len(set(lines))
    for line in lines:
        TARGETS[name].check(line)


@pytest.mark.parametrize("name", TARGETS)
def test_a_few_inputs_more(device: dmlgpu.Device, name: str) -> None:
    @given(TARGETS[name].inputs(TARGETS[name].corpus()))
    @settings(max_examples=100, deadline=None)
    def check(text: str) -> None:
        TARGETS[name].check(text)

    check()
