from collections.abc import Callable
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

def has_openmp() -> bool: ...
def lacks_openmp() -> bool: ...
def max_threads() -> int: ...
def call_key(
    function: object,
    first: object,
    second: object,
    out: object,
    asked: tuple[Any, ...],
    keywords: tuple[Any, ...],
    threads: int,
) -> tuple[Any, ...] | None: ...
def are_apart(out: NDArray[Any], first: NDArray[Any], second: NDArray[Any]) -> bool: ...
def bound_arrays(most: int | None, name: str | None) -> None: ...

class TooLittleMemory(MemoryError): ...

def check_bound(shape: tuple[int, ...], dtype: np.dtype[Any]) -> None: ...
def new_array(shape: tuple[int, ...], dtype: np.dtype[Any], like: object = None) -> NDArray[Any]: ...
def aligned_array(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]: ...
def array_at(address: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]: ...

@final
class View:
    def __init__(self, place: int, view: NDArray[Any]) -> None: ...

@final
class Seen:
    def __new__(cls, view: View, arrays: tuple[NDArray[Any] | int, ...]) -> Seen: ...

@final
class Work:
    def __init__(
        self,
        kernel: Callable[..., Any],
        code: object,
        program: object,
        source: View,
        filter: View,
        target: View,
        instead: Work | None,
    ) -> None: ...
    def run(
        self,
        first: NDArray[Any] | int,
        second: NDArray[Any] | int,
        result: NDArray[Any] | int,
        before: Callable[[], object] | None = None,
    ) -> None: ...

@final
class Attempt:
    def __new__(
        cls, work: Work, arrays: tuple[NDArray[Any] | int, ...], before: Callable[[], object] | None
    ) -> Attempt: ...
    def __call__(self) -> object: ...
