"""Short programs over the NumPy face, run with the package and with the model of it: both must do the same.

A program is one line of Python statements. What one side refuses, the other must refuse; what one returns, the other
must return bit for bit; and afterwards every variable must hold the same.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import wgpu
from hypothesis import strategies as st

import dmlgpu
from dmlgpu import reference
from dmlgpu.errors import DmlGpuError

from . import model
from .target import Target

NAMES = ["a", "b", "c", "d", "e"]


class Lying(int):
    """An int of 0 that says it is 1."""

    def __index__(self) -> int:
        return 1


class Raising:
    """Raises in whatever it is asked for."""

    def fail(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("hostile")

    __index__ = __array__ = __len__ = __iter__ = __getitem__ = __bool__ = __eq__ = __hash__ = __repr__ = fail
    __int__ = __float__ = __str__ = fail


class Package:
    """The package's functions, under the names that programs use."""

    def __init__(self) -> None:
        self.device = dmlgpu.default_device()
        self.asarray = dmlgpu.asarray
        self.cumulative_sum = dmlgpu.cumulative_sum
        self.cumulative_prod = dmlgpu.cumulative_prod
        self.round = dmlgpu.round
        self.from_wgpu = dmlgpu.from_wgpu
        self.buffers: dict[int, Any] = {}

    def buffer(self, i: int) -> Any:
        """Return a caller's buffer; the same for the same number."""
        if i not in self.buffers:
            gpu_device = self.device.gpu_device
            self.buffers[i] = gpu_device.create_buffer_with_data(data=model.contents(), usage=wgpu.BufferUsage.STORAGE)
        return self.buffers[i]


# Running


_NAME = re.compile(r"(?<![\w.'])[a-e](?![\w'=])")
_SIGNATURE = re.compile(r"unexpected keyword|positional argument|positional-only|multiple values")


def names(face: object) -> dict[str, Any]:
    return {"gpu": face, "np": np, "nan": np.nan, "inf": np.inf, "raises": Raising(), "lying": Lying(0)}


def check_program(program: str) -> set[Any]:
    """Run a program on both sides and compare; return which arguments met with which outcome."""
    notable: set[Any] = set()
    package = Package()
    real, ideal = names(package), names(model.Face(package.device))
    with np.errstate(all="ignore"):
        for statement in program.split("; "):
            wanted = outcome(statement, ideal)
            if wanted == "too large":
                continue
            got = outcome(statement, real)
            assert got == wanted, f"{statement!r} in {program!r}: {got}, not {wanted}"
            notable |= {(*pair, got) for pair in argument_pairs(statement)} if got in ("done", "refused") else set()
        for name in NAMES:
            assert (name in real) == (name in ideal)
            if name in real:
                difference = differ(real[name], ideal[name])
                assert difference is None, f"{name} after {program!r}: {difference}"
    return notable


def argument_pairs(statement: str) -> set[tuple[str, str, str]]:
    """Return what is called or done, with each two of the arguments that are short; odd ones are all alike."""
    _, _, expression = statement.partition(" = ")
    if expression.startswith(("np.", "(np.")):  # an array of the host, which says nothing of the package
        return set()
    what = _NAME.sub("_", re.split(r"[\[(]", expression)[0])
    inside = expression[expression.find("[" if "[" in expression.split("(")[0] else "(") + 1 : -1]
    arguments = [_NAME.sub("_", text) for text in re.split(r", (?=[a-z_]+=)", inside)]
    short = sorted(_ODD_END.sub("odd", text) for text in arguments if len(text) < 26 and "np." not in text)
    return {
        (what, one, other)
        for i, one in enumerate(short)
        for other in short[i:]
        if one == other or _is_usual(one, other)
    }


def _is_usual(*arguments: str) -> bool:
    return all(
        argument.partition("=")[2] in ("True", "False", "_", "_[::-1]", "_[1:]", "_[:-1]") for argument in arguments
    )


def outcome(statement: str, variables: dict[str, Any]) -> str:
    """Run a statement and say how it ended."""
    try:
        exec(statement, variables)
    except (DmlGpuError, model.RefusedError) as error:
        if "takes one positional argument" in str(error):
            return "called wrongly"
        return "refused" if len(str(error)) < 1000 else f"a message of {len(str(error))} characters"
    except model.TooLargeError:
        return "too large"
    except model.CalledWronglyError:
        return "called wrongly"
    except TypeError as error:
        if type(error) is TypeError and _SIGNATURE.search(str(error)):
            return "called wrongly"
        # NumPy's own, of an argument of its array's method, names the type, which the model calls Array.
        return f"{type(error).__name__}: {error}".replace("DeviceArray", "Array")
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "done"


def differ(got: Any, wanted: Any) -> str | None:
    """Return how a value of the package differs from the model's, or None."""
    if isinstance(wanted, model.Array):
        if not isinstance(got, dmlgpu.DeviceArray):
            return f"a {type(got).__name__}, not a DeviceArray"
        if (got.shape, got.dtype, got.released) != (wanted.shape, wanted.dtype, wanted.released):
            return f"{got!r}, not one of shape {wanted.shape} and dtype {wanted.dtype}"
        if (got.ndim, got.size, got.itemsize, got.nbytes) != (wanted.ndim, wanted.size, wanted.itemsize, wanted.nbytes):
            return "another size"
        if wanted.released or wanted.size > model.LARGEST:
            return None
        return reference.first_difference(got.numpy(), wanted.data)
    if type(got) is not type(wanted):
        return f"a {type(got).__name__}, not a {type(wanted).__name__}"
    if isinstance(wanted, list | tuple):
        found = [differ(one, other) for one, other in zip(got, wanted, strict=False)]
        return "another length" if len(got) != len(wanted) else next((text for text in found if text is not None), None)
    if isinstance(wanted, np.ndarray):
        if got.dtype.kind in "biuf":
            return reference.first_difference(np.asarray(got), np.asarray(wanted))
        return None if (got.shape, got.dtype) == (wanted.shape, wanted.dtype) else "another array"
    if isinstance(wanted, bool | int | str | np.generic):
        return None if got == wanted or got != got else f"{got!r}, not {wanted!r}"
    return None


# Drawing


def _listed(text: str) -> list[str]:
    """Return what is separated by more than one space."""
    return re.split(r"\s{2,}", text.strip())


ODD = _listed("""
    None  True  False  0  1  2  -1  -2  1.5  nan  'no'  ''  b''  b'ab'  []  ()  (1,)  (2, 3)  {}  {0}  object()  raises
    [raises]  lying  np.True_  np.False_  np.int8(1)  np.uint64(0)  np.array(0)  np.array(True)  np.array([0, 1])
    np.float32(1)  np.str_('no')  10**5000  -(10**30)  2**31  2**63  1j  ...  slice(None)  [[1], [1, 2]]  [None]
    np.ma.masked_array([1, 2], [0, 1])  np.ma.masked_array([1, 2])  [np.ma.masked_array([1, 2], [0, 1])] * 2
    np.ones((1, 2)).view(np.matrix)  'float32'  'int8'  '>i4'  np.dtype('>f4')  'M8[s]'  bool  float  int
    np.longdouble(1)  np.clongdouble(1)  np.zeros(2, 'i4,f4')  np.zeros(2, 'M8[s]')  np.zeros((1,) * 9)
    np.empty((0, 2**33))  range(3)  'half_even'  'compensated'  np.array(['1', '2'])  np.array([1, None])  [2**64]
    [2**63]  (i for i in [1])  memoryview(b'ab')  bytearray(b'ab')  gpu.device  [1, 2.5]  [True, 2]
    np.broadcast_to(np.int8(1), 2**33)
""")
DTYPES = [*model.NUMBERS, "bool", ">f4", ">i2", ">f8", ">u8"]
FLOATS = ["0.0", "-0.0", "0.5", "1.5", "-2.5", "3.0", "-1.0", "inf", "-inf", "nan", "60000.0", "1e4", "0.25"]
INTS = ["0", "1", "2", "3", "7", "100", "127"]
SUFFIXES = ["", "", "", "[::-1]", "[::2]", "[1:]", ".T", "[None]", "[..., None]", "[..., ::-1]", "[:0]", ".T[::-2]"]
SHAPES = _listed("(3,)  (2, 3)  (4, 1)  (0,)  (2, 0)  (1, 1, 5)  (2, 3, 2)  (17,)  (40, 3)  (300,)  (5000,)  ()")
MORE_SHAPES = _listed("-1  (2, -1)  (-1, 1)  6  (3, 2)  [3]  (2, 2, 3)  (0, -1)")
HOW = _listed("asarray  host  view  view  scan  scan  scan  round  use  odd  overlap  wrap")
WRAPPED_SHAPES = ["(2, 3)", "4", "(2, 2)", "(3,)", "()", "(0, 2)", "16", "(2, 1, 4)", "65"]
STRIDES = _listed("(8, 4)  (4, 8)  (-8, -4)  (0, 4)  (16, 8)  (4,)  (-8,)  (24, 0)  ()  (2**40, 4)  (1, 1)  (2, 6)")
OFFSETS = ["0", "4", "8", "32", "60", "64", "-4", "3"]
AXES = ["", "(1, 0)", "1, 0", "-1, 0", "0", "(0, 2, 1)", "0, 0"]
KEYS = _listed("""
    0  -1  1  5  ::-1  ::2  1:  :0  None  ...  ..., 0  0, 0  :, 0  :, ::-1  None, 0  -3:-1  ::-3  ..., None  0, ...
    slice(2**70)  ::10**30  slice(1.5)  slice(None, None, 0)  True  [0]  (0, 0, 0)  ()  np.array(0)  (None,) * 9
""")
USES = _listed("""
    {}.numpy()  len({})  list({})  np.asarray({})  np.asarray({}, 'f4')  {}.shape  {}.released  {}.release()
    np.array([{}, {}])  gpu.asarray([{}])  {}.copy()  [*{}]  {}.nbytes
""")
OPERATIONS = _listed("""
    {} == {}  {} != {}  {} < {}  {} + {}  {} * 2  2 * {}  -{}  bool({})  hash({})  {} in {}  float({})  np.add({}, 1)
    np.ones(2) + {}  {}[{}]  abs({})  1 == {}  np.sum({})  {}.reshape({})  {}.astype({})  gpu.round({}, {})
    gpu.round(x={})  gpu.cumulative_sum({}, axes=0)  gpu.cumulative_prod()  {}.transpose(None, 0)  gpu.asarray()
    {}.astype('f4', {})  {}.__setitem__(0, 1)
""")


USUAL = ["True", "False", "None", "0", "1", "-1", "..."]
_ODD_END = re.compile(f"(?:^|(?<==))(?:{'|'.join(re.escape(text) for text in ODD if text not in USUAL)})$")


@st.composite
def arrays(draw: st.DrawFn) -> str:
    """Draw an expression for an array of the host."""
    dtype = draw(st.sampled_from(DTYPES))
    kind = np.dtype(dtype).kind
    values = {"f": FLOATS, "b": ["True", "False"], "i": [*INTS, "-1", "-128"], "u": INTS}[kind]
    how = draw(st.sampled_from(["list", "full", "rows", "arange"]))
    if how == "list":
        text = f"np.array([{', '.join(draw(st.lists(st.sampled_from(values), max_size=6)))}], {dtype!r})"
    elif how == "full":
        text = f"np.full({draw(st.sampled_from(SHAPES))}, {draw(st.sampled_from(values))}, {dtype!r})"
    elif how == "rows":
        row = st.lists(st.sampled_from(values), min_size=3, max_size=3).map(", ".join)
        rows = draw(st.lists(row, min_size=1, max_size=4))
        text = f"np.array([{', '.join(f'[{row}]' for row in rows)}], {dtype!r})"
    else:
        shape = draw(st.sampled_from(SHAPES[:-1]))
        text = f"(np.arange(np.prod({shape}, dtype=int)) % 50).astype({dtype!r}).reshape({shape})"
    return text + draw(st.sampled_from(SUFFIXES))


def rarely(usual: st.SearchStrategy[str], times: int = 12) -> st.SearchStrategy[str]:
    """Draw something odd once in so many times."""
    return st.integers(0, times).flatmap(lambda i: st.sampled_from(ODD) if i == times else usual)


@st.composite
def statements(draw: st.DrawFn) -> str:
    """Draw a statement. Variables may not be there, which both sides say alike."""
    name, device, other = (draw(st.sampled_from(NAMES[:3])) for _ in range(3))
    given = draw(rarely(st.one_of(st.just(device), st.just(device), arrays())))
    how = draw(st.sampled_from(HOW))
    if how == "asarray":
        more = draw(rarely(st.just("")))
        return f"{name} = gpu.asarray({draw(rarely(arrays()))}{more and f', device={more}'})"
    if how == "host":
        return draw(
            st.sampled_from(
                [
                    f"{draw(st.sampled_from(NAMES[3:]))} = {draw(arrays())}",
                    "d.flags.writeable = False; e = gpu.round(d, out=d)",
                ]
            )
        )
    if how == "view":
        return f"{name} = {device}{draw(views())}"
    if how == "scan":
        function = draw(st.sampled_from(["cumulative_sum", "cumulative_prod"]))
        return f"{name} = gpu.{function}({given}{draw(options(function, given))})"
    if how == "wrap":
        return f"{name} = gpu.from_wgpu({draw(wrappings())})"
    if how == "overlap":
        parts = draw(st.permutations(["[1:]", "[:-1]", "[::-1]", ""]))
        function = draw(st.sampled_from(["cumulative_sum", "cumulative_prod", "round"]))
        more = "" if function == "round" else ", axis=0"
        return f"{name} = gpu.{function}({device}{parts[0]}{more}, out={device}{parts[1]})"
    if how == "round":
        return f"{name} = gpu.round({given}{draw(options('round', given))})"
    return f"e = {draw(st.sampled_from(USES if how == 'use' else OPERATIONS)).format(device, other)}"


@st.composite
def wrappings(draw: st.DrawFn) -> str:
    """Draw the arguments of `from_wgpu`."""
    buffer = draw(rarely(st.sampled_from(["gpu.buffer(0)", "gpu.buffer(0)", "gpu.buffer(1)"])))
    shape = draw(rarely(st.sampled_from(WRAPPED_SHAPES)))
    dtype = draw(rarely(st.sampled_from([*model.NUMBERS, "bool", ">f4"]).map(repr)))
    strides = f", strides={draw(rarely(st.sampled_from(STRIDES)))}" if draw(st.booleans()) else ""
    offset = f", offset={draw(rarely(st.sampled_from(OFFSETS)))}" if draw(st.booleans()) else ""
    return f"{buffer}, {shape}, {dtype}{strides}{offset}"


@st.composite
def views(draw: st.DrawFn) -> str:
    """Draw what makes a view or a copy of a device array."""
    how = draw(st.sampled_from(["key", "key", "T", "reshape", "broadcast", "transpose", "astype"]))
    shapes = rarely(st.sampled_from([*SHAPES, *MORE_SHAPES]))
    if how == "key":
        return f"[{draw(rarely(st.sampled_from(KEYS), 20))}]"
    if how == "T":
        return ".T"
    if how == "reshape":
        return f".reshape({draw(shapes)})"
    if how == "broadcast":
        return f".broadcast_to({draw(shapes)})"
    if how == "transpose":
        return f".transpose({draw(rarely(st.sampled_from(AXES)))})"
    copy = draw(rarely(st.sampled_from(["", "", "False", "True"])))
    return f".astype({draw(rarely(st.sampled_from(DTYPES).map(repr)))}{copy and f', copy={copy}'})"


@st.composite
def options(draw: st.DrawFn, function: str, given: str) -> str:
    """Draw keyword arguments."""
    places = [f"{name}{view}" for name in NAMES for view in ("", "[::-1]")]
    if given in NAMES:
        places += 5 * [given, f"{given}[::-1]", f"{given}.copy()", f"{given}.T", f"{given}.astype('f4')"]
    usual: dict[str, st.SearchStrategy[str]] = {
        "out": st.one_of(st.sampled_from(places), arrays()),
        "device": st.sampled_from(["gpu.device", "None", "''"]),
    }
    if function == "round":
        usual["mode"] = st.sampled_from(["'half_even'", "'toward_zero'", "'half_away'"])
    else:
        usual |= {name: st.sampled_from(["True", "False"]) for name in ("include_initial", "exclusive", "reverse")}
        usual["dtype"] = st.sampled_from(DTYPES).map(repr)
    if function == "cumulative_sum":
        usual["precision"] = st.sampled_from(["'compensated'", "'default'"])
        usual["monotone"] = st.sampled_from(["True", "False"])
    chosen = {name: value for name, value in usual.items() if draw(st.integers(0, 4)) == 0}
    if function != "round" and draw(st.integers(0, 5)):
        chosen["axis"] = st.sampled_from(["0", "-1", "0", "-1", "1", "2", "-3", "np.int8(0)", "None"])
    return "".join(f", {name}={draw(rarely(value, 25))}" for name, value in chosen.items())


def programs(corpus: list[str]) -> st.SearchStrategy[str]:
    """Draw programs: new ones, and those of the corpus cut and continued."""
    more = st.lists(statements(), min_size=1, max_size=6)
    one = arrays().map(lambda array: [f"a = gpu.asarray({array})", "b = a[::-1]"])
    two = st.tuples(arrays(), arrays()).map(lambda pair: [f"a = gpu.asarray({pair[0]})", f"b = gpu.asarray({pair[1]})"])
    begun = st.tuples(st.one_of(one, two), arrays()).map(lambda pair: [*pair[0], "c = gpu.round(b)", f"d = {pair[1]}"])
    more = st.tuples(begun, more).map(lambda pair: [*pair[0], *pair[1]])
    if not corpus:
        return more.map("; ".join)
    cut = st.tuples(st.sampled_from(corpus), st.integers(1, 6)).map(lambda pair: pair[0].split("; ")[: pair[1]])
    spliced = st.tuples(cut, st.one_of(cut, more)).map(lambda pair: [*pair[0], *pair[1]][:12])
    return st.one_of(more, spliced).map("; ".join)


WATCHED = [
    "arguments.py",
    "arrays",
    "dtypes.py",
    "errors.py",
    "layout.py",
    "planning/problem.py",
]
PROGRAMS = Target("programs", programs, check_program, tuple(WATCHED))
