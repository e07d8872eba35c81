"""Winograd's minimal filtering by the construction of Cook and Toom: exact matrices for any number of points.

F(m, r) gives m outputs of a filter with r taps from n = m + r - 1 products, where the definition has m * r::

    y[i] = sum over t of d[i + t] * g[t]   =   A^T [(G g) * (B^T d)]

Read backwards, this is the product of two polynomials by their values at n points. Evaluation at the points, V, is a
Vandermonde matrix, and the three matrices are

    A^T = V^T with m columns      G = V with r columns, row i divided by N[i]      B^T = the inverse of V, times N[i]

where N[i] is the product of the differences of point i from the others. B^T depends on the points alone, so one
transform of the source serves F(4, 3), F(3, 4) and F(2, 5). In two dimensions the transforms are applied to each axis.
"""

from fractions import Fraction

#: The last point of each set stands beside these: infinity, where a polynomial's value is its leading coefficient.
#: Pairs of opposite sign share half of the arithmetic. The magnitudes are those of the smallest error in float32 among
#: fractions of small integers; reciprocal pairs keep the transformed values alike in size. (For six points the usual
#: 1 and 2 lose twice as much.)
POINTS = {
    1: (),
    4: (0, 1, -1),
    5: (0, Fraction(3, 4), Fraction(-3, 4), 2),
    6: (0, Fraction(2, 3), Fraction(-2, 3), Fraction(3, 2), Fraction(-3, 2)),
    7: (0, 1, -1, Fraction(3, 5), Fraction(-3, 5), 3),
    8: (0, 1, -1, Fraction(1, 2), Fraction(-1, 2), 2, -2),
}


def times_linear(polynomial, root):
    """The coefficients, lowest first, of the polynomial times (x - root)."""
    shifted = [Fraction(0), *polynomial]
    return [high - root * low for high, low in zip(shifted, [*polynomial, Fraction(0)], strict=True)]


def vanishing_at(points):
    """The monic polynomial whose roots the points are."""
    polynomial = [Fraction(1)]
    for point in points:
        polynomial = times_linear(polynomial, Fraction(point))
    return polynomial


def evaluation(points, length):
    """V: the values at the points, and at infinity, of a polynomial with ``length`` coefficients."""
    rows = [[Fraction(point) ** power for power in range(length)] for point in points]
    return [*rows, [Fraction(int(power == length - 1)) for power in range(length)]]


def source_matrix(points):
    """B^T: of each point the polynomial that vanishes at all others."""
    count = len(points) + 1
    rows = [vanishing_at([other for other in points if other != point]) for point in points]
    return [[*row, *[Fraction(0)] * (count - len(row))] for row in [*rows, vanishing_at(points)]]


def filter_matrix(points, taps):
    """G."""
    rows = []
    for point, row in zip(points, evaluation(points, taps), strict=False):
        norm = Fraction(1)
        for other in points:
            if other != point:
                norm *= point - other
        rows.append([value / norm for value in row])
    return [*rows, evaluation(points, taps)[-1]]


def result_matrix(points, outputs):
    """A^T."""
    return [list(row) for row in zip(*evaluation(points, outputs), strict=True)]
