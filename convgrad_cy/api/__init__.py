"""The public functions: convolution, transposed convolution and their gradients."""

from .both import conv_backward as conv_backward
from .both import conv_transpose_backward as conv_transpose_backward
from .convolution import conv as conv
from .convolution import conv_backward_data as conv_backward_data
from .convolution import conv_backward_filter as conv_backward_filter
from .transposed import conv_transpose as conv_transpose
from .transposed import conv_transpose_backward_data as conv_transpose_backward_data
from .transposed import conv_transpose_backward_filter as conv_transpose_backward_filter
