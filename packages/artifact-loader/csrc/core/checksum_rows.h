/* Rows in vectors of VECTOR bytes: included once for each width, with FUNCTION (its name) and FOR_LEVEL (attributes that let the
compiler use such vectors). */

#define Words JOINED(Words, VECTOR)
typedef uint64_t Words __attribute__((vector_size(VECTOR)));

/* Into `states`, `rows` rows of strips that begin `strip` bytes apart. What comes later is asked of memory meanwhile: no processor
asks for enough by itself. */
FOR_LEVEL static void FUNCTION(const uint8_t *content, size_t strip, size_t rows, uint64_t *states) {
    enum { EACH = WIDTH / VECTOR };
    Words state[STRIPS * EACH];
    memcpy(state, states, sizeof(state));
    for (size_t row = 0; row < rows; row++, content += WIDTH) {
        _Pragma("GCC unroll 4") for (int s = 0; s < STRIPS; s++) {
            const uint8_t *here = content + s * strip;
            __builtin_prefetch(here + AHEAD, 0, 2);
            _Pragma("GCC unroll 4") for (int i = 0; i < EACH; i++) {
                Words word;
                memcpy(&word, here + i * VECTOR, VECTOR);
                word = state[s * EACH + i] ^ word * SPREAD;
                word ^= word >> 32;
                state[s * EACH + i] = word * STEP;
            }
        }
    }
    memcpy(states, state, sizeof(state));
}

#undef Words
#undef FUNCTION
#undef VECTOR
#undef FOR_LEVEL
