"""Boxes of Winograd's tiles, which tensors they see, and the windows that hold it.

A window is that of window.pxd, filled for all tiles of a box. The walks here have taps one element apart, counted as
positions are: ``source_tap == source_step``. Siblings, which differ in positions alone, count as images: image n of a
tiling is image n // siblings of the batch, along the walk of sibling n % siblings.
"""

from libc.stdint cimport int64_t

from base.memory cimport in_lines
from base.problem cimport conv_axis, conv_walk
from base.tensor cimport Tensor, find_tap
from copy.window cimport Box, Window, fill_window
from winograd.transform cimport LINE_LANES, WINOGRAD_LANES, Transform, stored

cdef struct TileStep:  # a row of winograd.TilePlan.steps, field for field
    conv_walk walk
    int64_t points[3]  # n of each axis
    int64_t outputs[3]  # m of each axis
    int64_t tiles[3]  # of a whole box
    int64_t held[3]  # taps that the filter has; the walk's further taps are zeros
    int64_t added  # number of consecutive steps summed into one result
    int64_t siblings  # number of such results that share one filter; they differ in positions

cdef struct TileBlocks:  # TileBlocks of cpu/plan/steps.py, field for field
    int64_t threads
    int64_t images  # images of a box; each sibling's are counted
    int64_t chunk  # channels of a window
    int64_t outputs  # output channels of a block
    int64_t filters_kept  # output channels whose transformed filters are kept at a time; 0: tasks transform their own
    int64_t tiles_kept  # whether transformed tiles of the source are kept for all blocks of outputs
    int64_t slices  # slices of the boxes in wgrad, each a task; their sums are added in order
    int64_t chunks_at_once  # chunks, of all added steps, that a task of fprop or dgrad transforms before it multiplies
    int64_t groups  # groups that a task takes, with all their channels in a chunk and all their outputs in a block
    int64_t nontemporal  # whether a target of whole lines is stored past the cache
    int64_t filter_strips  # strips of outputs and
    int64_t filter_channels  # channels of a group, whose filters a task transforms that has no products
    int64_t together  # parts of the result in fprop and dgrad whose tasks are those of the same loops

cdef struct Tiling:  # the boxes of a step and its siblings
    const TileStep *steps  # the step; it has most positions
    int64_t points[3]
    int64_t outputs[3]
    int64_t tiles[3]  # of a box
    int64_t all_tiles[3]  # of an image
    int64_t images, batch
    int64_t boxes[4]
    int64_t box_count, box_tiles, point_count

cdef struct TileOperand:  # a tensor that boxes of tiles see
    const Tensor *tensor
    const Window *window  # for what a box sees
    const Transform *transform  # of each of its tiles
    bint of_target  # whether it is the target of the walk, not the source


cdef inline void describe_tiling(Tiling *t, const TileStep *step, int64_t images, int64_t batch) noexcept nogil:
    cdef int axis
    t.steps = step
    t.images, t.batch = images, batch * step.siblings
    t.boxes[0] = (t.batch + images - 1) // images
    t.box_count, t.box_tiles, t.point_count = t.boxes[0], images, 1
    for axis in range(3):
        t.points[axis], t.outputs[axis], t.tiles[axis] = step.points[axis], step.outputs[axis], step.tiles[axis]
        t.all_tiles[axis] = (step.walk.axis[axis].positions + t.outputs[axis] - 1) // t.outputs[axis]
        t.boxes[1 + axis] = (t.all_tiles[axis] + t.tiles[axis] - 1) // t.tiles[axis]
        t.box_count *= t.boxes[1 + axis]
        t.box_tiles *= t.tiles[axis]
        t.point_count *= t.points[axis]


cdef inline int64_t find_tiles(const Tiling *t, int64_t index, Box *box) noexcept nogil:
    """Box number ``index``, counted in tiles; how many it has."""
    cdef int axis
    cdef int64_t whole, limit
    for axis in range(3, -1, -1):
        whole = t.images if axis == 0 else t.tiles[axis - 1]
        limit = t.batch if axis == 0 else t.all_tiles[axis - 1]
        box.begin[axis] = index % t.boxes[axis] * whole
        box.count[axis] = min(whole, limit - box.begin[axis])
        index = index // t.boxes[axis]
    return box.count[0] * box.count[1] * box.count[2] * box.count[3]


cdef inline const TileStep *step_of_image(const Tiling *t, int64_t n) noexcept nogil:
    """The first of the added steps along which image n is computed."""
    return t.steps + n % t.steps.siblings * t.steps.added


cdef inline bint is_held(const TileStep *step, int64_t t) noexcept nogil:
    """Whether the filter has tap t."""
    cdef int64_t tap[3]
    find_tap(&step.walk, t, tap)
    return tap[0] < step.held[0] and tap[1] < step.held[1] and tap[2] < step.held[2]


cdef inline void source_walk(conv_walk *walk, const conv_walk *of) noexcept nogil:
    """A walk of one tap through all of the source that the taps of ``of`` reach."""
    cdef int axis
    walk[0] = of[0]
    for axis in range(3):
        walk.axis[axis].taps = 1


cdef inline void target_walk(conv_walk *walk, const conv_walk *of) noexcept nogil:
    """A walk of one tap whose source is the target of ``of``; beyond its positions there is nothing."""
    cdef int axis
    cdef conv_axis *a
    source_walk(walk, of)
    for axis in range(3):
        a = &walk.axis[axis]
        a.source_begin, a.source_step = a.target_begin, a.target_step
        a.source_size = (a.positions - 1) * a.target_step + a.target_begin + 1


cdef inline void elements_of(const Box *tiles, const Transform *f, Box *elements) noexcept nogil:
    """The positions that a box of tiles sees of a tensor which ``f`` transforms."""
    cdef int axis
    elements.begin[0], elements.count[0] = tiles.begin[0], tiles.count[0]
    for axis in range(3):
        elements.begin[1 + axis] = tiles.begin[1 + axis] * f.step[axis]
        elements.count[1 + axis] = (tiles.count[1 + axis] - 1) * f.step[axis] + f.taken[axis]


cdef inline int64_t lay_out_tiles(Window *m, const Tiling *t, const Transform *f, int64_t channels) noexcept nogil:
    """Describe the window of a whole box with channels adjacent; its elements, with a vector behind the last."""
    cdef int axis
    cdef int64_t size = channels
    m.images, m.channels, m.channel_pitch, m.pairs = t.images, channels, 1, False
    for axis in range(2, -1, -1):
        m.axis[axis].positions = m.axis[axis].extent = (t.tiles[axis] - 1) * f.step[axis] + f.taken[axis]
        # Every position is copied by itself: the one tap of the walk that the window is filled along.
        m.axis[axis].apart, m.axis[axis].step, m.axis[axis].tap, m.axis[axis].begin = 1, 1, 0, 0
        m.pitch[axis] = size
        size *= m.axis[axis].extent
    m.batch_pitch = size
    return in_lines((size * t.images + WINOGRAD_LANES) * sizeof(float)) // sizeof(float)


cdef inline void fill_tiles(
    float *window, TileOperand x, const Tiling *t, int64_t added, const Box *tiles, const stored *tensor,
    int64_t channels,
) noexcept nogil:
    """The window of a box of tiles: what they see of the source, or have of the target, in one of the added steps."""
    cdef int64_t n, image
    cdef conv_walk walk
    cdef Box elements
    elements_of(tiles, x.transform, &elements)
    elements.count[0] = 1
    for n in range(tiles.count[0]):
        image = tiles.begin[0] + n
        if x.of_target:
            target_walk(&walk, &step_of_image(t, image)[added].walk)
        else:
            source_walk(&walk, &step_of_image(t, image)[added].walk)
        elements.begin[0] = image // t.steps.siblings
        fill_window(window + n * x.window.batch_pitch, x.window, &walk, &elements, tensor, x.tensor, channels)


cdef inline int64_t row_size(const Tiling *t, const Transform *f) noexcept nogil:
    """Elements of the buffer of ``transform_box``."""
    cdef int64_t columns = (t.tiles[2] - 1) * f.step[2] + f.taken[2]
    return in_lines((f.taken[1] + f.given[1]) * f.given[0] * columns * LINE_LANES * sizeof(float)) // sizeof(float)
