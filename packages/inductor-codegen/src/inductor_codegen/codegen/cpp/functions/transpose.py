"""The C++ function that transposes a block of memory, in squares that fill a vector's lanes."""

from __future__ import annotations

BLOCK = 64
"""Rows and columns of a block."""

TRANSPOSE = f"""\
#define BLOCK {BLOCK}
#if defined(__GNUC__) && !defined(__clang__)
// Vectors of 16 bytes of elements of some bytes; the first and second halves of two of them, in turn.
template <unsigned bytes> struct Lanes;
template <> struct Lanes<1> {{
  typedef uint8_t V __attribute__((vector_size(16)));
  static constexpr V low = {{0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23}};
  static constexpr V high = {{8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31}};
}};
template <> struct Lanes<2> {{
  typedef uint16_t V __attribute__((vector_size(16)));
  static constexpr V low = {{0, 8, 1, 9, 2, 10, 3, 11}}, high = {{4, 12, 5, 13, 6, 14, 7, 15}};
}};
template <> struct Lanes<4> {{
  typedef uint32_t V __attribute__((vector_size(16)));
  static constexpr V low = {{0, 4, 1, 5}}, high = {{2, 6, 3, 7}};
}};
template <> struct Lanes<8> {{
  typedef uint64_t V __attribute__((vector_size(16)));
  static constexpr V low = {{0, 2}}, high = {{1, 3}};
}};
// Rows i and i + N / 2 in turn, log2(N) times: element j of row i comes to row j.
template <typename T> INLINE void transpose_square(T* to, const T* from, int64_t stride) {{
  typedef Lanes<sizeof(T)> L;
  constexpr int N = 16 / sizeof(T);
  typename L::V a[N], b[N];
#pragma GCC unroll 16
  for (int i = 0; i < N; ++i) __builtin_memcpy(&a[i], from + i * stride, 16);
#pragma GCC unroll 4
  for (int done = 1; done < N; done *= 2) {{
#pragma GCC unroll 8
    for (int i = 0; i < N / 2; ++i) {{
      b[2 * i] = __builtin_shuffle(a[i], a[i + N / 2], L::low);
      b[2 * i + 1] = __builtin_shuffle(a[i], a[i + N / 2], L::high);
    }}
#pragma GCC unroll 16
    for (int i = 0; i < N; ++i) a[i] = b[i];
  }}
#pragma GCC unroll 16
  for (int i = 0; i < N; ++i) __builtin_memcpy(to + i * BLOCK, &a[i], 16);
}}
#define SQUARE(T) (16 / (int)sizeof(T))
#else
template <typename T> INLINE void transpose_square(T* to, const T* from, int64_t) {{ *to = *from; }}
#define SQUARE(T) 1
#endif
// to[r][c] = from[stride * c + r]
template <typename T>
static __attribute__((noinline)) void transpose_block(
    T* to, const T* from, int64_t stride, int64_t rows, int64_t columns) {{
  constexpr int N = SQUARE(T);
  int64_t c = 0;
  for (; c + N <= columns; c += N) {{
    int64_t r = 0;
    for (; r + N <= rows; r += N) transpose_square(to + r * BLOCK + c, from + c * stride + r, stride);
    for (; r < rows; ++r)
      for (int64_t k = c; k < c + N; ++k) to[r * BLOCK + k] = from[k * stride + r];
  }}
  for (; c < columns; ++c)
    for (int64_t r = 0; r < rows; ++r) to[r * BLOCK + c] = from[c * stride + r];
}}
"""
