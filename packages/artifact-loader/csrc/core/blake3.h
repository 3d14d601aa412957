/* BLAKE3 (J. O'Connor, J.-P. Aumasson, S. Neves, Z. Wilcox-O'Hearn, 2020), without keys: the hash of a content. */
#ifndef FXA_BLAKE3_H
#define FXA_BLAKE3_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FXA_DIGEST_BYTES = 32 };

/* As a processor of `level` (target.h; NULL: any) computes it fastest. False without memory for one word in 32 bytes of the content. */
bool fxa_blake3(const char *level, const void *content, size_t size, uint8_t digest[FXA_DIGEST_BYTES]);

#endif
