"""The rules between bindings: which ranges may meet. Checked when a dispatch is recorded, with all of them there."""

from __future__ import annotations

from collections.abc import Sequence

from .binding_rules import Slot
from .hresults import invalid_argument

__all__ = ["check_execution", "check_initialization"]


def check_execution(
    where: str,
    input: Slot | None,
    output: Slot,
    temporary: Slot | None,
    persistent: Slot | None,
    difference: str | None,
) -> None:
    """Check the ranges of an operator's execution.

    Parameters
    ----------
    where : str
        The call and the operator, for messages.
    input, output, temporary, persistent : Slot or None
        What is bound.
    difference : str or None
        What keeps the operator from working in place, for messages; None if nothing does.
    """
    if input is not None and input.meets(output):
        if not input.same_range(output):
            raise _meet(where, output, input, "they must be identical, for work in place, or share no byte")
        if difference is not None:
            raise invalid_argument(
                f"{where}: {output.name} and {input.name} are bound to the same range ({output.range} of one buffer) "
                f"while {difference}; work in place needs the same Strides and TotalTensorSizeInBytes: make them the "
                "same, or bind two ranges"
            )
    for slot in (temporary, persistent):
        for other in (output, temporary, input if slot is temporary else None):
            if slot is not None and other is not None and slot is not other and slot.meets(other):
                raise _meet(where, slot, other, f"{slot.name} must not share a byte with it")


def check_initialization(where: str, inputs: Sequence[Slot], outputs: Sequence[Slot]) -> None:
    """Check the buffers of an initialization: none is input and output, and persistent resources lie apart."""
    for i, output in enumerate(outputs):
        for source in inputs:
            if source.buffer is output.buffer:
                raise invalid_argument(
                    f"{where}: {output.name} and {source.name} are bound to one buffer ({output.range} and "
                    f"{source.range}); an initializer's inputs and outputs must be in different buffers"
                )
        for other in outputs[:i]:
            if output.meets(other):
                raise _meet(where, output, other, "persistent resources must not share a byte")


def _meet(where: str, one: Slot, other: Slot, rule: str) -> Exception:
    return invalid_argument(
        f"{where}: {one.name} is bound to {one.range} while {other.name} is bound to {other.range} of the same buffer; "
        f"{rule}"
    )
