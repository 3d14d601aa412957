/* A content is cut into chunks of 1024 bytes, which are hashed each by itself, and are the leaves of a binary tree. Sixteen chunks
or sixteen inner nodes are computed side by side, a lane of a vector each. */
#include "blake3.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK = 1024, BLOCK = 64, LANES = 16, WORDS = 8, ROUNDS = 7 };
enum { CHUNK_START = 1, CHUNK_END = 2, PARENT = 4, ROOT = 8 };

typedef uint32_t Lanes __attribute__((vector_size(4 * LANES)));

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define FOR_EACH_LEVEL __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"), flatten))
#else
#define FOR_EACH_LEVEL
#endif

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

/* ---- sixteen side by side ---- */

/* Words of sixteen blocks, `stride` bytes apart, by word: rows and columns are swapped in blocks of 8, 4, 2 and 1. */
#define SWAP(d)                                                                                 \
    _Pragma("GCC unroll 16") for (int i = 0; i < LANES; i++) {                                  \
        if (i & (d)) continue;                                                                  \
        Lanes first = m[i], second = m[i + (d)];                                                \
        m[i] = __builtin_shuffle(first, second, low_##d);                                       \
        m[i + (d)] = __builtin_shuffle(first, second, high_##d);                                \
    }
#define LOW(l, d) ((l) & (d) ? LANES + (l) - (d) : (l))
#define HIGH(l, d) ((l) & (d) ? LANES + (l) : (l) + (d))
#define ALL(F, d)                                                                                                         \
    {                                                                                                                     \
        F(0, d), F(1, d), F(2, d), F(3, d), F(4, d), F(5, d), F(6, d), F(7, d), F(8, d), F(9, d), F(10, d), F(11, d),     \
            F(12, d), F(13, d), F(14, d), F(15, d)                                                                        \
    }
static const Lanes low_1 = ALL(LOW, 1), low_2 = ALL(LOW, 2), low_4 = ALL(LOW, 4), low_8 = ALL(LOW, 8);
static const Lanes high_1 = ALL(HIGH, 1), high_2 = ALL(HIGH, 2), high_4 = ALL(HIGH, 4), high_8 = ALL(HIGH, 8);

/* Sixteen nodes of `blocks` blocks each, which begin `stride` bytes apart; `chains` gets eight words of each. Counters are `first`,
`first + step`, ... */
FOR_EACH_LEVEL static void hash_sixteen(const uint8_t *content, size_t stride, int blocks, uint64_t first, uint32_t step,
                                        uint32_t flags, uint32_t begins, uint32_t ends, uint32_t *chains) {
    Lanes chain[WORDS], m[LANES], v[16] = {{0}}, low, high;
    for (int l = 0; l < LANES; l++) {
        low[l] = (uint32_t)(first + (uint64_t)step * l);
        high[l] = (uint32_t)((first + (uint64_t)step * l) >> 32);
    }
    for (int i = 0; i < WORDS; i++) chain[i] = (Lanes){0} + IV[i];
    for (int b = 0; b < blocks; b++) {
        for (int l = 0; l < LANES; l++) memcpy(&m[l], content + l * stride + b * BLOCK, BLOCK);
        SWAP(8)
        SWAP(4)
        SWAP(2)
        SWAP(1)
        memcpy(v, chain, sizeof(chain));
        for (int i = 0; i < 4; i++) v[8 + i] = (Lanes){0} + IV[i];
        v[12] = low;
        v[13] = high;
        v[14] = (Lanes){0} + (uint32_t)BLOCK;
        v[15] = (Lanes){0} + (flags | (b == 0 ? begins : 0) | (b == blocks - 1 ? ends : 0));
#pragma GCC unroll 7
        for (int r = 0; r < ROUNDS; r++) ROUND(SCHEDULE[r]);
        for (int i = 0; i < WORDS; i++) chain[i] = v[i] ^ v[i + 8];
    }
    for (int l = 0; l < LANES; l++) {
        for (int i = 0; i < WORDS; i++) chains[l * WORDS + i] = chain[i][l];
    }
}

/* ---- the tree ---- */

/* Nodes of one level become those of the next, in place; one without a partner goes up as it is. */
static size_t level_up(uint32_t *chains, size_t count) {
    size_t pairs = count / 2, done = 0;
    for (; done + LANES <= pairs; done += LANES) {
        uint32_t made[LANES * WORDS];
        hash_sixteen((const uint8_t *)(chains + done * 2 * WORDS), BLOCK, 1, 0, 0, PARENT, 0, 0, made);
        memcpy(chains + done * WORDS, made, sizeof(made));
    }
    for (; done < pairs; done++) {
        uint32_t made[WORDS];
        hash_parent(chains + done * 2 * WORDS, 0, made);
        memcpy(chains + done * WORDS, made, sizeof(made));
    }
    if (count % 2) memmove(chains + pairs * WORDS, chains + (count - 1) * WORDS, 4 * WORDS);
    return pairs + count % 2;
}

bool fxa_blake3(const void *content, size_t size, uint8_t digest[FXA_DIGEST_BYTES]) {
    const uint8_t *bytes = content;
    uint32_t root[WORDS];
    size_t whole = size ? (size - 1) / CHUNK : 0, done = 0; /* the last chunk may be a part of one */
    if (!whole) {
        hash_chunk(bytes, size, 0, ROOT, root);
        memcpy(digest, root, FXA_DIGEST_BYTES);
        return true;
    }
    uint32_t *chains = malloc((whole + 1) * sizeof(root));
    if (!chains) return false;
    for (; done + LANES <= whole; done += LANES) {
        hash_sixteen(bytes + done * CHUNK, CHUNK, CHUNK / BLOCK, done, 1, 0, CHUNK_START, CHUNK_END, chains + done * WORDS);
    }
    for (; done <= whole; done++) {
        size_t left = size - done * CHUNK;
        hash_chunk(bytes + done * CHUNK, left < CHUNK ? left : CHUNK, done, 0, chains + done * WORDS);
    }
    size_t count = whole + 1;
    while (count > 2) count = level_up(chains, count);
    hash_parent(chains, ROOT, root);
    free(chains);
    memcpy(digest, root, FXA_DIGEST_BYTES);
    return true;
}
