#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "contract.h"

enum { MOST = 1 << 20, DEEPEST = 64 };

/* What is left of the words. After the first fault `good` is false and every read gives 0. */
typedef struct {
    const int64_t *next, *end;
    bool good;
} Cursor;

static int64_t word(Cursor *at) {
    if (!at->good || at->next == at->end) {
        at->good = false;
        return 0;
    }
    return *at->next++;
}

static int64_t within(Cursor *at, int64_t low, int64_t high) {
    int64_t value = word(at);
    if (value < low || value > high) at->good = false;
    return at->good ? value : low;
}

static void *several(Cursor *at, int64_t count, size_t size) {
    void *made = at->good ? calloc(count ? count : 1, size) : NULL;
    if (!made) at->good = false;
    return made;
}

/* A count, and zeroed room for as many records of `size` bytes. */
static void *counted(Cursor *at, int64_t *count, size_t size) {
    int64_t found = within(at, 0, MOST);
    void *made = several(at, found, size);
    *count = made ? found : 0;
    return made;
}

static Expr expression(Cursor *at, int64_t symbols) {
    Expr made = {.length = within(at, 1, MOST)};
    if (!at->good || at->end - at->next < made.length) {
        at->good = false;
        return (Expr){0};
    }
    made.code = at->next;
    const int64_t *end = at->next + made.length;
    int64_t depth = 0;
    while (at->good && at->next < end) {
        int64_t op = within(at, 0, 7);
        if (op < 2) {
            int64_t value = word(at);
            if (op == 1 && (value < 0 || value >= symbols)) at->good = false;
            depth++;
        } else {
            depth--;
        }
        if (depth < 1 || depth > DEEPEST || at->next > end) at->good = false;
    }
    if (depth != 1) at->good = false;
    return made;
}

static void read_symbols(Cursor *at, Contract *contract) {
    contract->symbols = counted(at, &contract->symbol_count, sizeof(SymbolSource));
    for (int64_t i = 0; at->good && i < contract->symbol_count; i++) {
        SymbolSource *symbol = &contract->symbols[i];
        symbol->leaf = within(at, 0, MOST);
        symbol->dim = within(at, -1, 63);
        symbol->low = word(at);
        symbol->high = word(at);
    }
}

static void read_leaves(Cursor *at, Contract *contract) {
    contract->leaves = counted(at, &contract->leaf_count, sizeof(Leaf));
    for (int64_t i = 0; at->good && i < contract->leaf_count; i++) {
        Leaf *leaf = &contract->leaves[i];
        leaf->kind = within(at, LEAF_TENSOR, LEAF_ANYTHING);
        if (leaf->kind != LEAF_TENSOR) continue;
        leaf->dtype = within(at, 0, 127);
        leaf->device = within(at, 0, 1);
        leaf->rank = within(at, 0, 64);
        leaf->layout = several(at, 2 * leaf->rank, sizeof(Expr));
        for (int64_t d = 0; at->good && d < 2 * leaf->rank; d++) {
            leaf->layout[d] = expression(at, contract->symbol_count);
        }
    }
    for (int64_t i = 0; at->good && i < contract->symbol_count; i++) {
        const SymbolSource *symbol = &contract->symbols[i];
        if (symbol->leaf >= contract->leaf_count) {
            at->good = false;
            break;
        }
        const Leaf *leaf = &contract->leaves[symbol->leaf];
        at->good = symbol->dim < 0 ? leaf->kind == LEAF_INTEGER : leaf->kind == LEAF_TENSOR && symbol->dim < leaf->rank;
    }
}

static void read_relations(Cursor *at, Contract *contract) {
    contract->relations = counted(at, &contract->relation_count, sizeof(Relation));
    for (int64_t i = 0; at->good && i < contract->relation_count; i++) {
        Relation *relation = &contract->relations[i];
        relation->op = within(at, 0, 3);
        relation->lhs = expression(at, contract->symbol_count);
        relation->rhs = expression(at, contract->symbol_count);
    }
}

static bool is_leaf(const Contract *contract, int64_t index, int64_t kind) {
    return index >= 0 && index < contract->leaf_count && contract->leaves[index].kind == kind;
}

static bool leads_somewhere(const Contract *contract, const Input *input) {
    switch (input->kind) {
        case INPUT_LEAF: return is_leaf(contract, input->index, LEAF_TENSOR);
        case INPUT_CONSTANT: return input->index >= 0 && input->index < contract->constant_count;
        case INPUT_SYMBOL: return input->index >= 0 && input->index < contract->symbol_count;
        case INPUT_FLOAT: return is_leaf(contract, input->index, LEAF_FLOAT);
    }
    return input->index == 0;
}

static void read_graph(Cursor *at, Contract *contract) {
    contract->inputs = counted(at, &contract->input_count, sizeof(Input));
    for (int64_t i = 0; at->good && i < contract->input_count; i++) {
        contract->inputs[i] = (Input){within(at, INPUT_LEAF, INPUT_FLOAT), word(at)};
    }
    contract->results = counted(at, &contract->result_count, sizeof(int64_t));
    for (int64_t i = 0; at->good && i < contract->result_count; i++) {
        contract->results[i] = within(at, RESULT_TENSOR, RESULT_NONE);
    }
    contract->writes = counted(at, &contract->write_count, sizeof(Write));
    for (int64_t i = 0; at->good && i < contract->write_count; i++) {
        Write *write = &contract->writes[i];
        write->kind = within(at, INPUT_LEAF, INPUT_CONSTANT);
        write->index = word(at);
        write->result = within(at, 0, contract->result_count - 1);
        if (at->good) at->good = contract->results[write->result] == RESULT_TENSOR;
    }
    contract->constant_count = within(at, 0, MOST);
    for (int64_t i = 0; at->good && i < contract->input_count; i++) {
        at->good = leads_somewhere(contract, &contract->inputs[i]);
    }
    for (int64_t i = 0; at->good && i < contract->write_count; i++) {
        Input target = {contract->writes[i].kind, contract->writes[i].index};
        at->good = leads_somewhere(contract, &target);
    }
}

static bool read_names(Contract *contract, const char *names) {
    int64_t count = contract->leaf_count + contract->symbol_count;
    contract->names = calloc(count + 1, sizeof(char *));
    for (int64_t i = 0; contract->names && i < count; i++) {
        const char *end = strchr(names, '\n');
        if (!end) return false;
        contract->names[i] = strndup(names, end - names);
        if (!contract->names[i]) return false;
        names = end + 1;
    }
    return contract->names && !*names;
}

FxaCode fxa_contract_read(Contract *contract, const int64_t *words, int64_t count, const char *names, FxaError *error) {
    memset(contract, 0, sizeof(*contract));
    contract->words = malloc((count + 1) * sizeof(int64_t));
    if (!contract->words) return fxa_fail(error, FXA_NO_MEMORY, "out of memory");
    memcpy(contract->words, words, count * sizeof(int64_t));
    Cursor at = {contract->words, contract->words + count, true};
    within(&at, 1, 1);
    read_symbols(&at, contract);
    read_leaves(&at, contract);
    read_relations(&at, contract);
    read_graph(&at, contract);
    if (!at.good || at.next != at.end || !read_names(contract, names)) {
        return fxa_fail(error, FXA_BAD_PROGRAM, "the contract of an entry point breaks its grammar");
    }
    return FXA_OK;
}

void fxa_contract_free(Contract *contract) {
    for (int64_t i = 0; contract->leaves && i < contract->leaf_count; i++) free(contract->leaves[i].layout);
    for (char **name = contract->names; name && *name; name++) free(*name);
    free(contract->names);
    free(contract->symbols);
    free(contract->leaves);
    free(contract->relations);
    free(contract->inputs);
    free(contract->results);
    free(contract->writes);
    free(contract->words);
    memset(contract, 0, sizeof(*contract));
}
