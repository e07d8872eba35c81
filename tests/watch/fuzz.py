"""Calls drawn at random, legal and hostile: ``python fuzz.py SEED FIRST COUNT``. Prints JSON; one call is shown.

Each call depends only on the seed and its number. It gives a result, which is compared with the reference if the call
is legal, or a documented exception. A call that takes longer than a time limit ends the process, as does one that
crashes. The process's note names it.
"""

import ctypes
import json
import resource
import signal
import sys
import warnings
from collections import Counter
from pathlib import Path
from random import Random

import numpy as np
from drawn_calls import draw
from hostile import Boom, disguise, spoil
from outcomes import complaint_of_result
from watched import Note

#: Time limit of a call. A loaded machine takes longer.
MOST_SECONDS = 30
#: Memory limit, in addition to the process's memory at first. A hostile call must not be computed even if it would fit.
MOST_MEMORY = 2 << 30
#: One legal result in CHECKED is compared with the reference.
CHECKED = 3

note = Note()


def shown(value):
    """A description of an argument in one line."""
    if isinstance(value, np.ndarray):
        flags = "" if value.flags.writeable else " read-only"
        return f"<{type(value).__name__} {value.dtype} {value.shape} strides {value.strides}{flags}>"
    if isinstance(value, (list, tuple)) and any(isinstance(one, np.ndarray) for one in value):
        return f"[{', '.join(map(shown, value))}]"
    try:
        text = repr(value)
    except Exception:
        text = f"<{type(value).__name__}>"
    return text if len(text) < 200 else text[:200] + "..."


def described(call):
    listed = [*map(shown, call.args), *(f"{key}={shown(value)}" for key, value in call.keywords.items())]
    made = "" if call.construct is None else f"({', '.join(f'{k}={shown(v)}' for k, v in call.construct.items())})"
    return f"{call.name}{made}({', '.join(listed)})  # {'; '.join(call.changes) or 'legal'}"


def drawn(seed, number):
    """(the call, whether it may be refused, whether it may ask for too much memory)."""
    random = Random(f"{seed}/{number}")
    call = draw(random, random.randrange(2**32))
    roll, large = random.random(), False
    if 0.4 < roll < 0.7:
        disguise(random, call)
    for _ in range(0 if roll < 0.7 else 1 if roll < 0.9 else 2):
        large |= spoil(random, call)
    return call, roll >= 0.7, large


def arrays_of(call):
    for values, key in call.slots():
        for value in values[key] if isinstance(values[key], (list, tuple)) else [values[key]]:
            if isinstance(value, np.ndarray) and value.dtype.kind != "O" and 0 < value.size < 2**20:
                yield value


def outcome(call, may_refuse, large, is_checked):
    """(kind of the outcome, its fault or None)."""
    arrays = [(array, array.tobytes()) for array in arrays_of(call)]
    outs = [out for out in (call.out if isinstance(call.out, list) else [call.out]) if isinstance(out, np.ndarray)]
    try:
        result = call.run()
    except Exception as error:
        kind = f"refused: {type(error).__name__}"
        if any(array.tobytes() != before for array, before in arrays):
            return kind, f"{type(error).__name__}, but an array has changed"
        allowed = (*call.raises, Boom, *((MemoryError,) if large else ()))
        if not may_refuse or not isinstance(error, allowed):
            return kind, f"{type(error).__name__}: {shown(str(error))}"
        return kind, None
    inputs = [pair for pair in arrays if not any(np.may_share_memory(pair[0], out) for out in outs)]
    if any(array.tobytes() != before for array, before in inputs):
        return "result", "an input has changed"
    if may_refuse or not is_checked:
        return "result", None
    return "checked result", complaint_of_result(call, result)


def limited(seconds):
    signal.setitimer(signal.ITIMER_REAL, seconds)


def dying(number):
    """Die instead of making a call, in a way that the supervisor has to notice."""
    if number == 0:
        ctypes.string_at(8)
    limited(0.2)
    while number == 1:
        pass
    limited(0)
    return "result", "it is wrong"


def main(seed, first, count, dies=False):
    warnings.simplefilter("error")
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + MOST_MEMORY,) * 2)
    kinds, wrong = Counter(), []
    for number in range(first, first + count):
        note(f"{number} draw")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call, may_refuse, large = drawn(seed, number)
        text = described(call)
        note(f"{number} {text}")
        if count == 1:
            print(text, file=sys.stderr)
        limited(MOST_SECONDS)
        kind, said = dying(number) if dies else outcome(call, may_refuse, large, count == 1 or number % CHECKED == 0)
        limited(0)
        kinds[kind] += 1
        if said is not None:
            wrong.append(f"{number}: {said} | {text}")
    note(f"{first + count} end")
    print(json.dumps({"figures": kinds, "wrong": wrong}))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]), *sys.argv[4:])
