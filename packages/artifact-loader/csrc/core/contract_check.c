#include <stdio.h>
#include <string.h>

#include "contract.h"

static const char *const DTYPES[] = {
    "uint8",     "int8",       "int16",       "int32",  "int64",   "float16", "float32",  "float64",
    "complex32", "complex64",  "complex128",  "bool",   "qint8",   "quint8",  "qint32",   "bfloat16",
    "quint4x2",  "quint2x4",   "bits1x8",     "bits2x4", "bits4x2", "bits8",  "bits16",   "float8_e5m2",
    "float8_e4m3fn", "float8_e5m2fnuz", "float8_e4m3fnuz", "uint16", "uint32", "uint64",
};
static const uint8_t ELEMENT_BYTES[] = {
    1, 1, 2, 4, 8, 2, 4, 8, 4, 8, 16, 1, 1, 1, 4, 2, 1, 1, 1, 1, 1, 1, 2, 1, 1, 1, 1, 2, 4, 8,
};
static const char *const OPERATORS[] = {"==", "!=", "<", "<="};

const char *fxa_dtype_name(int64_t number) {
    return number >= 0 && number < (int64_t)(sizeof(DTYPES) / sizeof(DTYPES[0])) ? DTYPES[number] : "of another dtype";
}

static int64_t floordiv(int64_t a, int64_t b) {
    if (b == 0 || (b == -1 && a == INT64_MIN)) return 0;
    int64_t q = a / b;
    return q - (a % b != 0 && (a < 0) != (b < 0));
}

int64_t fxa_apply(int64_t op, int64_t a, int64_t b) {
    switch (op) {
        case 2: return (int64_t)((uint64_t)a + (uint64_t)b);
        case 3: return (int64_t)((uint64_t)a * (uint64_t)b);
        case 4: return floordiv(a, b);
        case 5: return (int64_t)((uint64_t)a - (uint64_t)floordiv(a, b) * (uint64_t)b);
        case 6: return a < b ? a : b;
    }
    return a > b ? a : b;
}

static int64_t value_of(const Expr *expr, const int64_t *symbols) {
    if (expr->length == 2) return expr->code[0] ? symbols[expr->code[1]] : expr->code[1];
    int64_t stack[64], depth = 0;
    for (const int64_t *at = expr->code, *end = at + expr->length; at < end; at++) {
        if (*at < 2) {
            stack[depth++] = at[0] ? symbols[at[1]] : at[1];
            at++;
        } else {
            depth--;
            stack[depth - 1] = fxa_apply(*at, stack[depth - 1], stack[depth]);
        }
    }
    return stack[0];
}

/* "; here n=3 (size 0 of 'x')" for the symbols of an expression. */
static void append_symbols(const Contract *contract, const Expr *expr, const int64_t *symbols, FxaError *error) {
    size_t used = strlen(error->text);
    const char *before = "; here ";
    for (int64_t i = 0; i < expr->length && used < sizeof(error->text); i++) {
        if (expr->code[i] >= 2) continue;
        int64_t is_symbol = expr->code[i++], index = expr->code[i];
        if (!is_symbol) continue;
        const SymbolSource *symbol = &contract->symbols[index];
        const char *name = contract->names[contract->leaf_count + index], *leaf = contract->names[symbol->leaf];
        size_t room = sizeof(error->text) - used;
        int written = symbol->dim < 0
                          ? snprintf(error->text + used, room, "%s%s=%lld (%s)", before, name, (long long)symbols[index], leaf)
                          : snprintf(error->text + used, room, "%s%s=%lld (size %lld of %s)", before, name,
                                     (long long)symbols[index], (long long)symbol->dim, leaf);
        if (written > 0) used += written;
        before = ", ";
    }
}

enum { SMALLEST = 2 }; /* sizes of 0 and 1 broadcast otherwise, and are never part of a range */

/* What to do about a size that the program has fixed, in the words of whoever makes artifacts. */
static FxaCode advise_naming(const char *name, int64_t dim, int64_t size, int64_t wanted, FxaError *error) {
    if (size < SMALLEST) {
        return fxa_advise(error, "pass %lld there; a size of %lld needs an entry point of its own, made from such an input",
                          (long long)wanted, (long long)size);
    }
    return fxa_advise(error,
                      "pass %lld there, or make the artifact again%s with dynamic_shapes={\"%s\": {%lld: \"dim_%lld\"}} "
                      "(any name; sizes of one name are equal)",
                      (long long)wanted, wanted < SMALLEST ? ", from an input that has at least 2 there," : "", name, (long long)dim,
                      (long long)dim);
}

/* What to do about a size outside of the bounds of its name. */
static FxaCode advise_bounds(const SymbolSource *symbol, const char *name, const char *leaf, int64_t size, FxaError *error) {
    bool is_number = symbol->dim < 0;
    if (size < SMALLEST && is_number) {
        return fxa_advise(error, "0 and 1 are in no range of sizes; each needs an entry point of its own, made with it and without a name for %s",
                          leaf);
    }
    if (size < SMALLEST) {
        return fxa_advise(error,
                          "sizes of 0 and 1 are in no range; they need an entry point of their own, made from such an input "
                          "without a name for dimension %lld of %s",
                          (long long)symbol->dim, leaf);
    }
    int64_t low = size < symbol->low ? size : symbol->low;
    char most[40] = "";
    if (symbol->high >= 0) snprintf(most, sizeof(most), ", max=%lld", (long long)(size > symbol->high ? size : symbol->high));
    if (is_number) {
        return fxa_advise(error, "make the artifact again with dynamic_shapes={\"%s\": fxstack.Dim(\"%s\", min=%lld%s)}", leaf, name,
                          (long long)low, most);
    }
    return fxa_advise(error, "make the artifact again with dynamic_shapes={\"%s\": {%lld: fxstack.Dim(\"%s\", min=%lld%s)}}", leaf,
                      (long long)symbol->dim, name, (long long)low, most);
}

static bool is_constant(const Expr *expr) { return expr->length == 2 && !expr->code[0]; }

/* What is asked of a tensor before its sizes are looked at. */
static FxaCode check_kind(const Leaf *leaf, const char *name, Handle tensor, FxaError *error) {
    int32_t layout, device, number = 0, dtype;
    int64_t rank;
    const TorchFunctions *torch = &torch_functions;
    if (torch->get_layout(tensor, &layout) || layout != torch->layout_strided()) {
        return fxa_fail(error, FXA_LAYOUT, "%s is not a strided tensor; pass .to_dense() of it", name);
    }
    bool is_there = !torch->get_device_type(tensor, &device) && device == leaf->device;
    if (!is_there || (device && (torch->get_device_index(tensor, &number) || number))) {
        return leaf->device
                   ? fxa_fail(error, FXA_DEVICE, "%s is on another device; the artifact runs on GPU 0: pass .cuda(0) of it", name)
                   : fxa_fail(error, FXA_DEVICE, "%s is on another device; the artifact runs on the CPU: pass .cpu() of it", name);
    }
    if (torch->get_dtype(tensor, &dtype) || dtype != leaf->dtype) {
        return fxa_fail(error, FXA_DTYPE, "%s has dtype %s, the artifact takes %s", name, fxa_dtype_name(dtype),
                        fxa_dtype_name(leaf->dtype));
    }
    if (torch->is_neg(tensor) || torch->is_conj(tensor)) {
        return fxa_fail(error, FXA_LAYOUT, "%s is a lazy conjugate or negative; pass .resolve_conj().resolve_neg() of it", name);
    }
    if (torch->get_dim(tensor, &rank) || rank != leaf->rank) {
        fxa_fail(error, FXA_SIZE, "%s has %lld dimension%s, the artifact takes %lld", name, (long long)rank, rank == 1 ? "" : "s",
                 (long long)leaf->rank);
        return fxa_advise(error, "pass a tensor of %lld dimensions; another number of them needs an entry point of its own",
                          (long long)leaf->rank);
    }
    if (torch->grad_mode_is_enabled() && torch->requires_grad(*(void **)tensor)) {
        return fxa_fail(error, FXA_HISTORY,
                        "%s requires grad, and this entry point records nothing; call it under torch.no_grad(), or make a "
                        "training artifact", name);
    }
    return FXA_OK;
}

static FxaCode check_layout(const Contract *contract, int64_t index, Handle tensor, const int64_t *symbols, FxaError *error) {
    const Leaf *leaf = &contract->leaves[index];
    const char *name = contract->names[index];
    int64_t *sizes, *strides, wanted;
    if (torch_functions.get_sizes(tensor, &sizes) || torch_functions.get_strides(tensor, &strides)) {
        return fxa_fail(error, FXA_TORCH, "%s", fxa_torch_says());
    }
    bool is_empty = false;
    for (int64_t d = 0; d < leaf->rank; d++) {
        is_empty |= sizes[d] == 0;
        if (sizes[d] == (wanted = value_of(&leaf->layout[d], symbols))) continue;
        fxa_fail(error, FXA_SIZE, "%s has size %lld in dimension %lld, the artifact takes %lld", name, (long long)sizes[d],
                 (long long)d, (long long)wanted);
        append_symbols(contract, &leaf->layout[d], symbols, error);
        return is_constant(&leaf->layout[d]) ? advise_naming(name, d, sizes[d], wanted, error) : FXA_SIZE;
    }
    for (int64_t d = 0; d < leaf->rank && !is_empty; d++) {
        if (sizes[d] == 1 || strides[d] == (wanted = value_of(&leaf->layout[leaf->rank + d], symbols))) continue;
        fxa_fail(error, FXA_STRIDE,
                 "%s has stride %lld in dimension %lld, the artifact takes %lld (.contiguous() or .clone() may help)", name,
                 (long long)strides[d], (long long)d, (long long)wanted);
        append_symbols(contract, &leaf->layout[leaf->rank + d], symbols, error);
        return FXA_STRIDE;
    }
    return FXA_OK;
}

static FxaCode read_symbol(const Contract *contract, int64_t index, const Value *leaves, int64_t *value, FxaError *error) {
    const SymbolSource *symbol = &contract->symbols[index];
    const char *name = contract->names[contract->leaf_count + index], *leaf = contract->names[symbol->leaf];
    if (symbol->dim < 0) {
        *value = leaves[symbol->leaf].number;
    } else {
        int64_t *sizes;
        if (torch_functions.get_sizes(leaves[symbol->leaf].tensor, &sizes)) {
            return fxa_fail(error, FXA_TORCH, "%s", fxa_torch_says());
        }
        *value = sizes[symbol->dim];
    }
    if (*value >= symbol->low && (symbol->high < 0 || *value <= symbol->high)) return FXA_OK;
    char place[64] = "is";
    if (symbol->dim >= 0) snprintf(place, sizeof(place), "has in dimension %lld the size", (long long)symbol->dim);
    if (symbol->high < 0) {
        fxa_fail(error, FXA_SIZE, "%s %s %lld, the artifact takes at least %lld (%s)", leaf, place, (long long)*value,
                 (long long)symbol->low, name);
    } else {
        fxa_fail(error, FXA_SIZE, "%s %s %lld, the artifact takes %lld to %lld (%s)", leaf, place, (long long)*value,
                 (long long)symbol->low, (long long)symbol->high, name);
    }
    return advise_bounds(symbol, name, leaf, *value, error);
}

static FxaCode check_relation(const Contract *contract, const Relation *relation, const int64_t *symbols, FxaError *error) {
    int64_t lhs = value_of(&relation->lhs, symbols), rhs = value_of(&relation->rhs, symbols);
    bool holds = relation->op == 0   ? lhs == rhs
                 : relation->op == 1 ? lhs != rhs
                 : relation->op == 2 ? lhs < rhs
                                     : lhs <= rhs;
    if (holds) return FXA_OK;
    fxa_fail(error, FXA_RELATION, "sizes must fit each other: %lld %s %lld does not hold", (long long)lhs,
             OPERATORS[relation->op], (long long)rhs);
    append_symbols(contract, &relation->lhs, symbols, error);
    append_symbols(contract, &relation->rhs, symbols, error);
    return FXA_RELATION;
}

/* Memory that a tensor may touch: [begin, end). */
static bool extent(Handle tensor, char **begin, char **end) {
    int64_t rank, *sizes, *strides, span = 1;
    int32_t dtype;
    if (torch_functions.get_dtype(tensor, &dtype) || torch_functions.get_dim(tensor, &rank) || torch_functions.get_sizes(tensor, &sizes) ||
        torch_functions.get_strides(tensor, &strides) || torch_functions.get_data_ptr(tensor, (void **)begin)) {
        return false;
    }
    for (int64_t d = 0; d < rank; d++) {
        if (sizes[d] == 0) span = 0;
        if (span) span += (sizes[d] - 1) * strides[d];
    }
    bool is_known = dtype >= 0 && dtype < (int32_t)sizeof(ELEMENT_BYTES);
    *end = *begin + span * (is_known ? ELEMENT_BYTES[dtype] : 16); /* no element is larger */
    return true;
}

/* What is written may share memory with nothing else that is passed. */
static FxaCode check_overlaps(const Contract *contract, const Value *leaves, FxaError *error) {
    for (int64_t w = 0; w < contract->write_count; w++) {
        int64_t written = contract->writes[w].index;
        char *begin, *end, *other_begin, *other_end;
        if (contract->writes[w].kind != INPUT_LEAF || !extent(leaves[written].tensor, &begin, &end)) continue;
        for (int64_t i = 0; i < contract->leaf_count; i++) {
            if (i == written || contract->leaves[i].kind != LEAF_TENSOR) continue;
            if (!extent(leaves[i].tensor, &other_begin, &other_end)) continue;
            if (begin < other_end && other_begin < end) {
                return fxa_fail(error, FXA_OVERLAP, "%s is written and may share memory with %s; pass a copy (.clone())",
                                contract->names[written], contract->names[i]);
            }
        }
    }
    return FXA_OK;
}

FxaCode fxa_contract_check(const Contract *contract, const Value *leaves, int64_t *symbols, FxaError *error) {
    FxaCode code;
    for (int64_t i = 0; i < contract->leaf_count; i++) {
        if (contract->leaves[i].kind != LEAF_TENSOR) continue;
        if ((code = check_kind(&contract->leaves[i], contract->names[i], leaves[i].tensor, error))) return code;
    }
    for (int64_t i = 0; i < contract->symbol_count; i++) {
        if ((code = read_symbol(contract, i, leaves, &symbols[i], error))) return code;
    }
    for (int64_t i = 0; i < contract->leaf_count; i++) {
        if (contract->leaves[i].kind != LEAF_TENSOR) continue;
        if ((code = check_layout(contract, i, leaves[i].tensor, symbols, error))) return code;
    }
    for (int64_t i = 0; i < contract->relation_count; i++) {
        if ((code = check_relation(contract, &contract->relations[i], symbols, error))) return code;
    }
    return contract->write_count ? check_overlaps(contract, leaves, error) : FXA_OK;
}
