from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, Protocol, overload

from numpy.typing import DTypeLike
from typing_extensions import Unpack

from .typing import Shape, TransposedKeywords

FUNCTIONS: tuple[str, ...]

class Explanation(NamedTuple):
    function: str
    shape: tuple[int, ...]
    dtype: str
    declined: tuple[tuple[str, str], ...]
    family: str | None
    details: dict[str, Any]

class Explanations(NamedTuple):
    dx: Explanation
    dw: Explanation

class _Array(Protocol):
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> Any: ...

class _Keywords(TransposedKeywords, total=False):
    x_shape: Shape
    w_shape: Shape

_One = Literal[
    "conv",
    "conv_backward_data",
    "conv_backward_filter",
    "conv_transpose",
    "conv_transpose_backward_data",
    "conv_transpose_backward_filter",
]
_Both = Literal["conv_backward", "conv_transpose_backward"]
_Shapes = Sequence[Shape | _Array]

@overload
def explain(
    function: _Both | Callable[..., tuple[Any, Any]],
    shapes: _Shapes,
    dtype: DTypeLike | None = None,
    **keywords: Unpack[_Keywords],
) -> Explanations: ...
@overload
def explain(
    function: _One | Callable[..., _Array],
    shapes: _Shapes,
    dtype: DTypeLike | None = None,
    **keywords: Unpack[_Keywords],
) -> Explanation: ...
def tasks(
    function: str | Callable[..., Any],
    shapes: _Shapes,
    dtype: DTypeLike | None = None,
    **keywords: Unpack[_Keywords],
) -> list[Any]: ...
def gpu_tasks(
    function: str | Callable[..., Any],
    shapes: _Shapes,
    dtype: DTypeLike | None,
    devices: Sequence[Any],
    **keywords: Unpack[_Keywords],
) -> list[Any]: ...
