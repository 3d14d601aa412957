/* A content is cut into chunks of 1024 bytes, which are hashed each by itself, and are the leaves of a binary tree. Sixteen, eight
or four chunks or inner nodes are computed side by side, a lane of a vector each: as many as keep a node's state in registers. */
#include "blake3.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK = 1024, BLOCK = 64, MOST_LANES = 16, WORDS = 8, ROUNDS = 7 };
enum { CHUNK_START = 1, CHUNK_END = 2, PARENT = 4, ROOT = 8 };

static const uint32_t IV[WORDS] = {
    0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19,
};
/* Which word of a block each of a round's sixteen places takes. */
static const uint8_t SCHEDULE[ROUNDS][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
    {2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8},
    {3, 4, 10, 12, 13, 2, 7, 14, 6, 5, 9, 0, 11, 15, 8, 1},
    {10, 7, 12, 9, 14, 3, 13, 15, 4, 0, 11, 2, 5, 8, 1, 6},
    {12, 13, 9, 11, 15, 10, 14, 8, 7, 2, 5, 3, 0, 1, 6, 4},
    {9, 14, 11, 5, 8, 12, 15, 1, 13, 3, 0, 10, 2, 6, 4, 7},
    {11, 15, 5, 0, 1, 9, 8, 6, 14, 10, 2, 12, 3, 4, 7, 13},
};

#define ROTATED(x, n) (((x) >> (n)) | ((x) << (32 - (n))))
#define MIX(a, b, c, d, x, y)               \
    do {                                    \
        v[a] += v[b] + (x);                 \
        v[d] = ROTATED(v[d] ^ v[a], 16);    \
        v[c] += v[d];                       \
        v[b] = ROTATED(v[b] ^ v[c], 12);    \
        v[a] += v[b] + (y);                 \
        v[d] = ROTATED(v[d] ^ v[a], 8);     \
        v[c] += v[d];                       \
        v[b] = ROTATED(v[b] ^ v[c], 7);     \
    } while (0)
#define ROUND(s)                                                                                            \
    do {                                                                                                    \
        MIX(0, 4, 8, 12, m[(s)[0]], m[(s)[1]]); MIX(1, 5, 9, 13, m[(s)[2]], m[(s)[3]]);                     \
        MIX(2, 6, 10, 14, m[(s)[4]], m[(s)[5]]); MIX(3, 7, 11, 15, m[(s)[6]], m[(s)[7]]);                   \
        MIX(0, 5, 10, 15, m[(s)[8]], m[(s)[9]]); MIX(1, 6, 11, 12, m[(s)[10]], m[(s)[11]]);                 \
        MIX(2, 7, 8, 13, m[(s)[12]], m[(s)[13]]); MIX(3, 4, 9, 14, m[(s)[14]], m[(s)[15]]);                 \
    } while (0)

/* ---- one node ---- */

static void compress(uint32_t chain[WORDS], const uint8_t *block, uint64_t counter, uint32_t length, uint32_t flags) {
    uint32_t m[16], v[16];
    memcpy(m, block, BLOCK);
    memcpy(v, chain, 4 * WORDS);
    memcpy(v + 8, IV, 16);
    v[12] = (uint32_t)counter;
    v[13] = (uint32_t)(counter >> 32);
    v[14] = length;
    v[15] = flags;
    for (int r = 0; r < ROUNDS; r++) ROUND(SCHEDULE[r]);
    for (int i = 0; i < WORDS; i++) chain[i] = v[i] ^ v[i + 8];
}

static void hash_chunk(const uint8_t *content, size_t size, uint64_t counter, uint32_t root, uint32_t chain[WORDS]) {
    memcpy(chain, IV, sizeof(IV));
    uint32_t begins = CHUNK_START;
    for (; size > BLOCK; size -= BLOCK, content += BLOCK, begins = 0) compress(chain, content, counter, BLOCK, begins);
    uint8_t last[BLOCK] = {0};
    memcpy(last, content, size);
    compress(chain, last, counter, (uint32_t)size, begins | CHUNK_END | root);
}

static void hash_parent(const uint32_t *children, uint32_t root, uint32_t chain[WORDS]) {
    uint8_t block[BLOCK];
    memcpy(block, children, BLOCK);
    memcpy(chain, IV, sizeof(IV));
    compress(chain, block, 0, BLOCK, PARENT | root);
}

/* ---- several side by side ---- */

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define UNROLL _Pragma("GCC unroll 16")

#define LANES 4
#define SIDE_BY_SIDE hash_four
#define FOR_LEVEL
#include "blake3_lanes.h"
#if defined(__x86_64__)
#define LANES 8
#define SIDE_BY_SIDE hash_eight
#define FOR_LEVEL __attribute__((target("arch=x86-64-v3")))
#include "blake3_lanes.h"
#define LANES 16
#define SIDE_BY_SIDE hash_sixteen
#define FOR_LEVEL __attribute__((target("arch=x86-64-v4")))
#include "blake3_lanes.h"
#endif

typedef struct {
    size_t lanes;
    void (*hash)(const uint8_t *content, size_t stride, int blocks, uint64_t first, uint32_t step, uint32_t flags, uint32_t begins,
                 uint32_t ends, uint32_t *chains);
} Width;

static Width width_of(const char *level) {
#if defined(__x86_64__)
    if (level && !strcmp(level, "x86-64-v4")) return (Width){16, hash_sixteen};
    if (level && !strcmp(level, "x86-64-v3")) return (Width){8, hash_eight};
#endif
    (void)level;
    return (Width){4, hash_four};
}

/* ---- the tree ---- */

/* Nodes of one level become those of the next, in place; one without a partner goes up as it is. */
static size_t level_up(Width width, uint32_t *chains, size_t count) {
    size_t pairs = count / 2, done = 0;
    for (; done + width.lanes <= pairs; done += width.lanes) {
        uint32_t made[MOST_LANES * WORDS];
        width.hash((const uint8_t *)(chains + done * 2 * WORDS), BLOCK, 1, 0, 0, PARENT, 0, 0, made);
        memcpy(chains + done * WORDS, made, width.lanes * 4 * WORDS);
    }
    for (; done < pairs; done++) {
        uint32_t made[WORDS];
        hash_parent(chains + done * 2 * WORDS, 0, made);
        memcpy(chains + done * WORDS, made, sizeof(made));
    }
    if (count % 2) memmove(chains + pairs * WORDS, chains + (count - 1) * WORDS, 4 * WORDS);
    return pairs + count % 2;
}

/* The chaining values of all chunks. */
static void hash_chunks(Width width, const uint8_t *content, size_t size, uint32_t *chains) {
    size_t full = size / CHUNK, done = 0;
    while (full >= width.lanes && done < full) {
        if (full - done < width.lanes) done = full - width.lanes; /* some once more: sooner than those left one by one */
        width.hash(content + done * CHUNK, CHUNK, CHUNK / BLOCK, done, 1, 0, CHUNK_START, CHUNK_END, chains + done * WORDS);
        done += width.lanes;
    }
    for (; done * CHUNK < size; done++) {
        size_t left = size - done * CHUNK;
        hash_chunk(content + done * CHUNK, left < CHUNK ? left : CHUNK, done, 0, chains + done * WORDS);
    }
}

bool fxa_blake3(const char *level, const void *content, size_t size, uint8_t digest[FXA_DIGEST_BYTES]) {
    uint32_t root[WORDS];
    if (size <= CHUNK) {
        hash_chunk(content, size, 0, ROOT, root);
        memcpy(digest, root, FXA_DIGEST_BYTES);
        return true;
    }
    Width width = width_of(level);
    size_t count = (size + CHUNK - 1) / CHUNK;
    uint32_t *chains = malloc(count * sizeof(root));
    if (!chains) return false;
    hash_chunks(width, content, size, chains);
    while (count > 2) count = level_up(width, chains, count);
    hash_parent(chains, ROOT, root);
    free(chains);
    memcpy(digest, root, FXA_DIGEST_BYTES);
    return true;
}
