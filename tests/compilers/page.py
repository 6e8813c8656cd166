"""docs/gpu-compilers.md, from what the compilers said. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from dmlgpu.planning.dispatch import PipelineKey

from .drivers import AMD, NVIDIA, Figures
from .rows import row_of, worst

__all__ = ["Results", "page"]

Results = Mapping[str, Mapping[PipelineKey, Figures]]
"""For the name of each GPU what its compiler said of each pipeline."""

_SUM, _PRODUCT = 0, 1

_HEAD = """\
# What compilers of GPUs make of the shaders

This page says how many registers and how much memory each kernel takes on GPUs, according to the compilers in the GPUs'
drivers. `make gpu-compilers` compiles the pipelines that a plan for a GPU can take, and writes the page. **It needs no GPU and
runs nothing: nothing here is a time or a result.** Each figure holds for the GPU that the compiler compiled for.

| compiler | where it comes from | of which pipelines | fails on |
|---|---|---|---|
| ACO, in Mesa's Vulkan driver for AMD's GPUs ({mesa}) | Debian's backports | {amd}, for navi31 (RX 7900), navi21 (RX 6900) and vega10 (RX Vega 64) | scratch memory, spilled vector registers |
| NAK, in Mesa's Vulkan driver for NVIDIA's GPUs ({nvk}) | Debian 13 | {nvidia}, for tu104 (RTX 2080) | local memory that [local_memory.toml](../tests/compilers/local_memory.toml) does not list |
| spirv-val, which checks SPIR-V | Debian's `spirv-tools` | the modules that wgpu gives AMD's driver for navi31 | what is not valid for Vulkan 1.3 |
| DXC, the compiler of Direct3D 12, on HLSL that naga writes | PyPI's `compushady` (DXC 1.7), npm's `wgsl-wasm-transpiler-bundler` (naga 25) | {hlsl}: one of each kernel, type, operator, and way to read and write | an error of naga or DXC |

A plan for a GPU can take {total} pipelines. Pipelines count as alike if they differ only in the
buffers they bind and in whether there is more than one dimension besides the axis. Of these, the one with more dimensions
is compiled. When all were compiled on AMD's GPUs, alike pipelines had the same worst vector registers, waves and
workgroup memory in every row below.

Both drivers are those that Linux with Mesa uses on these GPUs. A shim, which Mesa makes for this purpose, answers them in
the place of the kernel's part of the driver. They are unpacked into `.cache/compilers`; only `spirv-tools`, `nodejs` and
`npm` are installed.

What is not shown:

- FXC, the older compiler of Direct3D 12, which wgpu-py asks for by default: it has [a page of its own](fxc.md);
- NVIDIA's own driver, which has another compiler; Intel's and Apple's GPUs;
- native float64 on Direct3D 12, because wgpu has it on Vulkan only.

The naga that writes HLSL here is older than the one in wgpu. Override constants are replaced by their values before, as in
wgpu.

## Columns

A row is a kernel with an element type. Each figure is the worst of its pipelines; `48 / 52` is 48 for sums and 52 for
products. Scans of unsigned integers take the pipelines of signed ones. "float64 on words" is for devices without 64-bit
floats ([float64.md](float64.md)).

| column | meaning |
|---|---|
| pipelines | how many were compiled for each GPU |
| VGPRs, GPRs | vector registers of an invocation. The fewer there are, the more waves a GPU holds at a time, of which some compute while others wait for memory. |
| waves | occupancy: how many waves a SIMD unit holds, by registers and workgroup memory: at most 32 of 32 invocations on navi31 and navi21, 10 of 64 on vega10 |
| warps | how many warps of 32 invocations the registers of a multiprocessor hold; at most 32 on tu104 |
| SGPRs | scalar registers of a wave; the newer GPUs always give 128 |
| spilled SGPRs | scalars kept in vector registers, on whichever of the three has most; cheap |
| LDS | bytes of workgroup memory |
| instructions, code | the number of instructions and their bytes, on navi31 |
| local memory | bytes of an invocation that live in memory, mostly small arrays that a loop indexes |

On AMD's GPUs no pipeline has scratch memory or a spilled vector register; the command fails if one has.
"""  # noqa: E501


def page(results: Results, total: int, hlsl: int, versions: Mapping[str, str]) -> str:
    """Return the text of the page.

    Parameters
    ----------
    results : Results
        For each of `AMD` and `NVIDIA`.
    total : int
        How many pipelines there are.
    hlsl : int
        How many pipelines went through DXC.
    versions : mapping of str to str
        The driver of each GPU.
    """
    head = _HEAD.format(
        mesa=versions[AMD[0].gpu],
        nvk=versions[NVIDIA.gpu],
        amd=_how_many(len(results[AMD[0].gpu]), total),
        nvidia=_how_many(len(results[NVIDIA.gpu]), total),
        total=total,
        hlsl=hlsl,
    )
    return f"{head}\n## AMD\n\n{_amd(results)}\n## NVIDIA\n\n{_nvidia(results[NVIDIA.gpu])}"


def _how_many(compiled: int, total: int) -> str:
    return f"all {total}" if compiled == total else f"{compiled}: one of those that are alike"


def _amd(results: Results) -> str:
    gpus = [driver.gpu for driver in AMD]
    tables = {gpu: _rows(results[gpu]) for gpu in gpus}
    lines = []
    for row, newest in tables[gpus[0]].items():
        of_all = [tables[gpu][row] for gpu in gpus]
        spilled = [worst(group[i] for group in of_all if i in group) for i in newest]
        lines.append(
            [
                *row,
                str(sum(row_of(key) == row for key in results[gpus[0]])),
                *(_both(group.values(), "vgprs") for group in of_all),
                *(_both(group.values(), "waves") for group in of_all),
                _both(of_all[-1].values(), "sgprs"),
                _both(spilled, "spilled_sgprs"),
                *(_both(newest.values(), name) for name in ("lds", "instructions", "code")),
            ]
        )
    heads = ["kernel", "type", "pipelines", *(f"VGPRs, {gpu}" for gpu in gpus), *(f"waves, {gpu}" for gpu in gpus)]
    return _table([*heads, "SGPRs, vega10", "spilled SGPRs", "LDS", "instructions", "code"], lines)


def _nvidia(results: Mapping[PipelineKey, Figures]) -> str:
    lines = []
    for row, group in _rows(results).items():
        warps = [{"warps": _warps(figures["gprs"])} for figures in group.values()]
        lines.append(
            [
                *row,
                str(sum(row_of(key) == row for key in results)),
                _both(group.values(), "gprs"),
                _both(warps, "warps"),
                _both(group.values(), "instructions"),
                _both(group.values(), "local"),
            ]
        )
    return _table(["kernel", "type", "pipelines", "GPRs", "warps", "instructions", "local memory"], lines)


def _warps(gprs: int) -> int:
    """Return how many warps a Turing multiprocessor has registers for: 65,536, given out by 8 an invocation."""
    return min(32, 65_536 // (32 * -(-gprs // 8) * 8))


def _rows(results: Mapping[PipelineKey, Figures]) -> dict[tuple[str, str], dict[int, Figures]]:
    """Return for each kernel and type the worst figures of each operator."""
    groups: defaultdict[tuple[str, str], defaultdict[int, list[Figures]]] = defaultdict(lambda: defaultdict(list))
    for key, figures in results.items():
        groups[row_of(key)][dict(key.constants).get("product", _SUM)].append(figures)
    return {
        row: {operator: worst(group[operator]) for operator in (_SUM, _PRODUCT) if operator in group}
        for row, group in sorted(groups.items())
    }


def _both(groups: Iterable[Mapping[str, int]], name: str) -> str:
    """Return a figure of sums and of products, or one where they agree."""
    return " / ".join(dict.fromkeys(str(figures[name]) for figures in groups))


def _table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    rule = ["---", "---", *("--:" for _ in heads[2:])]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (heads, rule, *lines))
