"""Runs the text of a shader for single invocations, and fails where it addresses memory wrongly.

A place is computed as the shader does it, in 32 bits, and beside it exactly. Where both differ at an access, or it is
beyond the binding, `AddressError` names the line. What is loaded from tensors is unknown (`DATA`), and so is what is
computed from it; branches that depend on it go either way by chance. Only the WGSL that the shaders use is understood.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from random import Random
from types import CodeType
from typing import Any

import numpy as np

from dmlgpu import shaders
from dmlgpu.planning.dispatch import Pass
from dmlgpu.planning.params import PARAMS
from dmlgpu.planning.problem import ElementwiseProblem, ScanProblem

__all__ = ["DATA", "AddressError", "Invocation", "accesses", "run_workgroup"]

_MASK = 2**32 - 1


class AddressError(AssertionError):
    """An access at a wrong place."""


class _Data:
    """A value that depends on the tensors' elements."""

    def __repr__(self) -> str:
        return "DATA"


DATA = _Data()


class _Wrapped:
    """A 32-bit word that is not what exact arithmetic gives."""

    __slots__ = ("exact", "word")

    def __init__(self, word: int, exact: int) -> None:
        self.word, self.exact = word, exact

    def __repr__(self) -> str:
        return f"{self.exact}, which 32 bits make {self.word}"


class _Vector(list[Any]):
    pass


class _Array(list[Any]):
    pass


class _Struct:
    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)


def _copy(value: Any) -> Any:
    if isinstance(value, _Vector | _Array):
        return type(value)(_copy(one) for one in value)
    if isinstance(value, _Struct):
        return _Struct(**{name: _copy(one) for name, one in value.__dict__.items()})
    return value


def _of(word: int, exact: int) -> Any:
    return word if word == exact else _Wrapped(word, exact)


def _parts(value: Any) -> tuple[int, int]:
    if isinstance(value, _Wrapped):
        return value.word, value.exact
    return int(value), int(value)


_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a // b if b else a,
    "%": lambda a, b: a % b if b else 0,
    "<<": lambda a, b: a << (b & 31),
    ">>": lambda a, b: a >> (b & 31),
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
}
_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}


def _binary(op: str, a: Any, b: Any) -> Any:
    if type(a) is int and type(b) is int and op in "+*<":
        if op == "<":
            return a < b
        exact = a + b if op == "+" else a * b
        return exact if exact <= _MASK else _Wrapped(exact & _MASK, exact)
    if (a is DATA or b is DATA) and type(a) is not _Vector and type(b) is not _Vector:
        return DATA
    if isinstance(a, _Vector) or isinstance(b, _Vector):
        size = len(a if isinstance(a, _Vector) else b)
        lefts = a if isinstance(a, _Vector) else [a] * size
        rights = b if isinstance(b, _Vector) else [b] * size
        return _Vector(_binary(op, x, y) for x, y in zip(lefts, rights, strict=True))
    if a is DATA or b is DATA:
        return DATA
    if op in _COMPARISONS:
        return _COMPARISONS[op](_parts(a)[0], _parts(b)[0])
    (word, exact), (other, exact_other) = _parts(a), _parts(b)
    if op in ("<<", ">>") and not 0 <= other < 32:
        raise AddressError(f"a shift by {other}")
    found = _ARITHMETIC[op](word, other) & _MASK
    if type(a) is bool and type(b) is bool:
        return bool(found)
    if abs(exact) > 2**80:  # not an address: some bits that were folded many times
        return found
    return _of(found, _ARITHMETIC[op](exact, exact_other))


def _unary(op: str, a: Any) -> Any:
    if isinstance(a, _Vector):
        return _Vector(_unary(op, one) for one in a)
    if a is DATA:
        return DATA
    if op == "!":
        return not a
    word, exact = _parts(a)
    return word ^ _MASK if op == "~" else _of(-word & _MASK, -exact)


def _member(value: Any, name: str) -> Any:
    if value is DATA:
        return _Vector([DATA] * len(name)) if set(name) <= set("xyzw") and len(name) > 1 else DATA
    if isinstance(value, _Vector):
        found = ["xyzw".index(one) for one in name]
        return value[found[0]] if len(found) == 1 else _Vector(value[i] for i in found)
    return getattr(value, name)


def _element(value: Any, index: Any) -> Any:
    return DATA if value is DATA or index is DATA else value[index]


def _vector(size: int, *values: Any) -> Any:
    flat = [one for value in values for one in (value if isinstance(value, _Vector) else [value])]
    if len(flat) == 1:
        return _Vector(flat * size)
    return _Vector(flat if len(flat) == size else [DATA] * size)


@dataclass
class Invocation:
    """One invocation of a workgroup, and what it shares with the others.

    Attributes
    ----------
    params : object
        The uniforms, with exact strides.
    sizes : mapping of str to int
        The bytes of each storage binding, by the variable's name.
    state : dict
        Words of the scratch memory, by index.
    unknown : callable
        Returns a word of the scratch memory that is not in `state`.
    shared : dict
        The workgroup's variables.
    barrier : threading.Barrier
        Between the invocations of the workgroup that run.
    lines : sequence of shaders.Line
        Where each line of the shader comes from.
    """

    params: Any
    sizes: Mapping[str, int]
    state: dict[int, Any]
    unknown: Callable[[int], Any]
    shared: dict[str, Any]
    barrier: threading.Barrier
    lines: Sequence[shaders.Line]
    random: Random
    private: dict[str, Any] = field(default_factory=dict)
    loaded: Counter[int] = field(default_factory=Counter)
    highest: dict[str, int] = field(default_factory=dict)
    sites: set[tuple[str, int]] = field(default_factory=set)

    def truth(self, value: Any) -> bool:
        return self.random.random() < 0.5 if value is DATA else bool(value)

    # A condition of several parts is decided once, wherever it is used.

    def both(self, a: Any, b: Callable[[], Any]) -> bool:
        if a is False:
            return False
        other = b()
        return other is not False and self.truth(DATA if a is DATA else other)

    def either(self, a: Any, b: Callable[[], Any]) -> bool:
        if a is True:
            return True
        other = b()
        return other is True or self.truth(DATA if a is DATA else other)

    def address(self, name: str, unit: int, index: Any, line: int) -> int:
        where = self.lines[line - 1]
        if type(index) is not int:
            raise AddressError(f"{where.file}:{where.number}: {name} at {index}")
        end = (index + 1) * unit
        if not 0 < end <= self.sizes[name]:
            raise AddressError(f"{where.file}:{where.number}: {name} up to byte {end} of {self.sizes[name]}")
        self.highest[name] = max(self.highest.get(name, 0), end)
        self.sites.add((where.file, where.number))
        return index

    def load(self, name: str, unit: int, index: Any, line: int) -> Any:
        place = self.address(name, unit, index, line)
        if name.startswith("input"):
            self.loaded[unit] += 1
        if name != "state":
            return DATA
        return self.state[place] if place in self.state else self.unknown(place)

    def store(self, name: str, unit: int, index: Any, value: Any, line: int) -> None:
        place = self.address(name, unit, index, line)
        if name == "state":
            self.state[place] = value

    def select(self, no: Any, yes: Any, condition: Any) -> Any:
        if isinstance(condition, _Vector):
            sides = [one if isinstance(one, _Vector) else [one] * len(condition) for one in (no, yes)]
            return _Vector(self.select(n, y, c) for n, y, c in zip(*sides, condition, strict=True))
        if condition is DATA and no is DATA and yes is DATA:
            return DATA
        return yes if self.truth(condition) else no

    def number(self, value: Any) -> Any:
        return self.random.randrange(2) if value is DATA else int(value) if isinstance(value, bool) else value

    def minimum(self, a: Any, b: Any) -> Any:
        return self._extreme(a, b, "<=")

    def maximum(self, a: Any, b: Any) -> Any:
        return self._extreme(a, b, ">=")

    def _extreme(self, a: Any, b: Any, op: str) -> Any:
        first = _binary(op, a, b)
        return DATA if first is DATA else a if first is True else self.select(b, a, first) if first else b

    def wait(self) -> None:
        self.barrier.wait(600)

    def uniform(self, name: str) -> Any:
        self.wait()
        value = _copy(self.shared[name])
        self.wait()
        return value

    def change(self, op: str, old: Any, value: Any) -> Any:
        if op in ("Store", "Exchange"):
            return value
        if op == "Load":
            return old
        if op in ("Max", "Min"):
            return (self.maximum if op == "Max" else self.minimum)(old, value)
        return _binary({"Add": "+", "Or": "|", "Xor": "^"}[op], old, value)


_TOKEN = re.compile(
    r"\s*(?:(0x[0-9a-fA-F]+[ui]?|\d+(?:\.\d*)?(?:e[-+]?\d+)?(?:lf|f|h|u|i)?)|([A-Za-z_]\w*)|"
    r"(<<=|>>=|&&|\|\||<<|>>|<=|>=|==|!=|->|[-+*/%&|^]=|[-+*/%&|^~!<>=(){}\[\],;:.@]))"
)
_PRECEDENCE = [["||"], ["&&"], ["|"], ["^"], ["&"], ["==", "!="], ["<", ">", "<=", ">="], ["<<", ">>"], ["+", "-"]]
_PRECEDENCE.append(["*", "/", "%"])
_TEMPLATES = {"vec2", "vec3", "vec4", "array", "bitcast", "ptr", "atomic"}
_BUILTINS = {"min": "m.minimum", "max": "m.maximum", "select": "m.select", "u32": "m.number"}
_DATA_OF = {"f32", "f64", "u64", "i64", "i32", "all", "any", "abs", "clamp", "extractBits", "insertBits"}
_DATA_OF |= {"countLeadingZeros", "countOneBits", "floor", "trunc", "round"}


class _Translator:
    """Makes Python of WGSL; a function's first argument is the invocation."""

    def __init__(self, source: str) -> None:
        self.tokens: list[tuple[str, int]] = []
        for number, line in enumerate(source.splitlines(), 1):
            text, at = line.split("//")[0].rstrip(), 0
            while at < len(text):
                match = _TOKEN.match(text, at)
                assert match, f"line {number}: {text[at:]!r}"
                self.tokens.append((match[0].strip(), number))
                at = match.end()
        self.at = 0
        self.out: list[str] = []
        self.structs: dict[str, dict[str, Any]] = {}
        self.aliases: dict[str, Any] = {}
        self.tensors: dict[str, Any] = {}
        self.storage: dict[str, int] = {}
        self.shared: dict[str, Any] = {}
        self.private: dict[str, Any] = {}
        self.functions: set[str] = set()
        self.accesses: set[int] = set()
        self.starts: list[int] = []
        self.lanes = ""
        self.local: set[str] = set()

    def peek(self) -> str:
        return self.tokens[self.at][0] if self.at < len(self.tokens) else ""

    def take(self, *expected: str) -> str:
        token, line = self.tokens[self.at]
        assert not expected or token in expected, f"line {line}: {token!r} instead of {expected}"
        self.at += 1
        return token

    def accept(self, token: str) -> bool:
        if self.peek() == token:
            self.at += 1
            return True
        return False

    def module(self) -> str:
        # The names of functions first: they may be used before.
        for (token, _), (name, _) in zip(self.tokens, self.tokens[1:], strict=False):
            if token == "fn":
                self.functions.add(name)
        while self.peek():
            self.declaration()
        # What else there is may be declared behind what uses it.
        self.storage = {name: self.unit_bytes(kind) for name, kind in self.tensors.items()}
        for start in self.starts:
            self.at = start
            self.function()
        return "\n".join(self.out) + "\n"

    def declaration(self) -> None:
        while self.accept("@"):
            name = self.take()
            if self.accept("("):
                value = self.expression()
                while self.accept(","):
                    self.expression()
                self.take(")")
                if name == "workgroup_size":
                    self.lanes = value
        kind = self.take()
        if kind == "fn":
            self.starts.append(self.at)
            while self.peek() != "{":
                self.at += 1
            depth = 0
            while depth or self.peek() == "{":
                depth += {"{": 1, "}": -1}.get(self.take(), 0)
                if not depth:
                    return
        if kind == "struct":
            name = self.take()
            self.take("{")
            fields = {}
            while not self.accept("}"):
                key = self.take()
                self.take(":")
                fields[key] = self.type()
                self.accept(",")
            self.structs[name] = fields
            self.accept(";")
            return
        if kind == "alias":
            name = self.take()
            self.take("=")
            self.aliases[name] = self.type()
        elif kind in ("const", "override"):
            name = self.take()
            if self.accept(":"):
                self.type()
            if self.accept("="):
                value = self.expression()
                prefix = f"if {name!r} not in globals(): " if kind == "override" else ""
                self.out.append(f"{prefix}{name} = {value}")
        else:
            assert kind == "var", kind
            self.take("<")
            space = self.take()
            while not self.accept(">"):
                self.take()
            name = self.take()
            self.take(":")
            found = self.type()
            if space == "storage":
                self.tensors[name] = found[1]
            elif space == "workgroup":
                self.shared[name] = found
            elif space == "private":
                self.private[name] = self.expression() if self.accept("=") else found
        self.take(";")

    def type(self) -> Any:
        name = self.take()
        arguments: list[Any] = []
        if self.accept("<"):
            while not self.accept(">"):
                if self.peek() == ">>":  # of two templates
                    line = self.tokens[self.at][1]
                    self.tokens[self.at : self.at + 1] = [(">", line), (">", line)]
                    continue
                is_size = name == "array" and len(arguments) == 1
                arguments.append(self.expression(8) if is_size else self.type())
                self.accept(",")
        return (name, *arguments)

    def unit_bytes(self, kind: Any) -> int:
        """Return the bytes of an element of storage."""
        while kind[0] in self.aliases or kind[0] == "atomic":
            kind = self.aliases.get(kind[0]) or kind[1]
        return {"vec4": 16, "vec2": 8}.get(kind[0], 4)

    def zero(self, kind: Any, leaf: str = "0") -> str:
        """Return what makes a value of a type with zeros in it, or what `leaf` says instead."""
        name = kind[0]
        if name in self.aliases:
            return self.zero(self.aliases[name], leaf)
        if name in self.structs:
            return f"w_Struct({', '.join(f'{key}={self.zero(one, leaf)}' for key, one in self.structs[name].items())})"
        if name == "array":
            return f"w_Array({self.zero(kind[1], leaf)} for _ in range({kind[2]}))"
        if name == "atomic":
            return self.zero(kind[1], leaf)
        if name.startswith("vec"):
            return f"w_Vector([{self.zero(kind[1], leaf)}] * {name[3]})"
        return leaf if leaf != "0" else {"bool": "False", "u32": "0", "i32": "0"}.get(name, "w_DATA")

    def function(self) -> None:
        name = self.take()
        self.take("(")
        names = []
        while not self.accept(")"):
            while self.accept("@"):
                self.take()
                if self.accept("("):
                    self.take()
                    self.take(")")
            names.append(self.take())
            self.take(":")
            self.type()
            self.accept(",")
        if self.accept("->"):
            self.type()
        self.out.append(f"def {self.name(name)}({', '.join(['m', *map(self.name, names)])}):")
        self.local = {*names}
        self.block(1)

    def name(self, name: str) -> str:
        return f"{name}_" if name in ("in", "is", "not", "from", "as", "def", "class", "m", "None", "lambda") else name

    def emit(self, depth: int, text: str) -> None:
        self.out.append("    " * depth + text)

    def block(self, depth: int) -> None:
        self.take("{")
        self.emit(depth, "pass")
        while not self.accept("}"):
            self.statement(depth)

    def statement(self, depth: int) -> None:
        token = self.peek()
        if token == "{":
            self.block(depth)
        elif token == "if":
            self.take()
            self.emit(depth, f"if m.truth({self.expression()}):")
            self.block(depth + 1)
            while self.accept("else"):
                self.emit(depth, "else:")
                if self.peek() == "if":
                    self.statement(depth + 1)
                    return
                self.block(depth + 1)
        elif token == "while":
            self.take()
            self.emit(depth, f"while m.truth({self.expression()}):")
            self.block(depth + 1)
        elif token == "for":
            self.take()
            self.take("(")
            if not self.accept(";"):
                self.simple(depth)
                self.take(";")
            condition = "True" if self.peek() == ";" else self.expression()
            self.take(";")
            start = self.at
            held, self.out = self.out, []
            if self.peek() != ")":
                self.simple(depth + 1)
            step, self.out = self.out, held
            assert start <= self.at
            self.take(")")
            self.emit(depth, f"while m.truth({condition}):")
            self.block(depth + 1)
            self.out += step
        elif token == "break":
            self.emit(depth, self.take())
            self.take(";")
        elif token == "return":
            self.take()
            self.emit(depth, "return" if self.peek() == ";" else f"return {self.expression()}")
            self.take(";")
        else:
            self.simple(depth)
            self.take(";")

    def simple(self, depth: int) -> None:
        """A declaration, an assignment, or a call."""
        token = self.peek()
        if token in ("let", "var", "const"):
            self.take()
            name = self.take()
            kind = self.type() if self.accept(":") else None
            value = f"w_copy({self.expression()})" if self.accept("=") else self.zero(kind)
            self.local.add(name)
            self.emit(depth, f"{self.name(name)} = {value}")
            return
        if token == "_":
            self.take()
            self.take("=")
            self.emit(depth, self.expression())
            return
        line = self.tokens[self.at][1]
        target = self.target()
        if self.peek() == "(":
            self.emit(depth, self.call(target[0], line))
            return
        operator = self.take()
        value = self.expression()
        if operator != "=":
            value = f"w_binary({operator[:-1]!r}, {self.read(target, line)}, {value})"
        self.emit(depth, self.write(target, f"w_copy({value})", line))

    def target(self) -> list[Any]:
        """What is assigned to: a name, and the members and indices that follow."""
        if self.accept("("):
            self.take("*")
            name = self.take()
            self.take(")")
        else:
            self.accept("*")
            name = self.take()
        steps: list[Any] = [name]
        while self.peek() in (".", "["):
            if self.take() == ".":
                steps.append((".", self.take()))
            else:
                steps.append(("[", self.expression()))
                self.take("]")
        return steps

    def root(self, name: str) -> str:
        if name in self.local:
            return self.name(name)
        if name in self.shared:
            return f"m.shared[{name!r}]"
        if name in self.private:
            return f"m.private[{name!r}]"
        if name == "params":
            return "m.params"
        return name

    def read(self, target: list[Any], line: int) -> str:
        name, *steps = target
        if name in self.storage and name not in self.local:
            self.accesses.add(line)
            text = f"m.load({name!r}, {self.storage[name]}, {steps[0][1]}, {line})"
            steps = steps[1:]
        else:
            text = self.root(name)
        for kind, value in steps:
            text = f"w_member({text}, {value!r})" if kind == "." else f"w_element({text}, {value})"
        return text

    def write(self, target: list[Any], value: str, line: int) -> str:
        name, *steps = target
        if name in self.storage and name not in self.local:
            self.accesses.add(line)
            return f"m.store({name!r}, {self.storage[name]}, {steps[0][1]}, {value}, {line})"
        if not steps:
            return f"{self.root(name)} = {value}"
        kind, last = steps[-1]
        holder = self.read([name, *steps[:-1]], line)
        if kind == "." and last in ("x", "y", "z", "w"):
            kind, last = "[", str("xyzw".index(last))
        return f"{holder}[{last}] = {value}" if kind == "[" else f"{holder}.{last} = {value}"

    def expression(self, level: int = 0) -> str:
        if level == len(_PRECEDENCE):
            return self.prefix()
        left = self.expression(level + 1)
        while self.peek() in _PRECEDENCE[level]:
            operator = self.take()
            right = self.expression(level + 1)
            if operator in ("&&", "||"):
                left = f"m.{'both' if operator == '&&' else 'either'}({left}, lambda: {right})"
            else:
                left = f"w_binary({operator!r}, {left}, {right})"
        return left

    def prefix(self) -> str:
        token = self.peek()
        if token in ("-", "!", "~"):
            self.take()
            return f"w_unary({token!r}, {self.prefix()})"
        if token == "*":
            self.take()
            return self.prefix()
        if token == "&":
            self.take()
            return self.read(self.target(), self.tokens[self.at][1])
        return self.postfix(self.primary())

    def postfix(self, text: str) -> str:
        while self.peek() in (".", "["):
            if self.take() == ".":
                text = f"w_member({text}, {self.take()!r})"
            else:
                text = f"w_element({text}, {self.expression()})"
                self.take("]")
        return text

    def primary(self) -> str:
        token, line = self.tokens[self.at]
        if self.accept("("):
            text = self.expression()
            self.take(")")
            return text
        if token[0].isdigit():
            self.take()
            if not token.startswith("0x") and set(token) & set(".fh"):
                return "w_DATA"
            return str(int(token.rstrip("ui"), 0))
        if token in ("true", "false"):
            self.take()
            return token.capitalize()
        if token in _TEMPLATES and self.tokens[self.at + 1][0] == "<":
            kind = self.type()
            return self.construct(kind)
        if self.tokens[self.at + 1][0] == "(":
            self.take()
            return self.call(token, line)
        return self.read(self.target_of_value(), line)

    def target_of_value(self) -> list[Any]:
        """A name, with its index where it is storage; what follows is left to `postfix`."""
        name = self.take()
        steps: list[Any] = [name]
        if name in self.storage and name not in self.local:
            self.take("[")
            steps.append(("[", self.expression()))
            self.take("]")
        return steps

    def arguments(self) -> list[str]:
        self.take("(")
        found = []
        while not self.accept(")"):
            found.append(self.expression())
            self.accept(",")
        return found

    def construct(self, kind: Any) -> str:
        values = self.arguments()
        while kind[0] in self.aliases:
            kind = self.aliases[kind[0]]
        if kind[0] == "bitcast":
            to = kind[1][0]
            return f"w_Vector([w_DATA] * {to[3]})" if to.startswith("vec") else f"w_cast({to!r}, {values[0]})"
        if kind[0] == "array":
            return f"w_Array([{', '.join(f'w_copy({value})' for value in values)}])"
        assert kind[0].startswith("vec"), kind
        return f"w_vector({kind[0][3]}, {', '.join(values)})" if values else self.zero(kind)

    def call(self, name: str, line: int) -> str:
        if name.startswith("atomic"):
            return self.atomic(name.removeprefix("atomic"), line)
        if name == "workgroupUniformLoad":
            self.take("(")
            self.take("&")
            shared = self.take()
            self.take(")")
            return f"m.uniform({shared!r})"
        if name == "arrayLength":
            self.take("(")
            self.take("&")
            storage = self.take()
            self.take(")")
            return f"m.sizes[{storage!r}] // {self.storage[storage]}"
        if name in self.aliases:
            return self.construct((name,))
        values = self.arguments()
        if name in ("workgroupBarrier", "storageBarrier"):
            return "m.wait()"
        if name in self.structs:
            pairs = zip(self.structs[name], values, strict=True)
            return f"w_Struct({', '.join(f'{key}=w_copy({value})' for key, value in pairs)})"
        if name in self.functions:
            return f"{self.name(name)}({', '.join(['m', *values])})"
        if name in _BUILTINS:
            return f"{_BUILTINS[name]}({', '.join(values)})"
        assert name in _DATA_OF, f"line {line}: {name} is not understood"
        return f"w_known({name!r}, {', '.join(values)})"

    def atomic(self, op: str, line: int) -> str:
        self.take("(")
        self.take("&")
        target = self.target()
        value = self.expression() if self.accept(",") else "0"
        self.take(")")
        name = target[0]
        if name in self.storage:
            self.accesses.add(line)
            return f"w_atomic_storage(m, {op!r}, {name!r}, {target[1][1]}, {value}, {line})"
        index = target[1][1] if len(target) > 1 else "None"
        return f"w_atomic_shared(m, {op!r}, {name!r}, {index}, {value})"


def _atomic_storage(m: Invocation, op: str, name: str, index: Any, value: Any, line: int) -> Any:
    with _lock:
        old = m.load(name, 4, index, line)
        m.store(name, 4, index, m.change(op, old, value), line)
    return old


def _atomic_shared(m: Invocation, op: str, name: str, index: Any, value: Any) -> Any:
    with _lock:
        holder, key = (m.shared, name) if index is None else (m.shared[name], index)
        old = holder[key]
        holder[key] = m.change(op, old, value)
    return old


_lock = threading.Lock()

_OF_ELEMENTS = {"combine", "decode", "encode", "magnitude"}
"""Functions that are not run, because what they return depends on elements; they address nothing."""


def _unknown(*_: Any) -> Any:
    return DATA


def _cast(to: str, value: Any) -> Any:
    return DATA if to in ("f32", "f64") else value


def _known(name: str, *values: Any) -> Any:
    """A built-in that addresses make no use of, but for integers that are i32 already, and conjunctions."""
    (value, *_) = values
    if name == "i32" and isinstance(value, int):
        return int(value)
    if name in ("all", "any") and DATA not in value:
        return all(value) if name == "all" else any(value)
    if isinstance(value, _Vector):
        return _Vector([DATA] * len(value))
    return DATA


@dataclass(frozen=True)
class _Program:
    code: CodeType
    lanes: str
    shared: str
    private: str
    storage: dict[str, int]
    lines: tuple[shaders.Line, ...]
    accesses: frozenset[int]


def accesses(kernel: str, slots: tuple[tuple[str, str], ...]) -> set[tuple[str, int]]:
    """Return the file and line of every access to storage in a shader."""
    program = _program(kernel, slots)
    return {(program.lines[line - 1].file, program.lines[line - 1].number) for line in program.accesses}


@cache
def _program(kernel: str, slots: tuple[tuple[str, str], ...]) -> _Program:
    shader = shaders.resolve(kernel, dict(slots))
    translator = _Translator(shader.source)
    text = translator.module()
    shared = ", ".join(f"{name!r}: {translator.zero(kind, 'w_DATA')}" for name, kind in translator.shared.items())
    private = ", ".join(
        f"{name!r}: {kind if isinstance(kind, str) else translator.zero(kind)}"
        for name, kind in translator.private.items()
    )
    return _Program(
        compile(text, f"{kernel}.wgsl", "exec"),
        translator.lanes,
        f"{{{shared}}}",
        f"{{{private}}}",
        translator.storage,
        shader.lines,
        frozenset(translator.accesses),
    )


def _params(one: Pass, problem: ScanProblem | ElementwiseProblem) -> Any:
    """Return the uniforms of a pass, with the exact strides of its problem."""
    dims = (*problem.batch, problem.axis) if isinstance(problem, ScanProblem) else problem.dimensions
    exact = {"input": [d.input_stride for d in dims], "output": [d.output_stride for d in dims]}
    fields = {}
    for name in PARAMS.names or ():
        found = one.params[name].tolist()
        if "stride" in name:
            strides = {stride % 2**32: stride for stride in exact[name.split("_")[0]]}
            exactly = [_of(word, strides.get(word, word)) for word in np.atleast_1d(found).tolist()]
            found = exactly if isinstance(found, list) else exactly[0]
        fields[name] = _Array([_Vector(found[:4]), _Vector(found[4:])]) if isinstance(found, list) else found
    return _Struct(**fields)


def run_workgroup(
    one: Pass,
    problem: ScanProblem | ElementwiseProblem,
    number: int,
    lanes: Callable[[int], Sequence[int]],
    random: Random,
    state: Callable[[Mapping[str, Any]], tuple[dict[int, Any], Callable[[int], Any]]],
) -> list[Invocation]:
    """Run some invocations of a workgroup, together from barrier to barrier.

    Parameters
    ----------
    one : Pass
        The dispatch.
    problem : ScanProblem or ElementwiseProblem
        What it was planned for.
    number : int
        The workgroup's.
    lanes : callable
        Returns which of so many invocations run.
    random : Random
        Decides what depends on elements.
    state : callable
        Takes the shader's constants; returns words of the scratch memory, and what returns all others.

    Raises
    ------
    AddressError
        If one of them accesses memory at a wrong place.
    """
    program = _program(one.pipeline.kernel, one.pipeline.slots)
    names: dict[str, Any] = {"w_DATA": DATA, "w_Struct": _Struct, "w_Array": _Array, "w_Vector": _Vector}
    for helper in (_copy, _binary, _unary, _member, _element, _vector, _cast, _known, _atomic_storage, _atomic_shared):
        names[f"w{helper.__name__}"] = helper
    names |= {"min": min, "max": max}
    for name, value in one.pipeline.constants:
        names[name] = value
    exec(program.code, names)
    for name in _OF_ELEMENTS & names.keys():
        names[name] = _unknown
    for name in ("product", "opaque", "flat", "in_windows"):
        names[name] = bool(names.get(name, False))
    chosen = sorted(set(lanes(eval(program.lanes, names))))
    barrier = threading.Barrier(len(chosen))
    words, unknown = state(names)
    part = one.output
    sizes = {"state": one.state_bytes}
    for name in program.storage:
        if name != "state":
            found = one.input if name.startswith("input") else part
            sizes[name] = found.size if found is not None else 0
    shared = eval(program.shared, names)
    params = _params(one, problem)
    invocations = [
        Invocation(
            params,
            sizes,
            words,
            unknown,
            shared,
            barrier,
            program.lines,
            Random(random.random()),
            eval(program.private, names),
        )
        for _ in chosen
    ]
    errors: list[BaseException] = []

    def run(lane: int, invocation: Invocation) -> None:
        workgroup = _Vector([number % one.grid[0], number // one.grid[0], 0])
        given = {"workgroup": workgroup, "lane": lane}
        main = names["main"]
        try:
            main(invocation, *(given[name] for name in main.__code__.co_varnames[1 : main.__code__.co_argcount]))
        except threading.BrokenBarrierError as error:
            errors.append(error)
        except BaseException as error:
            errors.insert(0, error)
            barrier.abort()

    if len(chosen) == 1:
        run(chosen[0], invocations[0])
    else:
        threads = [threading.Thread(target=run, args=pair) for pair in zip(chosen, invocations, strict=True)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if errors:
        raise errors[0]
    return invocations
