"""A stand-in for bench.gpu.machine: an imagined machine."""


def about():
    return {"gpu": "Imagined GPU", "driver": 13000, "cudnn": 91900}


def ceilings():
    return {"bfloat16": 800e12, "float32": 50e12, "float64": 60e12, "copy": 3e12}
