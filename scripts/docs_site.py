#!/usr/bin/env python3
"""Build the documentation as a site that needs no network: guides, an API reference, a gallery, the kernels.

::

    python scripts/docs_site.py build/docs             # or: make docs
    python scripts/docs_site.py --links build/links    # asks every other site that is linked to; needs a network

The pages stay as they are on GitHub. They are copied into a folder of the same layout, with links that lead to files of
Python or WGSL turned into links to pages that show these. Whatever Sphinx warns of is an error, such as a link within
the site that leads nowhere. The gallery runs the examples, and the
tutorial's notebook is executed.
"""

from __future__ import annotations

import importlib
import inspect
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

import gpu_page

ROOT = Path(__file__).resolve().parent.parent
SETTINGS = ROOT / "scripts" / "docs_site"
PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "wgsl/README.md", "benchmarks/README.md",
         "benchmarks/results/README.md", "examples/data/README.md")  # fmt: skip
SHOWN = {".py": "python", ".wgsl": "wgsl", ".js": "js"}
"""Files that get pages of their own where a page links to them, and their languages."""

API = {
    "dmlgpu": "Functions and arrays",
    "dmlgpu.errors": "Errors",
    "dmlgpu.directml": "DirectML's structs and objects",
    "dmlgpu.reference": "The reference",
    "dmlgpu.conformance": "Conformance",
}
"""The modules whose public names are documented, and the titles of their pages."""

GALLERY = {
    "demo": "Fifty years of the US economy in a running product, a running sum and a rounding.",
    "growth": "Forty years of savings in 20,000 futures: running products of a table, from both ends.",
    "numpy_face": "NumPy arrays in and out, and arrays that stay on the device.",
    "large_file": "A file larger than the memory that may be used, on the command line.",
    "dask_cluster": "A dask array and an xarray on a cluster of processes, with the bits of one call.",
    "directml_structs": "DirectML's structs, and what a mistake in them says.",
    "directml_hello": "DirectML's own way: operators, binding tables and a command recorder.",
    "directmlx": "A small graph builder over DirectML's operators.",
    "wgpu_interop": "A prefix sum between compute passes of your own, without a copy.",
    "equalise": "A picture equalised in one submission: histogram, cumulative distribution, lookup.",
}
"""The programs of examples/, in the gallery's order."""
PICTURES = ("demo", "growth", "equalise")
"""Those of them that draw a picture where ``--output`` says."""
ACCURACY = Path("benchmarks/accuracy.py")

_LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)#\s]+)(#[^)\s]*)?(?=\))")


class Site:
    """The folder that Sphinx reads."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.programs: set[Path] = set()

    def write(self, path: str, text: str) -> None:
        """Write a page."""
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")

    def take_pages(self) -> None:
        """Copy the pages and what they link to."""
        for path in [*(ROOT / name for name in PAGES), *reports(), *pages_of_docs()]:
            name = path.relative_to(ROOT)
            text = _LINK.sub(lambda match, path=path: self._link(path, match), path.read_text(encoding="utf-8"))
            self.write("index.md" if name == Path("README.md") else str(name), text)
        shutil.copytree(ROOT / "docs" / "images", self.folder / "docs" / "images")
        index = self.folder / "index.md"
        index.write_text(index.read_text(encoding="utf-8") + contents(), encoding="utf-8")

    def _link(self, page: Path, match: re.Match[str]) -> str:
        """Return where a link leads in the site."""
        target = (page.parent / match[1]).resolve()
        anchor = match[2] or ""
        assert target.exists(), f"{page.relative_to(ROOT)} links to {match[1]}, which is not there"
        name = target.relative_to(ROOT)
        if name == Path("README.md"):
            found = Path("index.md")
        elif target.is_dir():
            found = Path("gallery.md" if name == Path("examples") else f"programs/{name}.md")
            if name != Path("examples"):
                self.show_folder(name)
        elif target.suffix in SHOWN:
            self.programs.add(name)
            found, anchor = Path("programs") / f"{name}.md", ""
        else:
            found = name
            if target.suffix != ".md" and not name.is_relative_to("docs/images"):
                (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(target, self.folder / name)
        return os.path.relpath(found, page.relative_to(ROOT).parent) + anchor

    def show_folder(self, name: Path) -> None:
        """Write a page that lists a folder's programs."""
        files = [path.relative_to(ROOT) for path in sorted((ROOT / name).iterdir()) if path.suffix in SHOWN]
        self.programs.update(files)
        links = [f"- [{path.name}]({os.path.relpath(path, name.parent)}.md)" for path in files]
        self.write(f"programs/{name}.md", "\n".join(["---\norphan: true\n---", f"# {name}", "", *links, ""]))

    def show_kernels(self) -> None:
        """Write pages for all shaders, and their contents at the end of the page of kernels."""
        kernels = [path.relative_to(ROOT) for path in sorted((ROOT / "wgsl").rglob("*.wgsl"))]
        self.programs.update(kernels)
        page = self.folder / "wgsl" / "README.md"
        entries = "\n".join(f"../programs/{name}" for name in kernels)
        listed = f"\n## All files\n\n```{{toctree}}\n:maxdepth: 1\n\n{entries}\n```\n"
        page.write_text(page.read_text(encoding="utf-8") + listed, encoding="utf-8")

    def show_programs(self) -> None:
        """Write the pages of programs that were linked to."""
        for name in sorted(self.programs):
            text = (ROOT / name).read_text(encoding="utf-8")
            front = "" if name.suffix == ".wgsl" else "---\norphan: true\n---\n"
            fence = "`" * 5
            block = f"{fence}{{code-block}} {SHOWN[name.suffix]}\n:class: program\n\n{text}\n{fence}\n"
            self.write(f"programs/{name}.md", f"{front}# {name}\n\n{block}")

    def document(self) -> None:
        """Write the pages of the API reference."""
        entries = []
        for name, title in API.items():
            page = f"api/{name}"
            entries.append(name)
            self.write(f"{page}.rst", api_page(name, title))
        listed = "\n".join(entries)
        self.write(
            "api/index.md",
            f"# API reference\n\nEvery public name.\n\n```{{toctree}}\n:maxdepth: 2\n\n{listed}\n```\n",
        )

    def run_examples(self) -> None:
        """Run the examples, and write what they print and draw into the gallery."""
        assert {path.stem for path in (ROOT / "examples").glob("*.py")} == set(GALLERY)
        parts = ["# Gallery\n\nPrograms of `examples/`, with what they printed and drew when this site was built.\n"]
        pictures = self.folder / "gallery"
        pictures.mkdir()
        for name, title in GALLERY.items():
            program = Path("examples") / f"{name}.py"
            self.programs.add(program)
            draws = name in PICTURES
            printed = self.run(program, *(["--output", str(pictures / f"{name}.png")] if draws else []))
            printed = re.sub(r"\S*gallery/", "examples/output/", printed)
            picture = f"![{title}](gallery/{name}.png)\n\n" if draws else ""
            parts.append(
                f"## {name}\n\n{title} [The program](programs/{program}.md)\n\n{picture}```text\n{printed}```\n"
            )
        self.run(ACCURACY, "--lengths", "1000,10000,100000,1000000", "--plot", str(pictures / "accuracy.png"))
        self.programs.add(ACCURACY)
        shutil.copy(ROOT / "docs" / "images" / "order.svg", pictures)
        parts.append(
            "## accuracy\n\nErrors of cumulative sums, beside NumPy's and naive ones. "
            f"[The program](programs/{ACCURACY}.md)\n\n![Errors by length](gallery/accuracy.png)\n\n"
            "## The order of a sum\n\n![Runs, blocks, tiles and spans](gallery/order.svg)\n"
        )
        self.write("gallery.md", "\n".join(parts))

    def run(self, program: Path, *arguments: str) -> str:
        """Run a program of the repository; return what it prints."""
        done = subprocess.run(
            [sys.executable, str(ROOT / program), *arguments],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | {"MPLBACKEND": "Agg"},
        )
        if done.returncode:
            raise SystemExit(f"docs_site.py: {program} ended with exit status {done.returncode}:\n{done.stderr}")
        return done.stdout


def api_page(name: str, title: str) -> str:
    """Return a page of reStructuredText with every public name of a module."""
    module = importlib.import_module(name)
    functions, classes, values = [], [], []
    for public in sorted(public_names(module), key=str.lower):
        value = getattr(module, public)
        if inspect.ismodule(value):
            continue
        if inspect.isclass(value):
            classes.append(f".. autoclass:: {name}.{public}\n   :members:\n   :inherited-members: {_bases(value)}\n")
        elif callable(value):
            functions.append(f".. autofunction:: {name}.{public}\n")
        else:
            values.append((public, value))
    parts = [_heading(f"{title}: ``{name}``", "="), f".. py:module:: {name}\n", inspect.getdoc(module) or ""]
    parts += [_heading("Functions", "-"), *functions] if functions else []
    parts += [_heading("Classes", "-"), *classes] if classes else []
    if values:
        rows = [f"   * - .. py:data:: {public}\n     - ``{value!r}``" for public, value in values]
        parts += [_heading("Constants", "-"), ".. list-table::\n   :widths: 70 30\n", "\n".join(rows)]
    return "\n\n".join(parts) + "\n"


def pages_of_docs() -> list[Path]:
    """Return the pages of docs/, of which one is a notebook."""
    return [path for path in sorted((ROOT / "docs").rglob("*")) if path.suffix in {".md", ".ipynb"}]


def reports() -> list[Path]:
    """Return the reports from GPUs."""
    return [path for path in sorted((ROOT / "benchmarks" / "results").glob("*.md")) if path.name != "README.md"]


def public_names(module: ModuleType) -> Iterable[str]:
    """Return the names that a module offers: those of ``__all__``."""
    names: Iterable[str] = vars(module)["__all__"]
    return [name for name in names if not name.startswith("__")]


def _bases(value: type) -> str:
    """Return the bases whose members are not the class's own to document."""
    return ",".join(base.__name__ for base in value.__mro__[1:] if not base.__module__.startswith("dmlgpu")) or "object"


def _heading(text: str, line: str) -> str:
    return f"{text}\n{line * len(text)}\n"


CONTENTS = """
```{toctree}
:hidden:
:caption: Guides

Guides <docs/README>
docs/tutorial
DirectML <docs/directml>
Devices <docs/portability>
Other languages <docs/export>
Check your GPU <check-your-gpu>
Gallery <gallery>
```

```{toctree}
:hidden:
:caption: Reference

API <api/index>
docs/functions
docs/glossary
docs/numerics
docs/float64
docs/reliability
docs/kernels
wgsl/README
docs/runtime
docs/performance
{others}
```

```{toctree}
:hidden:
:caption: Working on dmlgpu

CONTRIBUTING
docs/development
benchmarks/README
benchmarks/results/README
{reports}
docs/gpu-compilers
docs/fxc
docs/mutations
{notes}
CHANGELOG
SECURITY
examples/data/README
```
"""


def contents() -> str:
    """Return the site's contents, with the pages of docs/ that `CONTENTS` does not name."""
    pages = [str(path.relative_to(ROOT).with_suffix("")) for path in pages_of_docs()]
    named = re.findall(r"[\w/-]+", CONTENTS)
    others = [page for page in pages if page not in named]
    notes = [page for page in others if page.startswith("docs/notes/")]
    text = CONTENTS.replace("{notes}", "\n".join(notes))
    text = text.replace("{reports}", "\n".join(str(path.relative_to(ROOT).with_suffix("")) for path in reports()))
    return text.replace("{others}", "\n".join(page for page in others if page not in notes))


CHECK = """# Check your GPU

<a href="gpu/index.html">Same bits on your GPU?</a> runs conformance cases on your GPU through your browser's WebGPU. It
compares each result with the reference, shows a verdict for each element type and kernel, and measures speed beside a
copy's. Below it is a playground: type numbers, choose an operator, and see results, plan and WGSL. It needs a browser
with WebGPU, and no network.
"""


def build(target: Path, builder: str) -> int:
    """Build the site with one of Sphinx's builders; return Sphinx's exit status."""
    with tempfile.TemporaryDirectory() as name:
        site = Site(Path(name))
        site.take_pages()
        site.write("check-your-gpu.md", CHECK)
        site.document()
        site.run_examples()
        site.show_kernels()
        site.show_programs()
        (site.folder / "_static").mkdir()
        shutil.copy(SETTINGS / "site.css", site.folder / "_static")
        shutil.rmtree(target, ignore_errors=True)
        command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-E", "-b", builder, "-c", str(SETTINGS)]
        doctrees = str(site.folder / ".doctrees")
        settings = [f"-Dhtml_static_path={site.folder / '_static'}", "-Dexclude_patterns=.doctrees"]
        done = subprocess.run([*command, *settings, "-d", doctrees, str(site.folder), str(target)], check=False)
    if done.returncode or builder != "html":
        return done.returncode
    return gpu_page.main([str(target / "gpu")])


def main(arguments: list[str]) -> int:
    """Build the site into a folder, or check the links to other sites."""
    builder = "linkcheck" if arguments[:1] == ["--links"] else "html"
    folders = [name for name in arguments if name != "--links"]
    if len(folders) != 1:
        print("docs_site.py: give the folder that the site goes into, after --links if you like", file=sys.stderr)
        return 2
    return build(Path(folders[0]).resolve(), builder)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
