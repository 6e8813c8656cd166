"""Tries alterations on a device, one after the other: the trials that have caught most for their time come first."""

from __future__ import annotations

import random
import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path

from dmlgpu import shaders
from dmlgpu.errors import ShaderError
from dmlgpu.planning.dispatch import PipelineKey
from dmlgpu.runtime.device import Device
from dmlgpu.runtime.pipelines import Pipeline, Pipelines

from .alterations import Alteration
from .selection import trials
from .trials import Trial, files_of

__all__ = ["Bench", "Outcome"]

_MOST_TRIALS = 200
_MOST_CHARACTERS = 1e6
"""What drivers are given to compile for an alteration at most, `_cost` by `_cost`."""
_MOST_SPECIAL = 7e5
"""The same, for what runs data made for it."""
_FIRST = 10
"""Trials of a group before the next group has its turn."""
_HEAVY = {"f64_words": 8, "int64": 2}
"""How much longer drivers take to compile some element types than others."""


@dataclass(frozen=True)
class Outcome:
    """What came of an alteration.

    Attributes
    ----------
    state : str
        "caught", "does not compile" or "survived".
    by : str
        The trial that caught it, or the number of trials it survived.
    seconds : float
        The time it took.
    """

    state: str
    by: str
    seconds: float


@dataclass
class _Group:
    """The trials that run the same pipelines of an altered file."""

    trials: list[Trial]
    seconds: float
    tries: int = 0
    catches: int = 0

    @property
    def worth(self) -> float:
        return (self.catches + 1) / (self.tries + 2) / (self.seconds + 0.005)


@dataclass
class Bench:
    """A device, its trials, and a copy of the shaders to alter.

    Attributes
    ----------
    device : Device
        The device.
    folder : Path
        Where the copy is.
    every : list of Trial
        The trials, planned; by default those of `selection`.
    patience : float
        How much more than usual to give the driver to compile, and so how many more trials there are.
    """

    device: Device
    folder: Path
    every: list[Trial] = field(default_factory=list, repr=False)
    patience: float = 1.0
    _groups: dict[str, list[_Group]] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        self._original = shaders.folder()
        shutil.copytree(self._original, self.folder)
        self.every = self.every or trials(self.device)
        self._plain = self.device.pipelines

    def try_out(self, alteration: Alteration, alive: Callable[[], None] = lambda: None) -> Outcome:
        """Return what comes of an alteration.

        Parameters
        ----------
        alteration : Alteration
            Of a file as it is.
        alive : function
            Called before each trial, so that whoever waits knows that none hangs.
        """
        started = time.perf_counter()
        file = alteration.file
        number = 0
        with self._altered(alteration):
            for trial, group in self._in_order(file):
                alive()
                if trial.is_new:
                    with self._using(self._plain):
                        trial.caught(self.device)
                begun = time.perf_counter()
                number += 1
                try:
                    caught = trial.caught(self.device)
                except ShaderError as error:
                    text = " ".join(str(error).split())[:200]
                    return Outcome("does not compile", text, time.perf_counter() - started)
                if group.tries == 0:
                    group.seconds = time.perf_counter() - begun
                if caught:
                    group.catches += 1
                    group.trials.remove(trial)
                    group.trials.insert(0, trial)
                    return Outcome("caught", str(trial), time.perf_counter() - started)
        tried = f"{number} trials; {self._left_out(file)}"
        return Outcome("survived", tried, time.perf_counter() - started)

    def _left_out(self, file: str) -> str:
        """Say which of the pipelines with a file no trial runs, because they take a driver long to compile."""
        there = {key for trial in self.every for key in trial.pipelines if file in files_of(key)}
        tried = {key for group in self._groups[file] for trial in group.trials for key in trial.pipelines} & there
        return f"{len(tried)} of {len(there)} pipelines with it" + ("" if tried == there else ": --patience tries more")

    def _in_order(self, file: str) -> Iterator[tuple[Trial, _Group]]:
        if file not in self._groups:
            self._groups[file] = _grouped(self.every, file, self.patience)
        groups = sorted(self._groups[file], key=lambda group: -group.worth)
        for group in groups:
            for trial in group.trials[:_FIRST]:
                yield trial, group
            group.tries += 1
        for group in groups:
            for trial in group.trials[_FIRST:]:
                yield trial, group

    @contextmanager
    def _altered(self, alteration: Alteration) -> Iterator[None]:
        path = self.folder / alteration.file
        original = path.read_text(encoding="utf-8")
        path.write_text(alteration.apply(original), encoding="utf-8")
        folder, shaders.folder = shaders.folder, lambda: self.folder
        shaders._read.cache_clear()
        try:
            with self._using(_Altered(self.device, self._plain, alteration.file)):
                yield
        finally:
            shaders.folder = folder
            shaders._read.cache_clear()
            path.write_text(original, encoding="utf-8")

    @contextmanager
    def _using(self, pipelines: Pipelines) -> Iterator[None]:
        executor = self.device._executor
        before, executor.pipelines = executor.pipelines, pipelines
        folder = shaders.folder
        if pipelines is self._plain:
            shaders.folder = lambda: self._original
            shaders._read.cache_clear()
        try:
            yield
        finally:
            executor.pipelines = before
            if pipelines is self._plain:
                shaders.folder = folder
                shaders._read.cache_clear()


class _Altered(Pipelines):
    """The pipelines of altered shaders; those without the altered file are the ones that are there."""

    def __init__(self, device: Device, plain: Pipelines, file: str) -> None:
        super().__init__(device.gpu_device)
        self._plain = plain
        self._file = file

    def get(self, key: PipelineKey) -> Pipeline:
        return super().get(key) if self._file in files_of(key) else self._plain.get(key)


def _grouped(every: list[Trial], file: str, patience: float) -> list[_Group]:
    """Choose trials that run a file in all variants, but few combinations of them, cheap ones first."""
    by_pipelines: dict[frozenset[PipelineKey], list[Trial]] = defaultdict(list)
    for trial in every:
        if file in trial.files:
            by_pipelines[frozenset(key for key in trial.pipelines if file in files_of(key))].append(trial)
    # What no run comes upon by chance; all that runs data made for it, up to a cost; one of each kernel; then what adds
    # most variants for its cost.
    by_chance = [keys for keys, found in by_pipelines.items() if any("without" in one.changes for one in found)]
    chosen: frozenset[PipelineKey] = frozenset().union(*by_chance)
    patience += sum(map(_cost, chosen)) / _MOST_SPECIAL
    special = {keys: _aims(keys, found) for keys, found in by_pipelines.items()}
    aims = set().union(*special.values()) if special else set()
    while any(special.values()):
        keys = max(special, key=lambda keys: len(special[keys] & aims) / (_price(keys, chosen) + 1000))
        if not special[keys] & aims:
            break
        if sum(map(_cost, chosen | keys)) <= patience * _MOST_SPECIAL:
            chosen |= keys
            aims -= special[keys]
        special[keys] = set()
    for kernel in sorted({key.kernel for keys in by_pipelines for key in keys} - {key.kernel for key in chosen}):
        with_it = (keys for keys in by_pipelines if any(key.kernel == kernel for key in keys))
        chosen |= min(with_it, key=partial(_price, chosen=chosen))
    missing = _features(frozenset().union(*by_pipelines))
    missing -= _features(chosen)
    left = list(by_pipelines)  # not a set: among equals the first is taken, always the same
    spent = sum(map(_cost, chosen))
    while left:
        best = max(left, key=partial(_gain, chosen=chosen, missing=missing))
        spent += _price(best, chosen)
        if chosen and spent > patience * _MOST_CHARACTERS:
            break
        left.remove(best)
        chosen |= best
        missing -= _features(best)
    groups = [_Group(found, sum(map(_cost, keys)) / 1e5) for keys, found in by_pipelines.items() if keys <= chosen]
    share = max(_FIRST, _MOST_TRIALS // max(1, len(groups)))
    # Few trials of many pipelines, or many of few.
    for number, group in enumerate(groups):
        random.Random(number).shuffle(group.trials)
        group.trials.sort(key=lambda trial: not trial.is_special)
        del group.trials[max(share, sum(trial.is_special for trial in group.trials)) :]
    return groups


def _aims(keys: frozenset[PipelineKey], found: list[Trial]) -> set[tuple[object, ...]]:
    """Return what data made for a file is about: families of elements, by type, kernel, operator and way to read."""
    ways = sorted({f"{key.kernel} {dict(key.slots).get('run_access')}" for key in keys})
    return {(one.case.family, one.case.dtype, one.case.column, *ways, *one.changes) for one in found if one.is_special}


def _gain(keys: frozenset[PipelineKey], chosen: frozenset[PipelineKey], missing: set[_Feature]) -> tuple[float, ...]:
    """Return how good it is to take these pipelines next: for the variants among them, else for being cheap."""
    cost = _price(keys, chosen) + 1.0
    return len(_features(keys) & missing) / cost, -cost


def _price(keys: frozenset[PipelineKey], chosen: frozenset[PipelineKey]) -> float:
    return sum(map(_cost, keys - chosen))


_Feature = tuple[str, str, object]


def _features(keys: frozenset[PipelineKey]) -> set[_Feature]:
    """Return what variants there are, alone and of each type with each operator."""
    found: set[_Feature] = {(key.kernel, name, value) for key in keys for name, value in (*key.slots, *key.constants)}
    return found | {("", str(dict(key.slots).get("element")), dict(key.constants).get("product")) for key in keys}


@cache
def _cost(key: PipelineKey) -> float:
    """Return about how long it takes to compile, in some unit."""
    slots = dict(key.slots)
    in_loops = slots.get("run") == "loops"
    heavy = 2 if in_loops else _HEAVY.get(slots.get("element", ""), 1)
    written_out = dict(key.constants).get("vectors", 1)
    return len(shaders.resolve(key.kernel, slots).source) * heavy * written_out
