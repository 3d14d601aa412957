#include "split_products.h"

/* A float32 is the sum of three bfloat16 of 8 bits each. Of the nine products of two numbers' parts the six largest are
 * added up by the processor's matrix unit, the others are below the rounding of one float32 product (Henry, Heinecke and
 * Tang, "Leveraging the bfloat16 Artificial Intelligence Datatype For Higher-Precision Computations", 2019).
 *
 * The unit multiplies tiles: 16 rows of 32 numbers, and 32 rows of 16 columns, of which two rows lie as pairs. Operands are
 * packed into such tiles, and results are made in blocks of 32 x 32, four tiles that stay in the unit. */

#if defined(__x86_64__) && defined(__linux__) && (defined(__clang__) ? __clang_major__ >= 12 : __GNUC__ >= 11)

#include <cpuid.h>
#include <immintrin.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ON_MATRIX_UNIT __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,amx-tile,amx-bf16")))

enum {
    PARTS = 3,
    TILE = 1024,             /* bytes */
    SIDE = 32,               /* rows and columns of a block of the result */
    STEP = 32,               /* terms that one product of tiles adds up */
    SLICE = PARTS * 2 * TILE, /* of a step: each part of the two tiles of a side */
    LEAST_SIZE = 128,        /* rows and columns */
    LEAST_TERMS = 64,
    LEAST_WORK = 1 << 23,    /* multiplications */
    MOST_TERMS = 256,        /* that are packed at a time; further ones are added to the result in memory */
    MOST_COLUMNS = 512,      /* that are packed at a time: 768 KB, which fits into the second cache */
};

/* The unit takes numbers below 2^-126 as zero, parts and sums too. Two numbers whose product is at least 2^-98 lose
 * nothing by that, nor does a number of at least 2^-98: what is left out is below 2^-28 of it. What is not finite has no
 * parts. */
enum { LEAST_PART = 127 - 98, LEAST_PRODUCT = 2 * 127 - 98, LARGEST_PRODUCT = 2 * 127 + 110, LARGEST_PART = 127 + 120 };

typedef struct {
    uint32_t least, largest; /* bits of absolute values that are not zero */
} Range;

typedef struct {
    const float *numbers;
    int64_t across, along; /* strides: from row (of lhs) or column (of rhs) to the next, and from term to term */
} Operand;

typedef struct {
    uint8_t columns[MOST_COLUMNS / SIDE][MOST_TERMS / STEP * SLICE] __attribute__((aligned(64)));
    Range ranges[MOST_COLUMNS / SIDE];
} Packed;

typedef struct {
    float *out;
    const float *row;
    Operand lhs, rhs;
    int64_t rows, terms, columns;
    /* the block of rhs that is packed */
    int64_t first_term, block_terms, first_column, block_columns;
    Packed *packed;
    int32_t failed;
} Product;

typedef struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} TileShapes;

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static bool may_use_tiles(void) {
    enum { GET_PERMISSIONS = 0x1022, REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };
    uint32_t a, b, c, d, states, high;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & (1u << 27))) return false;
    __asm__("xgetbv" : "=a"(states), "=d"(high) : "c"(0));
    if ((states & 0x600e6) != 0x600e6) return false; /* vectors of 512 bits, and tiles */
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
    if (!(d & (1u << 22)) || !(d & (1u << 24))) return false; /* amx-bf16, amx-tile */
    if (!__get_cpuid_count(7, 1, &a, &b, &c, &d) || !(a & (1u << 5))) return false; /* avx512-bf16 */
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512vl")) return false;
    unsigned long allowed = 0;
    syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA);
    return syscall(SYS_arch_prctl, GET_PERMISSIONS, &allowed) == 0 && (allowed >> TILE_DATA & 1);
}

/* ---- packing ---- */

typedef struct {
    __m512i least, largest;
} RangeVector;

ON_MATRIX_UNIT static inline __m512 as_floats(__m256i halves) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
}

/* The parts of 32 numbers, `first` in the lower halves. */
ON_MATRIX_UNIT static inline void split(__m512 first, __m512 second, __m512i parts[PARTS], RangeVector *range) {
    const __m512i sign = _mm512_set1_epi32((int)0x80000000u), one = _mm512_set1_epi32(1);
    __m512i a = _mm512_andnot_si512(sign, _mm512_castps_si512(first));
    __m512i b = _mm512_andnot_si512(sign, _mm512_castps_si512(second));
    range->largest = _mm512_max_epu32(range->largest, _mm512_max_epu32(a, b));
    /* Zeros wrap around to the largest. */
    range->least = _mm512_min_epu32(range->least, _mm512_min_epu32(_mm512_sub_epi32(a, one), _mm512_sub_epi32(b, one)));
    for (int i = 0; i < PARTS; i++) {
        parts[i] = (__m512i)_mm512_cvtne2ps_pbh(second, first);
        first = _mm512_sub_ps(first, as_floats(_mm512_castsi512_si256(parts[i])));
        second = _mm512_sub_ps(second, as_floats(_mm512_extracti64x4_epi64(parts[i], 1)));
    }
}

/* Transposes 16 rows of 16 words of 4 bytes. */
ON_MATRIX_UNIT static inline void transpose(uint8_t *tile) {
    __m512i r[16], t[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++) r[i] = _mm512_load_si512(tile + 64 * i);
#pragma GCC unroll 8
    for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 16; i += 4) {
        r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
        r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
        r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
        r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        t[i] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0x88);
        t[i + 4] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0xdd);
        t[i + 8] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0x88);
        t[i + 12] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0xdd);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        r[i] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88);
        r[i + 8] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0xdd);
        r[i + 4] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0x88);
        r[i + 12] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0xdd);
    }
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++) _mm512_store_si512(tile + 64 * i, r[i]);
}

/* A mask of 16 numbers, of which `count` are there. */
static inline __mmask16 there(int64_t count) {
    return count >= 16 ? 0xffff : count <= 0 ? 0 : (__mmask16)((1u << count) - 1);
}

/* 16 rows (or columns) with 32 terms each, of which `count` and `terms` are there: a tile for each part, `apart` bytes from
 * one to the next. `pairs`: terms lie as pairs beside each other, as rhs has them, else each row's terms. */
ON_MATRIX_UNIT static void pack_tile(const float *from, const Operand *layout, int64_t count, int64_t terms, bool pairs,
                                     uint8_t *tile, int64_t apart, RangeVector *range) {
    __m512i parts[PARTS];
    bool terms_are_rows = layout->along == 1;
    if (terms_are_rows) {
        __mmask16 low = there(terms), high = there(terms - 16);
        for (int64_t i = 0; i < 16; i++) {
            const float *at = from + i * layout->across;
            __m512 first = i < count ? _mm512_maskz_loadu_ps(low, at) : _mm512_setzero_ps();
            __m512 second = i < count ? _mm512_maskz_loadu_ps(high, at + 16) : _mm512_setzero_ps();
            split(first, second, parts, range);
            for (int p = 0; p < PARTS; p++) _mm512_store_si512(tile + p * apart + i * 64, parts[p]);
        }
    } else {
        __mmask16 some = there(count);
        const __m512i beside = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                                                21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
        for (int64_t i = 0; i < 16; i++) {
            const float *at = from + 2 * i * layout->along;
            __m512 first = 2 * i < terms ? _mm512_maskz_loadu_ps(some, at) : _mm512_setzero_ps();
            __m512 second = 2 * i + 1 < terms ? _mm512_maskz_loadu_ps(some, at + layout->along) : _mm512_setzero_ps();
            split(first, second, parts, range);
            for (int p = 0; p < PARTS; p++)
                _mm512_store_si512(tile + p * apart + i * 64, _mm512_permutexvar_epi16(beside, parts[p]));
        }
    }
    if (terms_are_rows == pairs)
        for (int p = 0; p < PARTS; p++) transpose(tile + p * apart);
}

/* Packs 32 rows (or columns) from `first` on: for each step the two tiles of each part. */
ON_MATRIX_UNIT static Range pack_side(const Operand *operand, int64_t first, int64_t size, int64_t first_term, int64_t terms,
                                      bool pairs, uint8_t *to) {
    RangeVector range = {_mm512_set1_epi32(-1), _mm512_setzero_si512()};
    for (int64_t term = 0; term < terms; term += STEP, to += SLICE) {
        for (int64_t half = 0; half < 2; half++) {
            int64_t at = first + 16 * half;
            const float *from = operand->numbers + at * operand->across + (first_term + term) * operand->along;
            pack_tile(from, operand, size - at, terms - term, pairs, to + half * TILE, 2 * TILE, &range);
        }
    }
    return (Range){_mm512_reduce_min_epu32(range.least), _mm512_reduce_max_epu32(range.largest)};
}

static bool are_exact(Range lhs, Range rhs) {
    uint32_t l = lhs.least >> 23, r = rhs.least >> 23, large_l = lhs.largest >> 23, large_r = rhs.largest >> 23;
    if (large_l > LARGEST_PART || large_r > LARGEST_PART || large_l + large_r > LARGEST_PRODUCT) return false;
    if (!lhs.largest || !rhs.largest) return true;
    return l >= LEAST_PART && r >= LEAST_PART && l + r >= LEAST_PRODUCT;
}

/* ---- the product ---- */

ON_MATRIX_UNIT static inline void start_tiles(void) {
    TileShapes shapes = {.palette = 1};
    for (int i = 0; i < 8; i++) shapes.row_bytes[i] = 64, shapes.rows[i] = 16;
    _tile_loadconfig(&shapes);
}

#define LOAD_LEFT(part) \
    do { \
        _tile_loadd(4, left + 2 * (part) * TILE, 64); \
        _tile_loadd(5, left + (2 * (part) + 1) * TILE, 64); \
    } while (0)
#define LOAD_RIGHT(part) \
    do { \
        _tile_loadd(6, right + 2 * (part) * TILE, 64); \
        _tile_loadd(7, right + (2 * (part) + 1) * TILE, 64); \
    } while (0)
#define MULTIPLY() \
    do { \
        _tile_dpbf16ps(0, 4, 6); \
        _tile_dpbf16ps(1, 4, 7); \
        _tile_dpbf16ps(2, 5, 6); \
        _tile_dpbf16ps(3, 5, 7); \
    } while (0)

/* A block of 32 x 32 numbers to `to`: `row` and the products of `steps` tiles of both sides. `stride` is in bytes. The
 * smallest products of a step come first. */
ON_MATRIX_UNIT static inline void multiply_block(const uint8_t *left, const uint8_t *right, int64_t steps, const float *row,
                                                 float *to, int64_t stride) {
    uint8_t *lower = (uint8_t *)to + 16 * stride;
    __asm__ volatile("" ::: "memory"); /* the compiler does not see that the unit reads memory */
    _tile_loadd(0, row, 0); /* one row for all */
    _tile_loadd(1, row + 16, 0);
    _tile_loadd(2, row, 0);
    _tile_loadd(3, row + 16, 0);
    for (int64_t step = 0; step < steps; step++, left += SLICE, right += SLICE) {
        LOAD_LEFT(0);
        LOAD_RIGHT(2);
        MULTIPLY();
        LOAD_RIGHT(1);
        MULTIPLY();
        LOAD_LEFT(1);
        MULTIPLY();
        LOAD_RIGHT(0);
        MULTIPLY();
        LOAD_LEFT(2);
        MULTIPLY();
        LOAD_LEFT(0);
        MULTIPLY();
    }
    _tile_stored(0, to, stride);
    _tile_stored(1, to + 16, stride);
    _tile_stored(2, lower, stride);
    _tile_stored(3, lower + 64, stride);
    __asm__ volatile("" ::: "memory");
}

/* The block from a row and a column on, of which a part may lie outside of the result. Sums of many terms are added up in
 * parts, which is more exact, and their second parts come from a copy. */
ON_MATRIX_UNIT static void write_block(const Product *asked, const uint8_t *left, const uint8_t *right, int64_t steps,
                                       int64_t row, int64_t column) {
    static const float nothing[SIDE];
    float copy[SIDE * SIDE] __attribute__((aligned(64))), beginning[SIDE] = {0};
    int64_t rows = least(SIDE, asked->rows - row), columns = least(SIDE, asked->columns - column);
    float *to = asked->out + row * asked->columns + column;
    bool first = asked->first_term == 0;
    const float *added = first && asked->row ? asked->row + column : nothing;
    if (first && rows == SIDE && columns == SIDE) {
        multiply_block(left, right, steps, added, to, asked->columns * (int64_t)sizeof(float));
        return;
    }
    if (columns < SIDE) added = memcpy(beginning, added, (size_t)columns * sizeof(float));
    multiply_block(left, right, steps, added, copy, SIDE * sizeof(float));
    __mmask16 low = there(columns), high = there(columns - 16);
    for (int64_t i = 0; i < rows; i++, to += asked->columns) {
        __m512 a = _mm512_load_ps(copy + i * SIDE), b = _mm512_load_ps(copy + i * SIDE + 16);
        if (!first) {
            a = _mm512_add_ps(_mm512_maskz_loadu_ps(low, to), a);
            b = _mm512_add_ps(_mm512_maskz_loadu_ps(high, to + 16), b);
        }
        _mm512_mask_storeu_ps(to, low, a);
        _mm512_mask_storeu_ps(to + 16, high, b);
    }
}

ON_MATRIX_UNIT static void pack_columns(int64_t begin, int64_t end, void *context) {
    Product *asked = context;
    Packed *packed = asked->packed;
    for (int64_t i = begin; i < end; i++)
        packed->ranges[i] = pack_side(&asked->rhs, asked->first_column + i * SIDE, asked->columns, asked->first_term,
                                      asked->block_terms, true, packed->columns[i]);
}

ON_MATRIX_UNIT static void multiply_rows(int64_t begin, int64_t end, void *context) {
    Product *asked = context;
    uint8_t left[MOST_TERMS / STEP * SLICE] __attribute__((aligned(64)));
    int64_t steps = (asked->block_terms + STEP - 1) / STEP, sides = (asked->block_columns + SIDE - 1) / SIDE;
    start_tiles();
    for (int64_t i = begin; i < end; i++) {
        Range range = pack_side(&asked->lhs, i * SIDE, asked->rows, asked->first_term, asked->block_terms, false, left);
        for (int64_t j = 0; j < sides; j++) {
            if (!are_exact(range, asked->packed->ranges[j])) {
                __atomic_store_n(&asked->failed, 1, __ATOMIC_RELAXED);
                break;
            }
            write_block(asked, left, asked->packed->columns[j], steps, i * SIDE, asked->first_column + j * SIDE);
        }
        if (__atomic_load_n(&asked->failed, __ATOMIC_RELAXED)) break;
    }
    _tile_release();
}

/* Strides of a matrix without gaps; false if it has none such. */
static bool describe(Handle matrix, bool is_left, Operand *operand) {
    int64_t *strides;
    void *numbers;
    if (shim.get_strides(matrix, &strides) || shim.get_data_ptr(matrix, &numbers)) return false;
    *operand = (Operand){numbers, strides[!is_left], strides[is_left]};
    return operand->across == 1 || operand->along == 1;
}

/* Each thread that asks keeps its memory: new pages cost as much as packing. It is freed where the thread ends. */
static pthread_key_t packed_memory;
static pthread_once_t packed_memory_once = PTHREAD_ONCE_INIT;
static bool has_memory_key;

static void make_memory_key(void) { has_memory_key = pthread_key_create(&packed_memory, free) == 0; }

static Packed *memory_of_thread(void) {
    pthread_once(&packed_memory_once, make_memory_key);
    if (!has_memory_key) return NULL;
    Packed *memory = pthread_getspecific(packed_memory);
    if (memory) return memory;
    memory = aligned_alloc(64, sizeof(Packed));
    if (!memory || pthread_setspecific(packed_memory, memory) == 0) return memory;
    free(memory);
    return NULL;
}

static int32_t compute(Product *asked) {
    asked->packed = memory_of_thread();
    if (!asked->packed) return 1;
    int64_t sides = (asked->rows + SIDE - 1) / SIDE;
    for (int64_t column = 0; column < asked->columns; column += MOST_COLUMNS) {
        asked->first_column = column, asked->block_columns = least(MOST_COLUMNS, asked->columns - column);
        for (int64_t term = 0; term < asked->terms; term += MOST_TERMS) {
            asked->first_term = term, asked->block_terms = least(MOST_TERMS, asked->terms - term);
            if (shim.parallel_for(0, (asked->block_columns + SIDE - 1) / SIDE, 1, pack_columns, asked)) return 1;
            if (shim.parallel_for(0, sides, 1, multiply_rows, asked) || asked->failed) return 1;
        }
    }
    return 0;
}

/* Whether packing pays: each packed number is used once for each 32 rows or columns of the other side. */
static bool are_enough(const Product *asked) {
    if (asked->rows < LEAST_SIZE || asked->columns < LEAST_SIZE || asked->terms < LEAST_TERMS) return false;
    return asked->rows * asked->columns >= LEAST_WORK / asked->terms;
}

int32_t split_product(Handle out, Handle row, Handle lhs, Handle rhs) {
    static int8_t allowed = -1;
    if (!__atomic_load_n(&allowed, __ATOMIC_RELAXED) || !shim.parallel_for) return 1;
    Product asked = {0};
    int64_t *sizes, *left, *right;
    void *to, *added = NULL;
    if (shim.get_sizes(out, &sizes) || shim.get_sizes(lhs, &left) || shim.get_sizes(rhs, &right)) return 1;
    if (sizes[0] != left[0] || left[1] != right[0] || sizes[1] != right[1]) return 1;
    asked.rows = sizes[0], asked.terms = left[1], asked.columns = sizes[1];
    if (!are_enough(&asked)) return 1;
    if (__atomic_load_n(&allowed, __ATOMIC_RELAXED) < 0) __atomic_store_n(&allowed, may_use_tiles(), __ATOMIC_RELAXED);
    if (!__atomic_load_n(&allowed, __ATOMIC_RELAXED)) return 1;
    if (shim.get_data_ptr(out, &to) || (row && shim.get_data_ptr(row, &added))) return 1;
    if (!describe(lhs, true, &asked.lhs) || !describe(rhs, false, &asked.rhs)) return 1;
    asked.out = to, asked.row = added;
    return compute(&asked);
}

#else

int32_t split_product(Handle out, Handle row, Handle lhs, Handle rhs) {
    (void)out, (void)row, (void)lhs, (void)rhs;
    return 1;
}

#endif
