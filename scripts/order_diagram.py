"""Draw docs/images/order.svg, the order of operations of a scan: ``python scripts/order_diagram.py``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "images" / "order.svg"

LEFT, WIDTH, CELLS = 110, 640, 16
CELL = WIDTH / CELLS
AT = 9
"""The place, in its parent, of each part that the picture follows down to an element."""

# From large to small: what a row is cut into, what is folded, how, and a class of STYLE.
LEVELS = [
    ("slice", "spans of 65,536", "s", "left fold of the spans before", "s"),
    ("span", "16 tiles of 4096", "c", "left fold of the tiles before", "c"),
    ("tile", "16 blocks of 256", "p", "left fold of the blocks before", "p"),
    ("block", "16 runs of 16", "h", "Hillis-Steele scan of the runs before", "h"),
    ("run", "16 elements", "r", "left fold up to the element itself", "r"),
]

STYLE = """\
.page { fill: #ffffff } .text { fill: #1f2328 } .faint { fill: #59636e } .line { stroke: #8c959f; fill: none }
.cell { fill: #f6f8fa; stroke: #8c959f } .dot { fill: #8c959f }
.s { fill: #8250df } .c { fill: #0969da } .p { fill: #1a7f37 } .h { fill: #bc4c00 } .r { fill: #cf222e }
.step { stroke: #bc4c00; fill: none }
@media (prefers-color-scheme: dark) {
  .page { fill: #0d1117 } .text { fill: #f0f6fc } .faint { fill: #9198a1 } .line { stroke: #6e7681 }
  .cell { fill: #161b22; stroke: #6e7681 } .dot { fill: #6e7681 }
  .s { fill: #ab7df8 } .c { fill: #4493f8 } .p { fill: #3fb950 } .h { fill: #f0883e } .r { fill: #f85149 }
  .step { stroke: #f0883e }
}
text { font-family: sans-serif; font-size: 13px } .small { font-size: 11px } .mono { font-family: monospace }
"""


def _text(x: float, y: float, text: str, kind: str = "text", anchor: str = "start") -> str:
    return f'<text x="{x:g}" y="{y:g}" class="{kind}" text-anchor="{anchor}">{text}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, kind: str = "line") -> str:
    return f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" class="{kind}"/>'


def _levels(top: float) -> Iterator[str]:
    """Draw each level as a row of cells, the folded ones as one bar, and the next level below one of its cells."""
    height, step = 24, 66
    for number, (name, cut, symbol, how, kind) in enumerate(LEVELS):
        y = top + number * step
        last = number + 1 == len(LEVELS)
        yield _text(LEFT - 12, y + 11, name, "text", "end")
        yield _text(LEFT - 12, y + 24, cut, "faint small", "end")
        for cell in range(CELLS):
            yield f'<rect x="{LEFT + cell * CELL:g}" y="{y}" width="{CELL:g}" height="{height}" class="cell"/>'
        folded = f'x="{LEFT + 1}" y="{y + 1}" width="{(AT + last) * CELL - 2:g}" height="{height - 2}"'
        yield f'<rect {folded} class="page"/>'
        yield f'<rect {folded} class="{kind}" opacity="0.45"/>'
        middle = LEFT + AT * CELL / 2
        yield _text(middle, y + 17, f"{symbol}: {how}", "text", "middle")
        if not last:
            x, below = LEFT + AT * CELL, y + step
            yield _line(x, y + height, LEFT, below)
            yield _line(x + CELL, y + height, LEFT + WIDTH, below)


def _steps(top: float) -> Iterator[str]:
    """Draw the four steps of a Hillis-Steele scan over the 16 run totals of a block."""
    gap = 40
    yield _text(LEFT - 12, top + 4, "run totals", "text", "end")
    for step in range(5):
        y = top + step * gap
        if step:
            stride = 2 ** (step - 1)
            yield _text(LEFT - 12, y + 4, f"stride {stride}", "text", "end")
            for j in range(CELLS):
                x = LEFT + (j + 0.5) * CELL
                yield _line(x, y - gap, x, y)
                if j >= stride:
                    yield _line(x - stride * CELL, y - gap, x, y, "step")
    for step in range(5):
        for j in range(CELLS):
            x, y = LEFT + (j + 0.5) * CELL, top + step * gap
            changed = "h" if step and j >= 2 ** (step - 1) else "dot"
            yield f'<circle cx="{x:g}" cy="{y:g}" r="4.5" class="{changed}"/>'
    for j in range(CELLS):
        yield _text(LEFT + (j + 0.5) * CELL, top + 4 * gap + 20, f"h({j})", "faint small", "middle")


def picture() -> str:
    """Return the picture's text."""
    parts = [("s", "s"), (" + ", ""), ("c", "c"), (") + ", ""), ("p", "p"), (") + ", ""), ("h", "h"), (") + ", "")]
    spans = "".join(f'<tspan class="{kind or "text"}">{text}</tspan>' for text, kind in [*parts, ("r", "r")])
    lines = [
        _text(LEFT, 24, "What a result is made of: the coloured parts, added in the order s, c, p, h, r"),
        *_levels(40),
        _text(LEFT, 360, f"result = ((({spans}", "text mono"),
        _text(LEFT + 290, 360, "each sum is rounded; what is absent is skipped", "faint"),
        _text(LEFT, 404, "How h is made: a Hillis-Steele scan over the 16 run totals of a block"),
        _text(LEFT, 424, "In each step all j at once: h(j) = h(j - stride) + h(j), where j ≥ stride", "faint"),
        *_steps(452),
    ]
    title = "The order of operations of a scan: slice, span, tile, block and run, and Hillis-Steele steps in a block"
    head = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 770 650" width="770" height="650" role="img">'
    page = '<rect width="770" height="650" class="page"/>'
    return "\n".join([head, f"<title>{title}</title>", f"<style>\n{STYLE}</style>", page, *lines, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
    print(f"wrote {PICTURE.name}")
