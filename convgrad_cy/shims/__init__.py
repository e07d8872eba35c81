"""Operations of MindSpore, TensorFlow, oneDNN Graph and CuPy's cuDNN on NumPy and CuPy arrays, by framework."""
