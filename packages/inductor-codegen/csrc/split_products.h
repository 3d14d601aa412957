/* Products of float32 matrices by a processor's unit for matrices of bfloat16 (AMX), as exact as float32. */
#ifndef INDUCTOR_CODEGEN_SPLIT_PRODUCTS_H
#define INDUCTOR_CODEGEN_SPLIT_PRODUCTS_H

#include "shim.h"

/* out = lhs @ rhs, or row + lhs @ rhs with a row for all rows (NULL: none). All are float32 on the CPU; `out` and `row` are
 * contiguous and no part of the others, `lhs` and `rhs` row-major or transposed, and their sizes fit.
 *
 * 0, or 1 where it is not computed, and `out` may hold anything: the processor has no such unit, the system does not allow
 * it, memory is short, or numbers are not finite or so small that parts of them would be lost. */
int32_t split_product(Handle out, Handle row, Handle lhs, Handle rhs);

#endif
