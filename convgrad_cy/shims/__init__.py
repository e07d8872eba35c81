"""Operations of MindSpore, TensorFlow and oneDNN Graph on NumPy arrays, one module for each framework."""
