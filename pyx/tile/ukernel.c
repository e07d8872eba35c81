/* The register tiles, compiled once for each instruction set. */
#include "tile/ukernel.h"

/* Stores a vector with a non-temporal store. */
#if defined(__AVX512F__)
#define STREAM_VECTOR(to, vector) _mm512_stream_si512((__m512i *)(to), (__m512i)(vector))
#elif defined(__AVX__) && VECTOR_BYTES == 32
#define STREAM_VECTOR(to, vector) _mm256_stream_si256((__m256i *)(to), (__m256i)(vector))
#elif defined(__SSE2__) && VECTOR_BYTES == 16
#define STREAM_VECTOR(to, vector) _mm_stream_si128((__m128i *)(to), (__m128i)(vector))
#else
#define STREAM_VECTOR(to, vector) (void)(*(to) = (vector))
#endif

#define TYPE float
#define TILE tile_f32
#define HALF
#include "tile/ukernel_template.h"
#undef HALF
#include "tile/ukernel_template.h"
#undef TYPE
#undef TILE

#define TYPE double
#define TILE tile_f64
#define HALF
#include "tile/ukernel_template.h"
#undef HALF
#include "tile/ukernel_template.h"
#undef TYPE
#undef TILE

#define TYPE uint32_t
#define TILE tile_u32
#define HALF
#include "tile/ukernel_template.h"
#undef HALF
#include "tile/ukernel_template.h"
#undef TYPE
#undef TILE

#ifdef ADD_PAIRS
#define PAIRS
#define TYPE float
#define TILE tile_pairs
#define HALF
#include "tile/ukernel_template.h"
#undef HALF
#include "tile/ukernel_template.h"
#undef TYPE
#undef TILE
#undef PAIRS
#endif
