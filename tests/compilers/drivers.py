"""The drivers whose compilers are asked, how they are made to believe in a GPU, and what they say of a pipeline."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dmlgpu.planning.dispatch import PipelineKey

from .worker import BEGIN, END, FAILED, to_line

ROOT = Path(__file__).resolve().parents[2]
COMPILERS = ROOT / ".cache" / "compilers"
_LIBRARIES = f"usr/lib/{platform.machine()}-linux-gnu"

_RADV = {
    "VGPRs": "vgprs",
    "SGPRs": "sgprs",
    "Spilled VGPRs": "spilled_vgprs",
    "Spilled SGPRs": "spilled_sgprs",
    "Scratch size": "scratch",
    "LDS size": "lds",
    "Subgroups per SIMD": "waves",
    "Instructions": "instructions",
    "Code size": "code",
}
_NVK = {"Num GPRs": "gprs", "SLM size": "local", "Instruction count": "instructions"}


@dataclass(frozen=True)
class Driver:
    """A GPU that is not there.

    Attributes
    ----------
    gpu : str
        Its name.
    adapter : str
        A part of the summary of the adapter that its driver shows.
    statistics : mapping of str to str
        What the driver calls each figure, and what it is called here.
    """

    gpu: str
    adapter: str
    statistics: Mapping[str, str]


AMD = tuple(Driver(gpu, gpu.upper(), _RADV) for gpu in ("navi31", "navi21", "vega10"))
NVIDIA = Driver("tu104", "NVK", _NVK)

Figures = dict[str, int]


class CompilerError(Exception):
    """A pipeline that a compiler refuses or dies of, or of which it says nothing."""


def compile_pipelines(driver: Driver, keys: Sequence[PipelineKey], *, spirv_val: bool = False) -> Iterator[Figures]:
    """Yield what a driver says of each pipeline, in a process of its own.

    Parameters
    ----------
    driver : Driver
        One of `AMD`, or `NVIDIA`.
    keys : sequence of PipelineKey
        What to compile.
    spirv_val : bool
        Whether spirv-val checks the module that wgpu gives the driver; with AMD's only.

    Raises
    ------
    CompilerError
        If a pipeline does not compile, the driver ends the process, or spirv-val refuses a module.
    """
    with _command(driver, spirv_val) as (command, environment), tempfile.TemporaryFile("w+") as names:
        names.writelines(f"{to_line(key)}\n" for key in keys)
        names.seek(0)
        with subprocess.Popen(
            [*command, "-m", "tests.compilers.worker", driver.adapter],
            cwd=ROOT,
            env=environment,
            stdin=names,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        ) as process:
            assert process.stderr is not None
            done = 0
            for block in _blocks(process.stderr):
                try:
                    yield read_block(block, driver)
                except CompilerError as error:
                    process.kill()
                    key = keys[done] if done < len(keys) else "opening the device"
                    raise CompilerError(f"{driver.gpu}: {key}: {error}") from None
                done += 1
        if done < len(keys):
            raise CompilerError(f"{driver.gpu}: the process ended with status {process.returncode} at {keys[done]}")


def _blocks(lines: Iterable[str]) -> Iterator[list[str]]:
    """Yield the lines that belong to each pipeline; before the first one, and after the last, lines are dropped."""
    block: list[str] | None = None
    other: list[str] = []
    for line in map(str.rstrip, lines):
        if line == BEGIN:
            block = []
        elif block is None:
            other.append(line)
        else:
            # Of all that NVK prints no line begins with a name and a number but the figures.
            block.append(line)
            if line == END or line.startswith(FAILED):
                yield block
                block = None
    if block is not None:
        yield [*block, f"{FAILED} the driver ended the process"]


def read_block(block: Sequence[str], driver: Driver) -> Figures:
    """Return the figures in what a driver printed while it compiled a pipeline.

    Raises
    ------
    CompilerError
        If it has none, or says that something failed.
    """
    if block[-1].startswith(FAILED):
        raise CompilerError("\n".join(block[-20:]))
    found: Figures = {}
    for line in block:
        name, colon, value = line.partition(": ")
        if colon and name in driver.statistics and value.isdecimal():
            figure = driver.statistics[name]
            found[figure] = max(found.get(figure, 0), int(value))
    missing = [name for name, figure in driver.statistics.items() if figure not in found]
    if missing:
        raise CompilerError(f"the driver does not tell {', '.join(missing)}")
    return found


@contextmanager
def _command(driver: Driver, spirv_val: bool) -> Iterator[tuple[list[str], dict[str, str]]]:
    """Give the command that runs Python on a driver, and its environment."""
    folder = COMPILERS / ("nvk" if driver is NVIDIA else "radv")
    libraries = folder / _LIBRARIES
    paths = f"{libraries}:{folder / _LIBRARIES.removeprefix('usr/')}"
    environment = os.environ | {"VK_DRIVER_FILES": f"{folder}.json", "MESA_SHADER_CACHE_DISABLE": "true"}
    if driver is NVIDIA:
        environment |= {"NOUVEAU_CHIPSET": "164", "NAK_DEBUG": "print"}
        # Debian 13's C library, and so its loader, run this system's Python.
        paths += f":/{_LIBRARIES}:/{_LIBRARIES.removeprefix('usr/')}"
        shim = libraries / "libnouveau_noop_drm_shim.so"
        command = [str(libraries / "ld-linux-x86-64.so.2"), "--argv0", sys.executable]
        command += ["--preload", str(shim), "--library-path", paths, os.path.realpath(sys.executable)]
        yield command, environment
        return
    environment |= {
        "LD_LIBRARY_PATH": paths,
        "LD_PRELOAD": str(libraries / "libamdgpu_noop_drm_shim.so"),
        "AMDGPU_GPU_ID": driver.gpu,
        "RADV_DEBUG": "nocache,shaderstats",
    }
    with tempfile.TemporaryDirectory() as modules:
        yield [sys.executable], environment | ({"MESA_SPIRV_DUMP_PATH": modules} if spirv_val else {})


def version(driver: Driver) -> str:
    """Return the version of a driver, as it says itself.

    Raises
    ------
    CompilerError
        If there is no such adapter.
    """
    code = "from dmlgpu.runtime.adapters import select_adapter as s; import sys; print(s(sys.argv[1]).driver)"
    with _command(driver, False) as (command, environment):
        done = subprocess.run([*command, "-c", code, driver.adapter], env=environment, capture_output=True, text=True)
    if done.returncode:
        raise CompilerError(f"{driver.gpu}: {done.stderr}")
    return done.stdout.strip()
