"""``make gpu-compilers``: compile what GPUs would run, judge, and write docs/gpu-compilers.md."""

from __future__ import annotations

import argparse
import json
import sys
import time
import tomllib
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from dmlgpu.planning.dispatch import PipelineKey
from dmlgpu.runtime.measured import usable_cores

from . import fxc
from .answers import Answers, digest
from .drivers import AMD, COMPILERS, NVIDIA, ROOT, CompilerError, Driver, Figures, compile_pipelines, version
from .hlsl import TOOLS, compile_hlsl
from .page import Results, page
from .pipelines import gpu_pipelines
from .rows import one_of_each, row_of

PAGE = ROOT / "docs" / "gpu-compilers.md"
FXC_PAGE = ROOT / "docs" / "fxc.md"
LOCAL_MEMORY = Path(__file__).parent / "local_memory.toml"
_ANSWERS = COMPILERS / "answers.json"
_SAME_SOURCE = ("flat", "slice_length", "phase", "in_windows", "output_kind", "output_log2_bits")
_SAME_SOURCE += ("output_mantissa_bits", "output_exponent_bias")
"""Constants of which one value is enough for Direct3D 12: they choose among lines that all have to be accepted."""
_PART = 100
"""How many pipelines a process compiles at most, after which its answers are kept."""
_DIRECT3D = "Direct3D 12"

Compile = Callable[[Sequence[PipelineKey]], Iterator[Any]]


def main() -> int:
    """Return 0 if all compiles, and nothing takes memory for registers but what is listed; else 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.compilers", description=main.__doc__)
    parser.add_argument("--sample", action="store_true", help="a pipeline of each kernel and type; writes no page")
    parser.add_argument("--fxc", action="store_true", help="only Direct3D 12's older compiler; writes docs/fxc.md")
    parser.add_argument("--fewer", action="store_true", help="on AMD's GPUs as many as on NVIDIA's, for a page sooner")
    parser.add_argument("--jobs", type=int, default=usable_cores(), metavar="N", help="how many processes compile")
    parser.add_argument("--again", action="store_true", help="compile what has not changed since it last was, too")
    parser.add_argument("--accept", action="store_true", help=f"write {LOCAL_MEMORY.name} as it is now")
    arguments = parser.parse_args()
    if arguments.again:
        _ANSWERS.unlink(missing_ok=True)
    if arguments.fxc:
        return _ask_fxc(arguments.jobs)
    try:
        versions = {AMD[0].gpu: version(AMD[0]), NVIDIA.gpu: version(NVIDIA)}
        answers = Answers(_ANSWERS)
        keys = chosen(sample=arguments.sample, fewer=arguments.fewer)
        results = _compile(keys, _compilers(versions), arguments.jobs, answers)
    except CompilerError as error:
        print(error, file=sys.stderr)
        return 1
    compiled = sum(map(len, results.values()))
    hlsl = len(results.pop(_DIRECT3D))
    if arguments.accept:
        LOCAL_MEMORY.write_text(write_local_memory(local_memory(results[NVIDIA.gpu])), encoding="utf-8")
    if not arguments.sample:
        if not arguments.fewer:
            answers.forget_unused()
        PAGE.write_text(page(results, len(gpu_pipelines()), hlsl, versions), encoding="utf-8")
        print(f"{PAGE.relative_to(ROOT)} has the tables")
    listed = tomllib.loads(LOCAL_MEMORY.read_text(encoding="utf-8"))
    problems = judge(results, listed, complete=not arguments.sample)
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"gpu-compilers: {compiled} pipelines compiled, {len(problems)} problems")
    return 1 if problems else 0


def _ask_fxc(jobs: int) -> int:
    """Compile a pipeline of each kernel and type with FXC, and write what it takes."""
    without = "FXC, without zeros"
    ways: dict[str, tuple[str, Compile]] = {
        "FXC": (fxc.TOOLS, fxc.compile_with_fxc),
        without: (f"{fxc.TOOLS}, without zeros", partial(fxc.compile_with_fxc, zeros=False)),
    }
    try:
        results = _compile(dict.fromkeys(ways, for_fxc()), ways, jobs, Answers(_ANSWERS))
    except CompilerError as error:
        print(error, file=sys.stderr)
        return 1
    FXC_PAGE.write_text(fxc.page(results["FXC"], results[without]), encoding="utf-8")
    print(f"{FXC_PAGE.relative_to(ROOT)} has the table")
    return 0


def for_fxc() -> list[PipelineKey]:
    """Return the pipelines for Direct3D 12's older compiler, one of each kernel and type."""
    return _one_of(_for_direct3d(sorted(gpu_pipelines(), key=repr)), row_of)


def _for_direct3d(keys: Iterable[PipelineKey]) -> list[PipelineKey]:
    """Leave out native float64, which wgpu has on Vulkan only."""
    return [key for key in keys if ("element", "f64") not in key.slots]


def chosen(*, sample: bool = False, fewer: bool = False) -> dict[str, list[PipelineKey]]:
    """Return the pipelines for each GPU, and for Direct3D 12."""
    every = sorted(gpu_pipelines(), key=repr)
    for_direct3d = _for_direct3d(every)
    if sample:
        # The others take longer: one of each kernel, of other types.
        return {
            AMD[0].gpu: _one_of(every, row_of),
            NVIDIA.gpu: _one_of(every, lambda key: key.kernel),
            _DIRECT3D: _one_of(for_direct3d, lambda key: key.kernel, 4),
        }
    some = one_of_each(every, "flat")
    return {
        **{driver.gpu: some if fewer else every for driver in AMD},
        NVIDIA.gpu: some,
        _DIRECT3D: one_of_each(for_direct3d, *_SAME_SOURCE),
    }


def _one_of(keys: Iterable[PipelineKey], group: Callable[[PipelineKey], Any], salt: int = 0) -> list[PipelineKey]:
    """Return one pipeline of each group, chosen without a pattern but always the same one for the same salt."""
    found: dict[Any, PipelineKey] = {}
    for key in sorted(keys, key=lambda key: zlib.crc32(repr(key).encode(), salt)):
        found.setdefault(group(key), key)
    return list(found.values())


def judge(results: Results, listed: Mapping[str, Mapping[str, int]], *, complete: bool) -> list[str]:
    """Return a line for each pipeline that takes memory for registers and should not.

    Parameters
    ----------
    results : Results
        What the compilers said.
    listed : mapping of str to mapping of str to int
        For kernels and types, the bytes of local memory that they may have on NVIDIA's GPUs.
    complete : bool
        Whether all pipelines were compiled, so that what is listed for nothing is found, too.
    """
    problems = []
    for driver in AMD:
        for key, figures in results.get(driver.gpu, {}).items():
            for name in ("scratch", "spilled_vgprs"):
                if figures[name]:
                    problems.append(f"{driver.gpu}: {figures[name]} {name.replace('_', ' ')}: {key}")
    found: Mapping[str, Mapping[str, int]] = local_memory(results[NVIDIA.gpu])
    for kernel, types in found.items():
        for name, size in types.items():
            allowed = listed.get(kernel, {}).get(name, 0)
            if size > allowed:
                problems.append(f"{NVIDIA.gpu}: {size} bytes of local memory, {allowed} are listed: {kernel}, {name}")
    if complete:
        for kernel, types in listed.items():
            for name, size in types.items():
                if found.get(kernel, {}).get(name, 0) < size:
                    problems.append(f"{LOCAL_MEMORY.name} lists more than there is: {kernel}, {name}; see --accept")
    return problems


def local_memory(results: Mapping[PipelineKey, Figures]) -> dict[str, dict[str, int]]:
    """Return the bytes of local memory of each kernel and type that has some."""
    found: dict[str, dict[str, int]] = {}
    for key, figures in results.items():
        if figures["local"]:
            kernel, name = row_of(key)
            found.setdefault(kernel, {})[name] = max(found.get(kernel, {}).get(name, 0), figures["local"])
    return found


def write_local_memory(found: Mapping[str, Mapping[str, int]]) -> str:
    lines = [
        "# Kernels and types whose invocations keep something in local memory on NVIDIA's GPUs, and how many bytes.",
        "# `make gpu-compilers` fails on any that are not listed here, and on more bytes. An array that a loop indexes",
        "# lives in memory; one that only constants index lives in registers.",
    ]
    for kernel, types in sorted(found.items()):
        table = kernel if kernel.isidentifier() else json.dumps(kernel)
        lines += ["", f"[{table}]", *(f"{json.dumps(name)} = {size}" for name, size in sorted(types.items()))]
    return "\n".join(lines) + "\n"


def _compile(
    chosen: Mapping[str, Sequence[PipelineKey]],
    compilers: Mapping[str, tuple[str, Compile]],
    jobs: int,
    answers: Answers,
) -> dict[str, dict[PipelineKey, Any]]:
    """Return what the compilers say of the chosen pipelines, which they are asked in `jobs` processes at a time."""
    results: dict[str, dict[PipelineKey, Any]] = {}
    with ThreadPoolExecutor(jobs) as pool:
        for name, keys in chosen.items():
            start = time.monotonic()
            compiler, compile_with = compilers[name]
            digests = {key: digest(compiler, key) for key in keys}
            new = [key for key in keys if digests[key] not in answers]
            count = max(4 * jobs, -(-len(new) // _PART))
            parts = [new[i::count] for i in range(min(count, len(new)))]
            said: list[Any]
            for part, said in zip(parts, pool.map(list, map(compile_with, parts)), strict=True):
                answers.add(zip((digests[key] for key in part), said, strict=True))
            results[name] = {key: answers[digests[key]] for key in keys}
            print(f"{name}: {len(keys)} pipelines, {len(new)} new: {time.monotonic() - start:.0f} s", flush=True)
    return results


def _compilers(versions: Mapping[str, str]) -> dict[str, tuple[str, Compile]]:
    """Return for each GPU, and for Direct3D 12, what names a compiler and its version, and how to ask it."""

    def of(driver: Driver) -> Compile:
        return lambda keys: compile_pipelines(driver, keys, spirv_val=driver is AMD[0])

    amd, nvidia = versions[AMD[0].gpu], versions[NVIDIA.gpu]
    found = {driver.gpu: (f"{driver.gpu} {amd}", of(driver)) for driver in AMD}
    return found | {NVIDIA.gpu: (f"{NVIDIA.gpu} {nvidia}", of(NVIDIA)), _DIRECT3D: (TOOLS, compile_hlsl)}


if __name__ == "__main__":
    sys.exit(main())
