"""The GPU backend: CUDA kernels for CuPy arrays. Importing it imports neither CuPy nor anything of CUDA."""
