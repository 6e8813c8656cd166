"""The wheel and the editable install work, and what the README shows is what one gets."""

from __future__ import annotations

import email
import os
import re
import runpy
import shutil
import subprocess
import sys
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path

import hatchling
import numpy as np
import pytest
import wgpu

import dmlgpu
from dmlgpu import reference
from dmlgpu.cli import main

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
SHADERS = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "wgsl").rglob("*.wgsl"))
# The device that the README's sample output names; elsewhere another one stands in its place.
SAMPLE_DEVICE = "llvmpipe (LLVM 15.0.6, 256 bits) (CPU) via Vulkan"


def run(command: list[str], cwd: Path, **environment: str) -> str:
    """Run a command; return its standard output, or fail with all it printed."""
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=cwd, env=inherited | environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, f"{command}: exit status {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


@dataclass(frozen=True)
class Environment:
    """A virtual environment with this package and, from the running one, what it depends on."""

    folder: Path

    @property
    def scripts(self) -> Path:
        return self.folder / ("Scripts" if os.name == "nt" else "bin")

    @property
    def python(self) -> str:
        return str(self.scripts / "python")

    @classmethod
    def make(cls, folder: Path, *requirement: str) -> Environment:
        """Make one without the network: a .pth file leads to the dependencies in the running environment.

        Python does not follow .pth files in such a place, so an editable install of dmlgpu there stays invisible.
        """
        venv.create(folder, with_pip=False, symlinks=os.name != "nt")
        environment = cls(folder)
        purelib = run([environment.python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], folder)
        places = {str(Path(module.__file__).parent.parent) for module in (np, wgpu, hatchling)}
        Path(purelib.strip(), "dependencies.pth").write_text("\n".join(sorted(places)))
        pip = [sys.executable, "-m", "pip", "--python", environment.python, "--disable-pip-version-check"]
        run([*pip, "install", "--quiet", "--no-deps", "--no-index", "--no-build-isolation", *requirement], folder)
        return environment


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run([sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)], folder)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return Environment.make(tmp_path_factory.mktemp("installed"), str(wheel))


@pytest.fixture(scope="module")
def editable(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return Environment.make(tmp_path_factory.mktemp("editable"), "--editable", str(ROOT))


def test_wheel_contains_the_package_and_its_shaders_only(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert len(SHADERS) > 5
    assert {f"dmlgpu/{shader}" for shader in SHADERS} <= set(names)
    assert {"dmlgpu/py.typed", "dmlgpu/__init__.py", "dmlgpu/runtime/device.py"} <= set(names)
    assert {re.split("[/-]", name)[0] for name in names} == {"dmlgpu"}
    assert not [name for name in names if "test" in name or "__pycache__" in name]


def test_wheel_metadata(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (info,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    metadata = email.message_from_bytes(archive.read(info))
    requirements = metadata.get_all("Requires-Dist") or []
    at_run_time = [requirement for requirement in requirements if "extra ==" not in requirement]
    assert sorted(re.split("[><=]", requirement)[0] for requirement in at_run_time) == ["numpy", "wgpu"]
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["License-Expression"] == "MIT"
    assert metadata["License-File"] == "LICENSE"
    description = str(metadata.get_payload())
    assert description.startswith("# dmlgpu\n")
    targets = re.findall(r"\]\(([^)]+)\)", description)
    assert not [target for target in targets if not re.match(r"https?://|#", target)], "dead links on a package index"
    assert "docs/numerics.md" in description
    entry_points = archive.read(info.replace("METADATA", "entry_points.txt")).decode()
    assert "dmlgpu = dmlgpu.cli:main" in entry_points


def test_source_archive_builds_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir"]
    run([*build, str(tmp_path), "--sdist", str(ROOT)], tmp_path)
    (archive,) = tmp_path.glob("*.tar.gz")
    run([sys.executable, "-m", "tarfile", "--extract", str(archive), str(tmp_path)], tmp_path)
    (source,) = tmp_path.glob("dmlgpu-*/")
    run([*build, str(tmp_path), "--wheel", str(source)], tmp_path)
    (rebuilt,) = tmp_path.glob("*.whl")
    assert zipfile.ZipFile(rebuilt).namelist() == zipfile.ZipFile(wheel).namelist()
    assert (source / "tests" / "test_packaging.py").is_file()
    assert (source / "Makefile").is_file()


@pytest.mark.parametrize("kind", ["installed", "editable"])
def test_package_and_shaders_are_found(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    environment: Environment = request.getfixturevalue(kind)
    show = "import dmlgpu, dmlgpu.shaders; print(dmlgpu.__file__); print(dmlgpu.shaders.folder())"
    package, shaders = map(Path, run([environment.python, "-c", show], tmp_path).splitlines())
    if kind == "installed":
        assert environment.folder.resolve() in package.resolve().parents
        assert shaders == package.parent / "wgsl"
    else:
        assert package == ROOT / "dmlgpu" / "__init__.py"
        assert shaders == ROOT / "wgsl"


@pytest.mark.parametrize("kind", ["installed", "editable"])
@pytest.mark.parametrize("way", ["module", "script"])
def test_it_computes_outside_the_checkout(kind: str, way: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    environment: Environment = request.getfixturevalue(kind)
    x = np.random.default_rng(1).standard_normal((3, 300), dtype=np.float32)
    np.save(tmp_path / "x.npy", x)
    command = [environment.python, "-m", "dmlgpu"] if way == "module" else [str(environment.scripts / "dmlgpu")]
    run([*command, "cumsum", "x.npy", "--axis", "1", "-o", "y.npy"], tmp_path)
    y = np.load(tmp_path / "y.npy")
    assert reference.first_difference(y, reference.cumulative(x, "sum", axis=1)) is None


def blocks(language: str, page: str = README) -> list[tuple[str, str]]:
    """Return the README's code blocks in a language, each with the ``text`` block that follows it, if one does."""
    pattern = rf"^```{language}\n(.*?)^```$(?:\n\n^```text\n(.*?)^```$)?"
    return [(code, output or "") for code, output in re.findall(pattern, page, re.MULTILINE | re.DOTALL)]


def shown(text: str) -> str:
    """Return sample output as it is on the device of this run."""
    return text.replace(SAMPLE_DEVICE, dmlgpu.default_device().summary)


@pytest.mark.parametrize("number", range(len(blocks("python"))))
def test_readme_python(number: int, installed: Environment, tmp_path: Path) -> None:
    code, output = blocks("python")[number]
    assert output
    assert run([installed.python, "-c", code], tmp_path) == shown(output)


GUIDES = [
    pytest.param(code, output, id=f"{page}-{number}")
    for page in ("large.md", "runtime.md")
    for number, (code, output) in enumerate(blocks("python", (ROOT / "docs" / page).read_text(encoding="utf-8")))
]


@pytest.mark.parametrize(("code", "output"), GUIDES)
def test_python_of_the_guides(code: str, output: str, installed: Environment, tmp_path: Path) -> None:
    assert output
    assert run([installed.python, "-c", code], tmp_path) == output


@pytest.mark.parametrize("number", range(len(blocks("console"))))
def test_readme_console(number: int, installed: Environment, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples" / "data", tmp_path / "examples" / "data")
    path = os.pathsep.join([str(installed.scripts), os.environ["PATH"]])
    session = blocks("console")[number][0]
    commands = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", session, re.MULTILINE)
    assert commands
    for command, output in commands:
        assert run(["bash", "-c", command], tmp_path, PATH=path) == shown(output)


PAGES = [
    *ROOT.glob("*.md"),
    *(path for folder in ("docs", "examples", "benchmarks", "wgsl") for path in (ROOT / folder).rglob("*.md")),
]


def anchors(page: Path) -> set[str]:
    """Return the names by which links reach a page's headings."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"there is no {target}"
        assert not anchor or anchor in anchors(file), f"{path} has no heading for {target}"


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: page.name)
def test_every_page_says_first_what_it_is_for(page: Path) -> None:
    title, sentence = page.read_text(encoding="utf-8").split("\n\n")[:2]
    assert title.startswith("# ")
    assert sentence.startswith("This page ")


TREES = "dmlgpu|wgsl|tests|scripts|benchmarks|examples|docs"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_files_that_are_named_exist(page: Path) -> None:
    """Pages name files as `folder/file` and modules as `package.module`; capitals stand for a name of one's own."""
    text = page.read_text(encoding="utf-8")
    named = set(re.findall(rf"`((?:{TREES})/[\w./-]*)`", text)) - {"dmlgpu/wgsl/"}  # a folder of the wheel
    missing = [name for name in named if not re.search("[A-Z]{4}", name) and not (ROOT / name).exists()]
    for module in re.findall(r"`(dmlgpu(?:\.[a-z_]+)+)", text):
        parts = module.split(".")
        paths = [ROOT.joinpath(*parts[:count]) for count in (len(parts), len(parts) - 1)]
        if not any(path.is_dir() or path.with_suffix(".py").is_file() for path in paths):
            missing.append(module)
    assert not missing


def test_every_folder_of_the_package_has_its_row() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    folders = {f"{path.parent.relative_to(ROOT).as_posix()}/" for path in (ROOT / "dmlgpu").rglob("__init__.py")}
    assert set(re.findall(r"^\| `(dmlgpu/[\w/]*)` \|", page, re.MULTILINE)) == folders


def test_every_module_of_the_runtime_has_its_row() -> None:
    page = (ROOT / "docs" / "runtime.md").read_text(encoding="utf-8")
    modules = {path.stem for path in (ROOT / "dmlgpu" / "runtime").glob("[!_]*.py")}
    assert set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == modules


def test_readme_for_package_indexes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Links become absolute where an address is known, else text; addresses and links within the page stay."""
    script = runpy.run_path(str(ROOT / "scripts" / "package_readme.py"))
    text = "![A plot](docs/p.png) [d.md](docs/d.md) [why](docs/d.md#why) [here](#a) [there](https://example.org/x)"
    plain = "*Picture: A plot.* `docs/d.md` why (`docs/d.md`) [here](#a) [there](https://example.org/x)"
    for name in ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_REF_NAME"):
        monkeypatch.delenv(name, raising=False)
    assert script["outside"](text, script["files_of_a_release"]()) == plain
    assert script["addresses"]() == {}
    monkeypatch.setenv("GITHUB_SERVER_URL", "https://example.org")
    monkeypatch.setenv("GITHUB_REPOSITORY", "a/b")
    monkeypatch.setenv("GITHUB_REF_NAME", "v1")
    absolute = script["outside"](text, script["files_of_a_release"]())
    for target in ("docs/p.png?raw=true", "docs/d.md", "docs/d.md#why"):
        assert f"](https://example.org/a/b/blob/v1/{target})" in absolute
    assert absolute.endswith(" [here](#a) [there](https://example.org/x)")
    assert script["addresses"]() == {
        "Source": "https://example.org/a/b",
        "Documentation": "https://example.org/a/b/blob/v1/docs/README.md",
        "Changelog": "https://example.org/a/b/blob/v1/CHANGELOG.md",
        "Issues": "https://example.org/a/b/issues",
    }


def first_screen() -> str:
    """Return the README up to its first commands."""
    return README.partition("```")[0]


def test_the_first_screen_names_the_devices_that_were_tried_and_no_others() -> None:
    """The table of what was shown decides; the README's first screen and the changelog follow it."""
    page = (ROOT / "docs" / "portability.md").read_text(encoding="utf-8")
    table = page.partition("## What was shown\n")[2].partition("\n## ")[0]
    rows = [line.split("|")[1:-1] for line in table.splitlines() if line.startswith("|")][2:]
    shown = [(cells[0].strip(), cells[2].strip()) for cells in rows]
    assert len(shown) >= 4
    assert {verdict for _, verdict in shown} == {"passed"}
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    for text in (first_screen(), changelog):
        plain = " ".join(text.split())
        tried, separator, untried = plain.partition("Not tried yet")
        assert separator
        tried = tried.rpartition("Tried")[2]
        for device, _ in shown:
            words = r"lavapipe|SwiftShader|llvmpipe|OpenGL|Vulkan|Dawn|Chromium|Mesa 2[5-9]|NVIDIA H200"
            for word in re.findall(words, device):
                assert word in tried, f"{device} passed, and is not named as tried: {tried}"
        for system in ("other GPUs", "Metal", "Direct3D 12", "Windows", "macOS"):
            assert system in untried.partition(".")[0]
            assert system not in tried
            assert not any(system in device for device, _ in shown)


def test_index_of_the_documentation_is_complete() -> None:
    folder = ROOT / "docs"
    index = (folder / "README.md").read_text(encoding="utf-8")
    pages = {path.relative_to(folder).as_posix() for path in folder.rglob("*.md")}
    assert {page for page in pages if f"]({page})" not in index} == {"README.md"}


def test_readme_commands_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = set(re.findall(r"(?:^|`)make ([a-z0-9-]+)", README, re.MULTILINE))
    assert named >= {"demo", "test", "lint", "test-swiftshader", "test-opengl"}
    assert named <= {name for names in re.findall(r"^([a-z0-9 -]+):", makefile, re.MULTILINE) for name in names.split()}


PAGES_ABOUT_CI = ("README.md", "docs/development.md", "docs/portability.md")
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.skipif(not WORKFLOWS, reason="a source archive has no workflows")
def test_workflows_name_commands_and_files_that_exist(capsys: pytest.CaptureFixture[str]) -> None:
    texts = [path.read_text(encoding="utf-8") for path in WORKFLOWS]
    commands = {line for text in texts for line in re.findall(r"(?:-m |run: )dmlgpu (.+)", text)}
    options = {(line.split()[0], option) for line in commands for option in re.findall(r"--[a-z-]+", line)}
    assert ("verify", "--compare") in options
    for command, option in options:
        assert main([command, "--help"]) == 0
        assert option in capsys.readouterr().out
    for path in {path for text in texts for path in re.findall(r"(?:scripts/\w+\.py|\.ci/\w+)", text)}:
        assert (ROOT / path).is_file()
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = {name for text in texts for name in re.findall(r"run: make (\S+)", text)}
    assert targets
    assert all(f"\n{target}:" in makefile for target in targets)


@pytest.mark.skipif(not WORKFLOWS, reason="a source archive has nothing of CI")
def test_the_documentation_has_the_parts_that_ci_takes() -> None:
    words = {"3": "a third", "4": "a quarter", "6": "a sixth", "8": "an eighth", "12": "a twelfth", "16": "a sixteenth"}
    counts = {"3": "three", "4": "four", "6": "six", "8": "eight", "12": "twelve"}
    commands = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    taken = re.findall(r"make ([a-z0-9-]+) \w+=\"([^\"]*)\$\(part (\d+)\)\"", commands)
    races = {count for _, options, count in taken if options.startswith("tests/test_races.py ")}
    part = {target: count for target, options, count in taken if not options.startswith("tests/test_races.py ")}
    pages = {name: " ".join((ROOT / name).read_text(encoding="utf-8").split()) for name in PAGES_ABOUT_CI}
    readme, development, portability = pages.values()
    of_suite = words[part["test"]]
    assert f"the suite on the first device, with {of_suite} of the tests" in readme
    assert f"the next commit with the next {of_suite.partition(' ')[2]}" in readme
    assert f"`make test` with {of_suite} of the tests of many alike combinations" in development
    assert races == {"32"}
    assert "and one of 32 parts of the race checks" in readme
    assert "and one of 32 parts of the race checks (`tests/test_races.py`)" in development
    assert f"CI runs it on {words[part['matrix']]} of the cases" in portability
    assert part["matrix"] == part["verify-mesa25"]
    assert part["test-browser"] == part["test-dawn-mesa25"]
    of_matrix, of_browser = (counts[part[target]] for target in ("matrix", "test-browser"))
    assert f"one part of {of_matrix} of the matrix and with Mesa 25, and of {of_browser} in the browser" in development


def test_the_citation_has_the_package_s_version() -> None:
    (version,) = re.findall(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    assert f'\nversion = "{version}"\n' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_no_path_is_asked_whether_it_is_there() -> None:
    """Path.exists and its like raise where a folder may not be searched, before Python 3.14; os.path's do not."""
    asking = re.compile(r"\.(exists|is_file|is_dir)\(\)")
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sorted((ROOT / "dmlgpu").rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if asking.search(line)
    ]
    assert not found, "use os.path.exists, os.path.isfile or os.path.isdir"
