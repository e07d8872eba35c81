/* A thread's part of a convolution of few channels: CHANNELS outputs at POSITIONS neighbours along W, and in registers
   the window of the source that they read at TAPS taps.

   Output channels are counted through all groups; a group has OUT outputs and IN inputs. The channels of a thread
   belong to one group, or are all channels of some groups. The element of position p and tap t is at(window_index(p,
   t), ...). Neighbours in the window are neighbours in the source; STEP and TAP are the steps of the walk. If such a
   window would be too long, TAPS and SPACED are 1: the window then has one element for each position, spaced by the
   walk's step.

   CHANNELS_LAST: neighbouring threads have neighbouring channels, and SOURCE_VECTOR channels are read at once.
   Otherwise neighbouring threads have neighbouring positions, and SOURCE_VECTOR elements of a row are read at once. All
   windows then begin SHIFT elements after a multiple of SOURCE_VECTOR, and the length of a row is such a multiple. */
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

/* A vector that is read. Elements of 16 bits stay in pairs, two in a word, until they are widened: single elements
   would take a register each, and three instructions instead of one. */
template <typename Type, int count, bool paired = sizeof(Type) == 2 && count % 2 == 0> struct Read {
    Vector<Type, count> elements;

    __device__ inline compute widened(int i) const
    {
        return widen(elements.of[i]);
    }
};

template <typename Type, int count> struct alignas(sizeof(Type) * count) Read<Type, count, true> {
    unsigned words[count / 2];

    __device__ inline compute widened(int i) const
    {
        return widen_half(Type(), words[i / 2], i % 2);
    }
};

typedef Read<storage, SOURCE_VECTOR> SourceRead;

struct Window {
#if CHANNELS_LAST
    SourceRead reads[LENGTH][INPUTS / SOURCE_VECTOR];
#else
    SourceRead reads[LENGTH / SOURCE_VECTOR];
#endif

    __device__ inline compute at(int index, int input) const
    {
#if CHANNELS_LAST
        return reads[index][input / SOURCE_VECTOR].widened(input % SOURCE_VECTOR);
#else
        return reads[index / SOURCE_VECTOR].widened(index % SOURCE_VECTOR);
#endif
    }
};

__device__ inline int window_index(int position, int tap)
{
    return (CHANNELS_LAST ? 0 : SHIFT) + position * STEP + (TAP < 0 ? TAPS - 1 - tap : tap) * REACH;
}

/* The index in the window of input `in` of the group of output `channel`; both are counted from this thread's first. */
__device__ inline int window_input(int channel, int in)
{
    return CHANNELS_LAST ? (CHANNELS > OUT ? channel / OUT * IN : 0) + in : 0;
}

/* The index in a row of the source at which the window begins, for positions from `position` and taps from `tap` on. */
__device__ inline int window_begin(const conv_axis *width, int position, int tap)
{
    return int(conv_source(width, position, TAP < 0 ? tap + TAPS - 1 : tap));
}

/* Sets `source` to the index that a position and a tap meet on an axis, and returns whether it is inside the source.
   Indices fit into 32 bits. */
__device__ inline bool meets(const conv_axis *axis, int position, int tap, int &source)
{
    source = int(conv_source(axis, position, tap));
    return unsigned(source) < unsigned(axis->source_size);
}

/* Loads the window. `row` points to element 0 of a row, of the first input. Elements outside the source are zeros. */
__device__ inline void fill_window(Window &window, const storage *row, const conv_axis *width, int begin,
                                   int64_t stride, int64_t channel_stride)
{
    const unsigned size = unsigned(width->source_size);
#if CHANNELS_LAST
    const int spacing = SPACED ? int(width->source_step) : 1;
    row += begin * stride;
#pragma unroll
    for (int e = 0; e < LENGTH; ++e, row += spacing * stride) {
        const bool inside = unsigned(begin + e * spacing) < size;
#pragma unroll
        for (int j = 0; j < INPUTS; j += SOURCE_VECTOR) {
            SourceRead read = {};
            if (inside)
                read = *reinterpret_cast<const SourceRead *>(row + j * channel_stride);
            window.reads[e][j / SOURCE_VECTOR] = read;
        }
    }
#else
    const int spacing = SPACED ? int(width->source_step) : 1;
    begin -= SHIFT;
    row += begin * stride;
#pragma unroll
    for (int e = 0; e < LENGTH; e += SOURCE_VECTOR, row += SOURCE_VECTOR * spacing * stride) {
        SourceRead read = {};
        if (unsigned(begin + e * spacing) < size)
            read = *reinterpret_cast<const SourceRead *>(row);
        window.reads[e / SOURCE_VECTOR] = read;
    }
#endif
}

#endif
