"""The corpora of the fuzzers, and a few inputs more; `make fuzz` goes on where this stops."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, given, settings

import dmlgpu

from .fuzz.targets import TARGETS

_PARTS = 12


@pytest.mark.parametrize("name", TARGETS)
def test_the_corpus(device: dmlgpu.Device, name: str) -> None:
    lines = TARGETS[name].corpus()
    assert lines
    assert len(lines) == len(set(lines))
    for line in lines if name != "plans" else lines[:1]:
        TARGETS[name].check(line)


@pytest.mark.combinations
@pytest.mark.parametrize("part", range(_PARTS))
def test_the_corpus_of_plans(device: dmlgpu.Device, part: int) -> None:
    """They take a minute together."""
    lines = TARGETS["plans"].corpus()[part::_PARTS]
    assert lines
    for line in lines:
        TARGETS["plans"].check(line)


def test_programs_side_by_side(device: dmlgpu.Device) -> None:
    """Four threads share the device, each with its own arrays."""
    programs = TARGETS["programs"]
    lines = programs.corpus()
    with ThreadPoolExecutor(4) as threads:
        done = [threads.submit(programs.check, line) for line in lines]
    assert [future.exception() for future in done] == [None] * len(lines)


@pytest.mark.parametrize("name", TARGETS)
def test_a_few_inputs_more(device: dmlgpu.Device, name: str) -> None:
    target = TARGETS[name]

    @given(target.inputs(target.corpus()))
    @settings(max_examples=target.drawn // 5, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    def check(text: str) -> None:
        target.check(text)

    check()
