/* Large products of float32 matrices by oneDNN, where its code is faster than the BLAS behind torch's operators. */
#ifndef INDUCTOR_CODEGEN_PRODUCTS_H
#define INDUCTOR_CODEGEN_PRODUCTS_H

#include "shim.h"

/* out = lhs @ rhs, or row + lhs @ rhs with a row for all rows (NULL: none). All are float32 on the CPU; `out` and `row` are
 * contiguous, `lhs` and `rhs` row-major or transposed without gaps, and their sizes fit.
 *
 * 0, or 1 where it is not computed, and `out` may hold anything: the caller calls torch's operator then. */
int32_t product(Handle out, Handle row, Handle lhs, Handle rhs);

#endif
