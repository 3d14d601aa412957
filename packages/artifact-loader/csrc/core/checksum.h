/* A checksum of 64 bits that is computed as fast as memory is read: it tells damage, and no intent. Whoever means to can find
another content with the same one; where that matters, a content is signed by its BLAKE3. */
#ifndef FXA_CHECKSUM_H
#define FXA_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/* As a processor of `level` (target.h; NULL: any) computes it fastest. Contents of one size that differ in nothing but
one of their words of eight bytes never have the same; others have by chance, one in 2^64. */
uint64_t fxa_checksum(const char *level, const void *content, size_t size);

#endif
