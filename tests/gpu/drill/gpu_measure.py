"""A stand-in for bench.gpu.measure: times are made up; a small call of the row's kind decides about correctness."""

from bench.gpu.launches import watched
from bench.gpu.variant_calls import differences
from bench.gpu.variant_rows import FORMATS, Row


def release():
    pass


class Measurement:
    def __init__(self, row):
        formats = FORMATS[row.case.channels_last]
        kernel = "dgrad" if row.kernel == "both" else row.kernel
        self.small = Row("", row.case.dtype, kernel, formats, ("sum_of_72",))

    def run(self, deterministic):
        with watched():
            wrong = list(differences(self.small))
        return {"error": float(bool(wrong)), "bitwise": True, "ours_us": 50.0, "cudnn_us": 100.0}


def is_right(row, found):
    return not found["error"]
