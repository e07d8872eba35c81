from collections.abc import Callable
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base

UNREADABLE: str

def array_of(tensor: Any, dtype: np.dtype[Any]) -> NDArray[Any]: ...
def array_of_new(
    new: Callable[[tuple[int, ...], tuple[int, ...]], Any], shape: tuple[int, ...], dtype: np.dtype[Any]
) -> NDArray[Any]: ...

class Failed(Exception): ...

@final
class Untraced:
    def __init__(self, function: Callable[..., Any]) -> None: ...
    def __call__(self, *args: Any) -> Any: ...

@final
class Result:
    def __init__(
        self,
        run: Callable[[int, int, int], object],
        new: Callable[[tuple[int, ...], tuple[int, ...]], Any],
        new_like: Callable[[Any], Any] | None,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        itemsize: int,
        too_little: Callable[[MemoryError], Exception],
    ) -> None: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def strides(self) -> tuple[int, ...]: ...

@disjoint_base
class Kernel:
    active: bool
    previous: Callable[..., Any]
    def __init__(
        self,
        known: dict[Any, Any],
        make: Callable[..., Any],
        fail: Callable[..., Any],
        count: Callable[[str], object],
        threads: Callable[[], int],
    ) -> None: ...
    @property
    def computed(self) -> int: ...

@final
class Forward(Kernel):
    def __call__(self, *call: Any) -> Any: ...
    def run(self, plan: Any, key: tuple[Any, ...], call: tuple[Any, ...]) -> Any: ...

@final
class Backward(Kernel):
    def __call__(self, *call: Any) -> Any: ...
    def run(self, plan: Any, key: tuple[Any, ...], call: tuple[Any, ...]) -> Any: ...
