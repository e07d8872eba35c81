"""NVRTC, CUDA's compiler at run time, through CuPy's binding. It needs no GPU."""

from .module import is_grouped

#: CuPy passes the same ones for its own kernels, except the version of C++.
OPTIONS = ("-std=c++17", "-ftz=true", "--device-as-default-execution-space")


class CompileError(RuntimeError):
    """NVRTC refuses a text; the message is its log."""


def version():
    """The version of NVRTC, as two numbers."""
    import cupy

    try:
        return cupy.cuda.nvrtc.getVersion()
    except Exception as error:  # CuPy raises errors of several kinds if it does not find the library
        needed = "CuPy must find NVRTC, CUDA's compiler at run time"
        raise ImportError(f"{needed}: pip install 'cupy-cuda13x[ctk]' (CuPy says: {error})") from error


def options_of(arch, macros):
    """The options for a text with these macros, for a GPU of this compute capability (90 for 9.0)."""
    return (*OPTIONS, f"-arch=sm_{arch}{'a' if is_grouped(macros) else ''}")


def compiled(text, options):
    """The cubin of a text: machine code as bytes. Other Python threads run while NVRTC works."""
    import cupy

    nvrtc = cupy.cuda.nvrtc
    program = nvrtc.createProgram(text, "convgrad_cy.cu", (), ())
    try:
        nvrtc.compileProgram(program, options)
        return nvrtc.getCUBIN(program)
    except nvrtc.NVRTCError as error:
        raise CompileError(f"{error}: {nvrtc.getProgramLog(program).strip()}") from error
    finally:
        nvrtc.destroyProgram(program)
