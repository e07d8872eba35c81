"""The C code of the transforms: one function for each matrix of cook_toom.py, unrolled, on vectors of channels.

setup.py writes the text to a header that transform.h includes. Zeros and ones of a matrix cost nothing. Rows that
differ only in signs, as the rows of opposite points do, share their sums::

    p = sum of the terms of one sign       row i = p + q
    q = sum of the others                  row k = p - q
"""


def literal(value):
    return f"{float(value)!r}f"


def sum_of(terms):
    """The C expression of a sum of (coefficient, variable); terms with coefficient 1 or -1 come first."""
    text = ""
    for value, name in sorted(terms, key=lambda term: (abs(term[0]) != 1, term[0] < 0)):
        sign = "-" if value < 0 else "+" if text else ""
        factor = "" if abs(value) == 1 else f"{literal(abs(value))} * "
        text += f" {sign} {factor}{name}" if text else f"{sign}{factor}{name}"
    return text


def opposite(first, second):
    """The indices at which two lines are equal, and at which they differ in sign.

    None if they differ otherwise, or if one of the two lists would be empty, because then they share no sum.
    """
    same = [i for i, (a, b) in enumerate(zip(first, second, strict=True)) if a == b and a != 0]
    other = [i for i, (a, b) in enumerate(zip(first, second, strict=True)) if a == -b and a != 0]
    zeros = sum(a == b == 0 for a, b in zip(first, second, strict=True))
    return (same, other) if same and other and len(same) + len(other) + zeros == len(first) else None


def pairs_of(lines):
    """Disjoint pairs of lines, as (i, k, same, other)."""
    found, used = [], set()
    for i, first in enumerate(lines):
        for k in range(i + 1, len(lines)):
            parts = opposite(first, lines[k]) if not used & {i, k} else None
            if parts:
                found.append((i, k, *parts))
                used |= {i, k}
    return found


def statements(matrix):
    """The C statements that compute y0, y1, ... from x0, x1, ..."""
    lines = []
    columns = list(zip(*matrix, strict=True))
    pairs = pairs_of(columns)
    if len(matrix) < len(columns) and pairs:
        # A^T: the values of opposite points are first added and subtracted.
        rows = [[] for _ in matrix]
        paired = {index for i, k, *_ in pairs for index in (i, k)}
        for number, (i, k, same, other) in enumerate(pairs):
            lines.append(f"const winograd_vector p{number} = x{i} + x{k}, q{number} = x{i} - x{k};")
            for row in same:
                rows[row].append((matrix[row][i], f"p{number}"))
            for row in other:
                rows[row].append((matrix[row][i], f"q{number}"))
        for j in sorted(set(range(len(columns))) - paired):
            for row, line in enumerate(matrix):
                rows[row] += [(line[j], f"x{j}")] if line[j] else []
        return lines + [f"const winograd_vector y{row} = {sum_of(terms)};" for row, terms in enumerate(rows)]
    done = set()
    for number, (i, k, same, other) in enumerate(pairs_of(matrix)):
        p, q = (sum_of([(matrix[i][j], f"x{j}") for j in part]) for part in (same, other))
        lines.append(f"const winograd_vector p{number} = {p}, q{number} = {q};")
        lines.append(f"const winograd_vector y{i} = p{number} + q{number}, y{k} = p{number} - q{number};")
        done |= {i, k}
    for i, row in enumerate(matrix):
        if i not in done:
            terms = [(value, f"x{j}") for j, value in enumerate(row) if value]
            lines.append(f"const winograd_vector y{i} = {sum_of(terms)};")
    return lines


def function(name, matrix):
    """The C function that applies a matrix to ``lines`` lines of ``vectors`` vectors each."""
    rows, columns = len(matrix), len(matrix[0])
    body = [f"const winograd_vector x{j} = *(const winograd_vector *)(from + {j} * of_step);" for j in range(columns)]
    body += statements(matrix)
    body += [f"*(winograd_vector *)(into + {i} * to_step) = y{i};" for i in range(rows)]
    text = "\n            ".join(body)
    return f"""static void {name}(const float *of, int64_t of_step, int64_t of_line, float *to, int64_t to_step,
                 int64_t to_line, int64_t lines, int64_t vectors)
{{
    for (int64_t line = 0; line < lines; line++) {{
        for (int64_t v = 0; v < vectors; v++) {{
            const float *from = of + line * of_line + v * WINOGRAD_LANES;
            float *into = to + line * to_line + v * WINOGRAD_LANES;
            {text}
        }}
    }}
}}
"""


def header(cook_toom):
    """The header: all functions, and tables of the functions by numbers of points and of values."""
    text = ["/* Made by transform_code.py from cook_toom.py. */", "#define WINOGRAD_MOST_POINTS 8"]
    tables = {"source": [], "filter": [], "result": []}
    for count, points in cook_toom["POINTS"].items():
        matrices = {f"source_{count}": cook_toom["source_matrix"](points)}
        tables["source"].append(f"[{count}] = winograd_source_{count}")
        for length in range(1 if count == 1 else 2, max(count, 2)):
            for kind in ("filter", "result"):
                matrices[f"{kind}_{count}_{length}"] = cook_toom[f"{kind}_matrix"](points, length)
                tables[kind].append(f"[{count}][{length}] = winograd_{kind}_{count}_{length}")
        text += [function(f"winograd_{name}", matrix) for name, matrix in matrices.items()]
    size = "[WINOGRAD_MOST_POINTS + 1]"
    for kind, extent in (("source", size), ("filter", 2 * size), ("result", 2 * size)):
        rows = ",\n    ".join(tables[kind])
        text.append(f"static const winograd_transform winograd_{kind}s{extent} = {{\n    {rows},\n}};\n")
    return "\n".join(text)
