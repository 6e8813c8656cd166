"""The alterations of a shader file, one small change each. Pure: text in, alterations out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

__all__ = ["Alteration", "Key", "alterations"]

Key = tuple[str, str, str, str, int]
"""File, function, the line as it is, the line as altered, and which of several that are equal in all these."""


@dataclass(frozen=True)
class Alteration:
    """A change to a shader file.

    Attributes
    ----------
    file : str
        Relative to ``wgsl/``.
    function : str
        The function it is in; empty at module scope.
    line : int
        From 1. Not part of the key: lines move.
    kind : str
        operator, comparison, guard, choice, check, stride or barrier.
    original, altered : str
        The lines that it changes, without indentation.
    occurrence : int
        The number among alterations that are equal in all of this.
    start, end : int
        The part of the file's text that it replaces.
    text : str
        What takes its place.
    """

    file: str
    function: str
    line: int
    kind: str
    original: str
    altered: str
    occurrence: int
    start: int
    end: int
    text: str

    @property
    def key(self) -> Key:
        return self.file, self.function, self.original, self.altered, self.occurrence

    def apply(self, source: str) -> str:
        return source[: self.start] + self.text + source[self.end :]

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.original}  ->  {self.altered}"


_OPERATORS = {
    "+": ("-",),
    "-": ("+",),
    "*": ("+",),
    "/": ("*",),
    "%": ("/",),
    "<<": (">>",),
    ">>": ("<<",),
    "&": ("|",),
    "|": ("&",),
    "^": ("|",),
    "&&": ("||",),
    "||": ("&&",),
    "+=": ("-=",),
    "-=": ("+=",),
    "*=": ("/=",),
    "/=": ("*=",),
    "%=": ("/=",),
    "<<=": (">>=",),
    ">>=": ("<<=",),
    "&=": ("|=",),
    "|=": ("&=",),
    "^=": ("|=",),
}
_COMPARISONS = {
    "<": ("<=", ">="),
    "<=": ("<", ">"),
    ">": (">=", "<="),
    ">=": (">", "<"),
    "==": ("!=",),
    "!=": ("==",),
}
_FUNCTIONS = {
    "all": "any",
    "any": "all",
    "atomicXor": "atomicOr",
    "atomicOr": "atomicAnd",
    "atomicAnd": "atomicOr",
    "atomicAdd": "atomicSub",
    "atomicSub": "atomicAdd",
    "atomicMax": "atomicMin",
    "atomicMin": "atomicMax",
}
_CONDITION_OF = {"append": 0, "select": 2}
"""Functions that choose, and which argument decides."""
_CHECKS = {"link": "combine", "fold": "combine", "checked": "", "normal": ""}
"""Functions that look after what is out of range (lib/order/exceptional.wgsl), and what does the same without."""
_CHECKED = {
    "reach": (0,),
    "smaller": (0, 1),
    "larger": (0, 1),
    "operand": (1,),
    "settled": (1,),
    "zero_if_tiny": (0,),
}
"""The same for others: which argument is left."""
_BARRIERS = ("workgroupBarrier", "storageBarrier", "textureBarrier")
_TEMPLATES = {"vec2", "vec3", "vec4", "array", "ptr", "var", "bitcast", "atomic"}
_NOT_CODE = {"override", "alias", "struct", "enable", "requires", "diagnostic"}

_TOKEN = re.compile(
    r"(?P<skip>//[^\n]*|\#import[^\n]*|@\w+(?:\([^)]*\))?|\s+)"
    r"|(?P<number>0x[0-9a-fA-F]+[iu]?|\d+\.\d*\w*|\d+\w*)"
    r"|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<operator><<=|>>=|&&|\|\||<<|>>|<=|>=|==|!=|[-+*/%&|^]=|->|[-+*/%&|^<>=!~])"
    r"|(?P<mark>[(){}\[\],;:.])"
)


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    start: int
    end: int
    function: str


def _tokens(source: str, file: str) -> list[_Token]:
    """Return the tokens of all code: without types, declarations that hold no code, and comments."""
    found: list[_Token] = []
    function, depth, template = "", 0, 0
    position, skip_to, before = 0, "", ("", 0)
    while position < len(source):
        match = _TOKEN.match(source, position)
        if match is None:
            line = source.count("\n", 0, position) + 1
            raise ValueError(f"{file}:{line}: {source[position : position + 20]!r} begins with no token that is known")
        kind, text, start, position = match.lastgroup or "", match[0], match.start(), match.end()
        if kind == "skip":
            continue
        if template:
            template += text.count("<") - text.count(">") if kind == "operator" else 0
        elif text == "<" and before[0] in _TEMPLATES and before[1] == start:
            template = 1
        elif skip_to:
            skip_to = "" if text == skip_to else skip_to
        elif not function and text in _NOT_CODE | {"var"}:
            skip_to = "}" if text == "struct" else ";"
        else:
            if before[0] == "fn":
                function = text
            depth += (text == "{") - (text == "}")
            found.append(_Token(kind, text, start, position, function))
            if text == "}" and depth == 0:
                function = ""
        before = (text, position)
    return found


def alterations(source: str, file: str) -> list[Alteration]:
    """Return the alterations of a file, in the order of its lines.

    Raises
    ------
    ValueError
        If the file has something that is not understood, so that nothing is left out in silence.
    """
    found: dict[tuple[str, str, str, str], int] = Counter()
    result = []
    changes = [(*change, token) for change, token in _changes(_tokens(source, file), source)]
    for kind, start, end, text, token in sorted(changes, key=lambda change: change[1:3]):
        low, high = source.rfind("\n", 0, start) + 1, source.find("\n", end)
        high = len(source) if high < 0 else high
        original, altered = _joined(source[low:high]), _joined(source[low:start] + text + source[end:high])
        one = Alteration(
            file, token.function, source.count("\n", 0, start) + 1, kind, original, altered, 0, start, end, text
        )
        result.append(replace(one, occurrence=found[one.key[:4]]))
        found[one.key[:4]] += 1
    return result


def _joined(lines: str) -> str:
    return " ".join(re.sub(r"//[^\n]*", "", lines).split())


_Change = tuple[str, int, int, str]


def _changes(tokens: list[_Token], source: str) -> Iterator[tuple[_Change, _Token]]:
    for i, token in enumerate(tokens):
        for changes in (_of_operator(tokens, i), _of_call(tokens, i, source), _of_stride(tokens, i)):
            yield from ((change, token) for change in changes)


def _of_operator(tokens: list[_Token], i: int) -> Iterator[_Change]:
    token = tokens[i]
    if token.kind != "operator":
        return
    before = tokens[i - 1]
    if before.kind == "operator" or before.text in ("(", "[", "{", ",", ";", ":", "return", "}"):
        if token.text in "-~!":
            yield "operator", token.start, token.end, ""
        return  # else the address or the target of a pointer
    for other in _OPERATORS.get(token.text, ()):
        yield "operator", token.start, token.end, other
    for other in _COMPARISONS.get(token.text, ()):
        yield "comparison", token.start, token.end, other


def _of_call(tokens: list[_Token], i: int, source: str) -> Iterator[_Change]:
    token = tokens[i]
    if token.kind != "name" or i + 1 == len(tokens) or tokens[i + 1].text != "(" or tokens[i - 1].text == "fn":
        return
    name, arguments = token.text, _arguments(tokens, i + 1)
    if name in ("if", "while"):
        ((start, end),) = arguments
        for value in ("true", "false") if name == "if" else ("false",):
            yield "guard", start, end, value
    elif name in _BARRIERS:
        yield "barrier", token.start, tokens[i + 2].end, ""
    elif name in _CONDITION_OF:
        start, end = arguments[_CONDITION_OF[name]]
        for value in ("true", "false"):
            yield "choice", start, end, value
    elif name in ("min", "max"):
        end = tokens[_closing(tokens, i + 1)].end
        for argument in arguments:
            yield "choice", token.start, end, f"({source[slice(*argument)]})"
    elif name in _CHECKS:
        yield "check", token.start, token.end, _CHECKS[name]
    elif name in _CHECKED:
        for argument in _CHECKED[name]:
            yield "check", token.start, tokens[_closing(tokens, i + 1)].end, source[slice(*arguments[argument])]
    elif name in _FUNCTIONS:
        yield "choice", token.start, token.end, _FUNCTIONS[name]


def _of_stride(tokens: list[_Token], i: int) -> Iterator[_Change]:
    """A stride of 1 in the place of any other, where one is read."""
    token = tokens[i]
    if token.kind != "name" or "stride" not in token.text.lower() or not token.function:
        return
    before, after = tokens[i - 1].text, tokens[i + 1]
    if before in ("let", "var", "const", "fn") or after.text in ("=", ":", "(") or _is_assigned(after):
        return
    start, end = token.start, i
    if tokens[i - 1].text == ".":
        start = tokens[i - 2].start
    while tokens[end + 1].text in ("[", "."):
        end = _closing(tokens, end + 1) if tokens[end + 1].text == "[" else end + 2
    yield "stride", start, tokens[end].end, "1u"


def _is_assigned(following: _Token) -> bool:
    return following.kind == "operator" and following.text.endswith("=") and following.text not in _COMPARISONS


def _closing(tokens: list[_Token], i: int) -> int:
    """Return the position of the bracket that closes the one at `i`."""
    depth = 0
    for j in range(i, len(tokens)):
        depth += (tokens[j].text in ("(", "[", "{")) - (tokens[j].text in (")", "]", "}"))
        if depth == 0:
            return j
    raise ValueError(f"nothing closes {tokens[i]}")


def _arguments(tokens: list[_Token], i: int) -> list[tuple[int, int]]:
    """Return where the arguments lie of the call whose parenthesis is at `i`."""
    last, depth, start, found = _closing(tokens, i), 0, i + 1, []
    for j in range(i, last + 1):
        depth += (tokens[j].text in ("(", "[", "{")) - (tokens[j].text in (")", "]", "}"))
        if (tokens[j].text == "," and depth == 1) or j == last:
            if start < j:
                found.append((tokens[start].start, tokens[j - 1].end))
            start = j + 1
    return found
