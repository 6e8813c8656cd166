"""Alters shaders so that they write down every access to memory, by workgroup and invocation, in the order of each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Site", "noting", "noting_shared"]

_ACCESS = re.compile(r"(?:(atomic\w+)\(&)?\b((?:input|output)_units|state)\[")
_UNIT = re.compile(r"alias Unit = (?:vec(\d)<)?u32")
_LOADS = re.compile(r"^(fn (?:load_run|load_lane|load_rows)\(.*\{)$", re.MULTILINE)
"""Where an invocation uses what it has loaded, or is about to load the next run."""
_READS = {None, "atomicLoad", "poll", "atomicOr", "atomicAdd", "atomicMax", "atomicMin"}
_WRITES = {"=", "atomicStore", "atomicExchange", "atomicXor", "atomicAdd", "atomicMax", "atomicMin"}
_NOTES = """
@group(1) @binding(0) var<storage, read_write> noted: array<atomic<u32>>;
var<private> noted_by: vec2<u32>;
var<private> noted_barriers: u32;
fn note(site: u32, index: u32) -> u32 {
    let at = atomicAdd(&noted[0], 1u) * 4u + 1u;
    if (at + 3u < arrayLength(&noted)) {
        atomicStore(&noted[at], noted_by.x);
        atomicStore(&noted[at + 1u], (site << 8u) | noted_by.y);
        atomicStore(&noted[at + 2u], noted_barriers);
        atomicStore(&noted[at + 3u], index);
    }
    return index;
}
"""
_SHARED = re.compile(r"var<workgroup> (\w+): ([^;]+);")
_ARRAY = re.compile(r"array<(.*), *(\w+)>")
_FUNCTION = re.compile(r"^fn \w+\(", re.MULTILINE)
_DECLARED = re.compile(r"\b(?:let|var|const) (\w+)|(\w+): ")
_UNIFORM_LOAD = re.compile(r"workgroupUniformLoad\(&(\w+)\)")
_STORE = re.compile(r"\s*(?:[-+*/%&|^]|<<|>>)?=(?!=)")


@dataclass(frozen=True)
class Site:
    """A place in a shader's text that accesses memory, or where an invocation goes on to the next run."""

    number: int
    name: str
    how: str | None
    """An atomic function, "=" for a store, "poll" for what reads by an atomic function, or None for a load.

    In memory of workgroups, an atomic store of a constant has that behind its name, and others are "="."""
    unit: int = 4
    """Bytes of an access."""

    @property
    def is_load(self) -> bool:
        """Whether it does nothing but read; also true of what is no access."""
        return self.how in (None, "", "atomicLoad")

    @property
    def reads(self) -> bool:
        """Whether it reads, as far as traffic is concerned."""
        return self.how in _READS

    @property
    def writes(self) -> bool:
        """Whether it writes, as far as traffic is concerned."""
        return self.how in _WRITES


def noting(source: str, *, tensors: bool = True) -> tuple[str, list[Site]]:
    """Return a shader that notes what it accesses in storage, and the sites that it notes by their numbers.

    Without `tensors`, it notes accesses to scratch memory alone. The barriers that it counts are those of storage.
    """
    sites: list[Site] = [Site(0, "", "")]
    out, at = "", 0
    source = _LOADS.sub(r"\1 _ = note(0u, 0u);", _patient(source))
    source = source.replace("storageBarrier();", "storageBarrier(); noted_barriers += 1u;")
    unit = _UNIT.search(source)
    of_tensors = 4 * int(unit[1] or 1) if unit else 4
    for match in _ACCESS.finditer(source):
        if match[2] != "state" and not tensors:
            continue
        end = _end_of(source, match.end(), "[]")
        how = "=" if match[1] is None and _STORE.match(source, end + 1) else match[1]
        if how == "atomicOr" and source.startswith(", 0u)", end + 1):
            how = "poll"
        site = Site(len(sites), match[2], how, 4 if match[2] == "state" else of_tensors)
        assert site.reads or site.writes, match[0]
        sites.append(site)
        if match.start() < at:
            raise AssertionError("an access in the index of another")
        out += source[at : match.end()] + f"note({site.number}u, {source[match.end() : end]})"
        at = end
    return _with_notes(out + source[at:]), sites


def noting_shared(source: str) -> tuple[str, list[Site]]:
    """Return a shader that notes what it accesses in the workgroup's memory, and the sites by their numbers.

    A place is the index in an array, whose rows follow each other if it is one of arrays, and else 0. The barriers that
    it counts are those of the workgroup's memory, of which a uniform load is two.
    """
    source = re.sub(r"//.*", "", _patient(source))
    shared = dict(_shared(source))
    sites: list[Site] = [Site(0, "", "")]
    edits: list[tuple[int, int, str]] = []
    for begin, end in _functions(source):
        declared = {name for pair in _DECLARED.findall(source[begin:end]) for name in pair}
        for name in shared.keys() - declared:
            for match in re.finditer(rf"(?<![.\w]){name}\b(?!\()", source[begin:end]):
                edits += _edits(source, shared[name], begin + match.start(), begin + match.end(), sites)
    for name in sorted(set(_UNIFORM_LOAD.findall(source))):
        shared[name].uniform_load = len(sites)
        sites.append(Site(len(sites), name, None))
    out, at = "", 0
    for start, stop, text in sorted(edits, key=lambda edit: edit[0]):
        out, at = out + source[at:start] + text, stop
    out += source[at:]
    out = _SHARED.sub(lambda match: f"var<workgroup> {match[1]}: {shared[match[1]].type};", out)
    out = _UNIFORM_LOAD.sub(r"noted_load_\1()", out)
    out = out.replace("workgroupBarrier();", "workgroupBarrier(); noted_barriers += 1u;")
    return _with_notes(out + "".join(variable.functions for variable in shared.values())), sites


@dataclass
class _Variable:
    """A variable of the workgroup. Those that are no arrays become some of one element.

    Attributes
    ----------
    name, of : str
        Its name, and the type of an element.
    sizes : tuple of str
        The size of each of its dimensions, as the shader has it.
    uniform_load : int
        The site of its uniform loads; 0 if there are none.
    """

    name: str
    of: str
    sizes: tuple[str, ...]
    uniform_load: int = 0

    @property
    def type(self) -> str:
        """The array's type."""
        text = self.of
        for size in reversed(self.sizes or ("1",)):
            text = f"array<{text}, {size}>"
        return text

    @property
    def functions(self) -> str:
        """What takes the place of accesses that are more than an index."""
        text = ""
        if self.uniform_load:
            text += (
                f"fn noted_load_{self.name}() -> {self.of} {{ noted_barriers += 1u; _ = note({self.uniform_load}u, 0u);"
                f" let value = workgroupUniformLoad(&{self.name}[0]); noted_barriers += 1u; return value; }}\n"
            )
        if len(self.sizes) == 1 and not self.of.startswith("atomic"):
            text += (
                f"fn noted_all_{self.name}(site: u32) -> {self.type} {{ for (var i = 0u; i < {self.sizes[0]}; i += 1u)"
                f" {{ _ = note(site, i); }} return {self.name}; }}\n"
            )
        return text


def _shared(source: str) -> Iterator[tuple[str, _Variable]]:
    for name, kind in _SHARED.findall(source):
        sizes: tuple[str, ...] = ()
        while match := _ARRAY.fullmatch(kind):
            kind, sizes = match[1], (*sizes, match[2])
        yield name, _Variable(name, kind, sizes)


def _functions(source: str) -> Iterator[tuple[int, int]]:
    for match in _FUNCTION.finditer(source):
        body = source.index("{", _end_of(source, match.end(), "()"))
        yield match.end(), _end_of(source, body + 1, "{}")


def _edits(source: str, variable: _Variable, begin: int, end: int, sites: list[Site]) -> Iterator[tuple[int, int, str]]:
    """Yield the texts that take the place of others for one access, and add its site."""
    if source.endswith("workgroupUniformLoad(&", 0, begin):
        return
    indices, last = [], end
    while source[last] in "[.":  # all that leads to what is accessed
        if source[last] == "[":
            close = _end_of(source, last + 1, "[]")
            indices.append((last + 1, close))
            last = close + 1
        else:
            last += len(re.compile(r"\.\w+").match(source, last)[0])  # type: ignore[index]
    store = _STORE.match(source, last)
    how = "=" if store else None
    if atomic := re.search(r"(atomic\w+)\(&$", source[:begin][-40:]):
        constant = re.compile(r", (\d+u)\)").match(source, last)
        how = atomic[1] if atomic[1] != "atomicStore" else f"atomicStore {constant[1]}" if constant else "="
    number = len(sites)
    sites.append(Site(number, variable.name, how))
    if not variable.sizes:
        yield end, end, f"[note({number}u, 0u)]"
    elif len(indices) >= len(variable.sizes):
        first, size = "0u", "1u"
        if len(variable.sizes) == 2:
            first, size = source[slice(*indices[0])], variable.sizes[1]
        inner = indices[len(variable.sizes) - 1]
        yield inner[0], inner[0], f"note({number}u, ({first}) * {size} + ("
        yield inner[1], inner[1], f")) - ({first}) * {size}"
    elif store:
        after = source.index(";", last) + 1
        yield after, after, f" _ = noted_all_{variable.name}({number}u);"
    else:
        yield begin, end, f"noted_all_{variable.name}({number}u)"


def _patient(source: str) -> str:
    return re.sub(r"const DELAY = \d+u;", "const DELAY = 2u;", source)  # each turn of it would be noted


def _end_of(text: str, begin: int, brackets: str) -> int:
    """Return where the bracket ends that is open at `begin`."""
    depth = 1
    for at in range(begin, len(text)):
        depth += (text[at] == brackets[0]) - (text[at] == brackets[1])
        if depth == 0:
            return at
    raise AssertionError("an open bracket")


def _with_notes(source: str) -> str:
    out = re.sub(r"fn main\((?!.*workgroup_id)", "fn main(@builtin(workgroup_id) workgroup: vec3<u32>, ", source)
    grid = "@builtin(num_workgroups) noted_grid: vec3<u32>, "
    out, found = re.subn(
        r"fn main\((.*)\) \{",
        rf"fn main({grid}\1) {{ noted_by = vec2<u32>(workgroup.y * noted_grid.x + workgroup.x, lane);",
        out,
    )
    assert found == 1
    return out + _NOTES
