"""A small convolutional network, written out as an example of how to use this package.

``forward(x)`` of a layer keeps the arrays that its gradient needs. ``backward(dy)`` stores the gradients of its
parameters and returns the gradient of its input. Every convolution is one call of ``convgrad_cy``.
"""

import numpy as np

import convgrad_cy as cg

#: Label smoothing: the share of the target that is spread over all ten digits. Asking for complete certainty makes the
#: classifier learn the training set by heart; this alone is worth half a per cent of accuracy on digits not trained on.
SMOOTHING = 0.1


class Parameter:
    """An array that is trained, and the gradient of the loss with respect to it."""

    def __init__(self, value):
        self.value = value
        self.gradient = np.zeros_like(value)


class Layer:
    """A filter, a bias for each channel of the output, and the keywords that both directions share."""

    def __init__(self, filter_shape, channels, fan_in, rng, dtype, **geometry):
        # He initialisation: the variance of the activations neither grows nor fades from layer to layer.
        self.w = Parameter((rng.standard_normal(filter_shape) * np.sqrt(2 / fan_in)).astype(dtype))
        self.b = Parameter(np.zeros((1, channels, 1, 1), dtype))
        self.geometry = geometry
        self.parameters = [self.w, self.b]


class Conv(Layer):
    """Convolution from ``c_in`` to ``c_out`` channels."""

    def __init__(self, c_in, c_out, kernel, rng, dtype, stride=1, padding=0):
        shape = (c_out, c_in, kernel, kernel)
        super().__init__(shape, c_out, c_in * kernel**2, rng, dtype, stride=stride, padding=padding)

    def forward(self, x):
        self.x = x
        return cg.conv(x, self.w.value, **self.geometry) + self.b.value

    def backward(self, dy):
        self.w.gradient = cg.conv_backward_filter(self.x, dy, self.w.value.shape, **self.geometry)
        self.b.gradient = dy.sum(axis=(0, 2, 3), keepdims=True)
        return cg.conv_backward_data(dy, self.w.value, self.x.shape, **self.geometry)


class ConvTranspose(Layer):
    """Transposed convolution from ``c_in`` to ``c_out`` channels; with a stride it enlarges the image."""

    def __init__(self, c_in, c_out, kernel, rng, dtype, stride=1, padding=0):
        # This is the data gradient of a convolution from c_out to c_in channels, and has its filter.
        shape = (c_in, c_out, kernel, kernel)
        fan_in = c_in * max(1, (kernel // stride) ** 2)
        super().__init__(shape, c_out, fan_in, rng, dtype, stride=stride, padding=padding)

    def forward(self, x):
        self.x = x
        return cg.conv_transpose(x, self.w.value, **self.geometry) + self.b.value

    def backward(self, dy):
        self.w.gradient = cg.conv_transpose_backward_filter(self.x, dy, self.w.value.shape, **self.geometry)
        self.b.gradient = dy.sum(axis=(0, 2, 3), keepdims=True)
        return cg.conv_transpose_backward_data(dy, self.w.value, **self.geometry)


class ReLU:
    parameters = ()

    def forward(self, x):
        self.positive = x > 0
        return x * self.positive

    def backward(self, dy):
        return dy * self.positive


class Sequence:
    """Layers one after the other; itself a layer."""

    def __init__(self, *layers):
        self.layers = layers
        self.parameters = [parameter for layer in layers for parameter in layer.parameters]

    def forward(self, x):
        for layer in self.layers:
            x = layer.forward(x)
        return x

    def backward(self, dy):
        for layer in reversed(self.layers):
            dy = layer.backward(dy)
        return dy


class Network:
    """Reads a digit and redraws it::

                         ┌─ classifier ──>  10 scores
    image ── encoder ────┤
    8 × 8    32 × 4 × 4  └─ decoder ─────>  image, by way of 16 numbers
    """

    def __init__(self, rng, dtype=np.float32, width=16, code=16):
        self.encoder = Sequence(
            Conv(1, width, 3, rng, dtype, padding=1),
            ReLU(),
            Conv(width, 2 * width, 3, rng, dtype, stride=2, padding=1),
            ReLU(),
        )
        # A kernel as large as the image makes a convolution a dense layer.
        self.classifier = Conv(2 * width, 10, 4, rng, dtype)
        self.decoder = Sequence(
            Conv(2 * width, code, 4, rng, dtype),
            ConvTranspose(code, 2 * width, 4, rng, dtype),
            ReLU(),
            ConvTranspose(2 * width, width, 4, rng, dtype, stride=2, padding=1),
            ReLU(),
            ConvTranspose(width, 1, 3, rng, dtype, padding=1),
        )
        parts = self.encoder, self.classifier, self.decoder
        self.parameters = [parameter for part in parts for parameter in part.parameters]

    def forward(self, images):
        """``(scores, drawings)`` of shapes ``(n, 10)`` and ``(n, 1, 8, 8)``."""
        features = self.encoder.forward(images)
        return self.classifier.forward(features)[:, :, 0, 0], self.decoder.forward(features)

    def loss(self, images, labels):
        """Cross-entropy of the scores plus half the squared error of the drawings, each the mean over the images.

        Leaves the gradient of that sum in the parameters.
        """
        scores, drawings = self.forward(images)
        # Softmax is invariant to a shift; the largest score at zero keeps exp() in range.
        scores = scores - scores.max(axis=1, keepdims=True)
        log_probabilities = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
        targets = np.full_like(scores, SMOOTHING / scores.shape[1])
        targets[np.arange(len(labels)), labels] += 1 - SMOOTHING
        error = drawings - images
        loss = (0.5 * (error**2).sum() - (targets * log_probabilities).sum()) / len(images)

        d_scores = (np.exp(log_probabilities) - targets) / len(images)
        d_drawings = error / len(images)
        # Both branches read the same features, so their gradients add.
        d_features = self.classifier.backward(d_scores[:, :, None, None]) + self.decoder.backward(d_drawings)
        self.encoder.backward(d_features)
        return float(loss)


class Adam:
    """Adam (Kingma and Ba, 2015) for a list of parameters."""

    def __init__(self, parameters, beta1=0.9, beta2=0.999, epsilon=1e-8):
        self.parameters = parameters
        self.beta1, self.beta2, self.epsilon = beta1, beta2, epsilon
        self.steps = 0
        self.moments = [(np.zeros_like(p.value), np.zeros_like(p.value)) for p in parameters]

    def step(self, rate):
        self.steps += 1
        # Both moments start at zero; this undoes their bias towards it.
        rate *= np.sqrt(1 - self.beta2**self.steps) / (1 - self.beta1**self.steps)
        for parameter, (mean, square) in zip(self.parameters, self.moments, strict=True):
            mean += (1 - self.beta1) * (parameter.gradient - mean)
            square += (1 - self.beta2) * (parameter.gradient**2 - square)
            parameter.value -= (float(rate) * mean / (np.sqrt(square) + self.epsilon)).astype(mean.dtype)
