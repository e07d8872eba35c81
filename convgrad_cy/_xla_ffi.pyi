from collections.abc import Callable, Sequence
from typing import Any, final

@final
class Plan:
    def __init__(
        self, run: Callable[[int, int, int], object], operands: Sequence[int], offsets: Sequence[int]
    ) -> None: ...

def set_planner(
    plans: dict[tuple[bytes, int], Plan],
    function: Callable[[bytes, int], Plan],
    thread_count: Callable[[], int],
) -> None: ...
def computed() -> int: ...
def close() -> None: ...
def handler() -> Any: ...
