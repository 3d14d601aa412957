/* A content is cut into four strips of equal length, of which each has eight states. A row is 64 bytes of every strip: each of its
words goes into a state of its own, by steps that are one to one in the word and in the state. So a change of one word changes its
state, and what comes behind cannot take that back unless it changes as well, in just that way: a word is spread before it goes in,
and a state after, so that a change of few bits here is taken back by nothing but one of many bits there. Four strips, as one
stream of addresses is read more slowly than memory allows. Bytes behind the content's end, in the last rows, count as zeros. */
#include "checksum.h"

#include <string.h>

enum { STRIPS = 4, WIDTH = 64, WORDS = WIDTH / 8, STATES = STRIPS * WORDS, AHEAD = 1024 };

/* Odd, with about as many ones as zeros in either half, so that a changed bit changes many. */
static const uint64_t SPREAD = 0xB5297A4D68E31DA5, STEP = 0x9E6C63D0876A9A35, JOIN = 0xC7A1F36D5B2E8C93;

/* ---- rows of which all bytes are there ---- */

#define JOINED_(a, b) a##b
#define JOINED(a, b) JOINED_(a, b)

#define FUNCTION add_rows_16
#define VECTOR 16
#define FOR_LEVEL
#include "checksum_rows.h"
#if defined(__x86_64__)
#define FUNCTION add_rows_32
#define VECTOR 32
#define FOR_LEVEL __attribute__((target("arch=x86-64-v3")))
#include "checksum_rows.h"
#define FUNCTION add_rows_64
#define VECTOR 64
#define FOR_LEVEL __attribute__((target("arch=x86-64-v4")))
#include "checksum_rows.h"
#endif

typedef void AddRows(const uint8_t *content, size_t strip, size_t rows, uint64_t *states);

static AddRows *rows_for(const char *level) {
#if defined(__x86_64__)
    if (level && !strcmp(level, "x86-64-v4")) return add_rows_64;
    if (level && !strcmp(level, "x86-64-v3")) return add_rows_32;
#endif
    (void)level;
    return add_rows_16;
}

/* ---- all of it ---- */

static uint64_t mixed(uint64_t word, uint64_t by) {
    word ^= word >> 32;
    return word * by;
}

uint64_t fxa_checksum(const char *level, const void *content, size_t size) {
    const uint8_t *bytes = content;
    AddRows *add_rows = rows_for(level);
    uint64_t states[STATES];
    for (int i = 0; i < STATES; i++) states[i] = (uint64_t)(i + 1) * JOIN;
    size_t rows = size / (STRIPS * WIDTH) + (size % (STRIPS * WIDTH) != 0), strip = rows * WIDTH;
    size_t behind = (STRIPS - 1) * strip; /* where the last strip begins, in which bytes are missing */
    size_t whole = size > behind ? (size - behind) / WIDTH : 0;
    add_rows(bytes, strip, whole, states);
    for (size_t row = whole; row < rows; row++) {
        uint8_t filled[STRIPS * WIDTH] = {0};
        for (int s = 0; s < STRIPS; s++) {
            size_t start = s * strip + row * WIDTH, left = start < size ? size - start : 0;
            memcpy(filled + s * WIDTH, bytes + (left ? start : 0), left < WIDTH ? left : WIDTH);
        }
        add_rows(filled, WIDTH, 1, states);
    }
    uint64_t joined = size;
    for (int i = 0; i < STATES; i++) joined = mixed(joined ^ states[i], JOIN);
    return mixed(mixed(joined, STEP), JOIN);
}
