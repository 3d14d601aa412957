/* The contract of an entry point: what its inputs must be, and what its graph is called with.

It is an array of integers. `expr` is an integer as a program in postfix, its length first; sizes are in elements.

    contract := 1  symbols  leaves  relations  inputs  results  writes  constants
    symbols  := n (leaf dim low high)*          read from a size of a leaf, or (dim -1) an integer leaf; high -1: no bound
    leaves   := n (0 dtype device rank expr*rank expr*rank | 1 | 2 | 3)*  a tensor with sizes and strides, on
                                                the CPU (device 0) or GPU 0 (1); integer; float; anything
    relations:= n (op expr expr)*               op: 0 ==, 1 !=, 2 <, 3 <=
    inputs   := n (kind index)*                 kind: 0 tensor leaf, 1 constant, 2 symbol, 3 nothing, 4 float leaf
    results  := n (kind)*                       kind: 0 tensor, 1 integer, 2 float, 3 none
    writes   := n (kind index result)*          a tensor leaf (0) or constant (1) gets the content of a result
    constants:= n
    expr     := n (0 number | 1 symbol | 2 | 3 | 4 | 5 | 6 | 7)*         2 + 3 * 4 floordiv 5 mod 6 min 7 max
*/
#ifndef FXA_CONTRACT_H
#define FXA_CONTRACT_H

#include "torch_functions.h"

enum { LEAF_TENSOR = 0, LEAF_INTEGER = 1, LEAF_FLOAT = 2, LEAF_ANYTHING = 3 };
enum { INPUT_LEAF = 0, INPUT_CONSTANT = 1, INPUT_SYMBOL = 2, INPUT_NOTHING = 3, INPUT_FLOAT = 4 };
enum { RESULT_TENSOR = 0, RESULT_INTEGER = 1, RESULT_FLOAT = 2, RESULT_NONE = 3 };

typedef struct {
    int64_t length;
    const int64_t *code;
} Expr;

typedef struct {
    int64_t leaf, dim, low, high;
} SymbolSource;

typedef struct {
    int64_t kind, dtype, device, rank;
    Expr *layout; /* sizes, then strides */
} Leaf;

typedef struct {
    int64_t op;
    Expr lhs, rhs;
} Relation;

typedef struct {
    int64_t kind, index;
} Input;

typedef struct {
    int64_t kind, index, result;
} Write;

typedef struct {
    int64_t *words; /* owned; expressions point into it */
    int64_t symbol_count, leaf_count, relation_count, input_count, result_count, write_count, constant_count;
    SymbolSource *symbols;
    Leaf *leaves;
    Relation *relations;
    Input *inputs;
    int64_t *results;
    Write *writes;
    char **names; /* of leaves, then of symbols; owned */
} Contract;

/* A leaf of a call: a borrowed tensor, or a number (a float's bits). */
typedef struct {
    Handle tensor;
    int64_t number;
} Value;

/* Read a contract; `names` are those of all leaves and symbols, each ended by a newline. FXA_BAD_PROGRAM where it breaks the
grammar or an index leads nowhere. `contract` is zeroed before; fxa_contract_free frees it in any case. */
FxaCode fxa_contract_read(Contract *contract, const int64_t *words, int64_t count, const char *names, FxaError *error);
void fxa_contract_free(Contract *contract);

/* What torch calls the dtype of that number. */
const char *fxa_dtype_name(int64_t number);

/* What an operation of an expression gives; it wraps around, and 0 is what dividing by 0 gives. */
int64_t fxa_apply(int64_t op, int64_t lhs, int64_t rhs);

/* Whether a call fits; fills `symbols`. */
FxaCode fxa_contract_check(const Contract *contract, const Value *leaves, int64_t *symbols, FxaError *error);

#endif
