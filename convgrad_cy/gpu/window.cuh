/* A thread's part of a convolution of few channels: CHANNELS outputs at POSITIONS neighbours along W, and the window of the
   source that TAPS taps of all of them see, in registers.

   Output channels are counted through all groups, OUT to a group of IN inputs; those of a thread belong to one group, or are
   all of some groups. The element that position p and tap t meet is x[window_index(p, t)]. Neighbours in the window are
   neighbours in the source, STEP and TAP those of the walk; where a window would be too long, TAPS is 1 and SPACED also:
   the window then has one element for each position, as far from each other as the walk says.

   CHANNELS_LAST: neighbouring threads have neighbouring channels, and SOURCE_VECTOR channels are read at once. Otherwise they have
   neighbouring positions; SOURCE_VECTOR elements of a row are read at once, and all windows begin SHIFT elements after a multiple
   of SOURCE_VECTOR, the length of a row being one. */
#ifndef CONVGRAD_WINDOW_CUH
#define CONVGRAD_WINDOW_CUH

#define GROUPS_HERE (CHANNELS > OUT ? CHANNELS / OUT : 1)
#define INPUTS (GROUPS_HERE * IN)
#define REACH (TAP < 0 ? -TAP : TAP)
#define EXTENT ((POSITIONS - 1) * STEP + (TAPS - 1) * REACH + 1)
/* Inputs that are in the window at once. */
#if CHANNELS_LAST
#define AT_ONCE INPUTS
#define LENGTH EXTENT
#else
#define AT_ONCE 1
#define LENGTH ((SHIFT + EXTENT + SOURCE_VECTOR - 1) / SOURCE_VECTOR * SOURCE_VECTOR)
#endif

template <typename Type, int count> struct alignas(sizeof(Type) * count) Vector {
    Type of[count];
};

struct Window {
    storage x[LENGTH][AT_ONCE];
};

__device__ inline int window_index(int position, int tap)
{
    return (CHANNELS_LAST ? 0 : SHIFT) + position * STEP + (TAP < 0 ? TAPS - 1 - tap : tap) * REACH;
}

/* Which of the inputs in the window is the input `in` of the group of output `channel`, both of this thread. */
__device__ inline int window_input(int channel, int in)
{
    return CHANNELS_LAST ? (CHANNELS > OUT ? channel / OUT * IN : 0) + in : 0;
}

/* Where the window of the positions from `position` on and the taps from `tap` on begins in a row of the source. */
__device__ inline int window_begin(const conv_axis *width, int position, int tap)
{
    return int(conv_source(width, position, TAP < 0 ? tap + TAPS - 1 : tap));
}

/* The place in the source that a tap of a position meets on an axis, and whether it is inside. Places fit into 32 bits. */
__device__ inline bool meets(const conv_axis *axis, int position, int tap, int &source)
{
    source = int(conv_source(axis, position, tap));
    return unsigned(source) < unsigned(axis->source_size);
}

/* `row` points to element 0 of a row, of the first input. What lies outside is zero. */
__device__ inline void fill_window(Window &window, const storage *row, const conv_axis *width, int begin,
                                   int64_t stride, int64_t channel_stride)
{
    typedef Vector<storage, SOURCE_VECTOR> Read;
    const unsigned size = unsigned(width->source_size);
#if CHANNELS_LAST
    const int spacing = SPACED ? int(width->source_step) : 1;
    row += begin * stride;
#pragma unroll
    for (int e = 0; e < LENGTH; ++e) {
        const bool inside = unsigned(begin + e * spacing) < size;
#pragma unroll
        for (int j = 0; j < INPUTS; j += SOURCE_VECTOR) {
            Read read = {};
            if (inside)
                read = *reinterpret_cast<const Read *>(row + (e * spacing * stride + j * channel_stride));
#pragma unroll
            for (int k = 0; k < SOURCE_VECTOR; ++k)
                window.x[e][j + k] = read.of[k];
        }
    }
#else
    const int spacing = SPACED ? int(width->source_step) : 1;
    begin -= SHIFT;
    row += begin * stride;
#pragma unroll
    for (int e = 0; e < LENGTH; e += SOURCE_VECTOR) {
        Read read = {};
        if (unsigned(begin + e * spacing) < size)
            read = *reinterpret_cast<const Read *>(row + e * spacing * stride);
#pragma unroll
        for (int k = 0; k < SOURCE_VECTOR; ++k)
            window.x[e + k][0] = read.of[k];
    }
#endif
}

#endif
