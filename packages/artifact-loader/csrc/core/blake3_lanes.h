/* As many nodes side by side as a vector has lanes: included once for each width, with LANES, SIDE_BY_SIDE (the function's name) and
FOR_LEVEL (attributes that let the compiler use such vectors). A block has sixteen words, so LANES divides sixteen. */

typedef uint32_t JOIN(Vector, LANES) __attribute__((vector_size(4 * LANES)));
#define Lanes JOIN(Vector, LANES)

/* Words of LANES blocks by block become lanes by word: rows and columns are swapped in squares of `d`. */
#define SWAP(d)                                                                                            \
    if (d < LANES) {                                                                                       \
        Lanes low, high;                                                                                   \
        UNROLL for (int l = 0; l < LANES; l++) {                                                           \
            low[l] = l & d ? LANES + l - d : l;                                                            \
            high[l] = l & d ? LANES + l : l + d;                                                           \
        }                                                                                                  \
        UNROLL for (int i = 0; i < 16; i++) {                                                              \
            if (i & d) continue;                                                                           \
            Lanes first = m[i], second = m[i + d];                                                         \
            m[i] = __builtin_shuffle(first, second, low);                                                  \
            m[i + d] = __builtin_shuffle(first, second, high);                                             \
        }                                                                                                  \
    }

/* Nodes of `blocks` blocks each, which begin `stride` bytes apart; `chains` gets eight words of each. Counters are `first`,
`first + step`, ... Blocks of the next nodes are asked for meanwhile: no processor follows so many streams by itself. */
FOR_LEVEL static void SIDE_BY_SIDE(const uint8_t *content, size_t stride, int blocks, uint64_t first, uint32_t step, uint32_t flags,
                                   uint32_t begins, uint32_t ends, uint32_t *chains) {
    Lanes chain[WORDS], m[16], v[16] = {{0}}, counter_low, counter_high;
    for (int l = 0; l < LANES; l++) {
        counter_low[l] = (uint32_t)(first + (uint64_t)step * l);
        counter_high[l] = (uint32_t)((first + (uint64_t)step * l) >> 32);
    }
    UNROLL for (int i = 0; i < WORDS; i++) chain[i] = (Lanes){0} + IV[i];
    for (int b = 0; b < blocks; b++) {
        const uint8_t *here = content + b * BLOCK;
        UNROLL for (int i = 0; i < 16; i++) memcpy(&m[i], here + i % LANES * stride + i / LANES * sizeof(Lanes), sizeof(Lanes));
        for (int l = 0; l < LANES; l++) __builtin_prefetch(here + (LANES + l) * stride, 0, 2);
        SWAP(8)
        SWAP(4)
        SWAP(2)
        SWAP(1)
        UNROLL for (int i = 0; i < WORDS; i++) v[i] = chain[i];
        UNROLL for (int i = 0; i < 4; i++) v[8 + i] = (Lanes){0} + IV[i];
        v[12] = counter_low;
        v[13] = counter_high;
        v[14] = (Lanes){0} + (uint32_t)BLOCK;
        v[15] = (Lanes){0} + (flags | (b == 0 ? begins : 0) | (b == blocks - 1 ? ends : 0));
        UNROLL for (int r = 0; r < ROUNDS; r++) ROUND(SCHEDULE[r]);
        UNROLL for (int i = 0; i < WORDS; i++) chain[i] = v[i] ^ v[i + 8];
    }
    UNROLL for (int i = 0; i < WORDS; i++) {
        for (int l = 0; l < LANES; l++) chains[l * WORDS + i] = chain[i][l];
    }
}

#undef Lanes
#undef SWAP
#undef LANES
#undef SIDE_BY_SIDE
#undef FOR_LEVEL
