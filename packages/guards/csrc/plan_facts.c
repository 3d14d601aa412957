/* Making a plan: its arrays, which entry is about what, and how a fact about one value is noted. */
#include "plan_making.h"

#include "dict_version.h"

static int grown(void **items, int n, int *room, size_t size) {
    if (n < *room) return 1;
    int more = *room ? *room * 2 : 16;
    void *larger = PyMem_Realloc(*items, (size_t)more * size);
    if (larger == NULL) return 0;
    *items = larger;
    *room = more;
    return 1;
}

/* A place at the end of an array, zeroed; when memory is short a dummy, and the plan has failed. */
#define APPEND(plan, array, dummy) \
    (grown((void **)&(plan)->array.items, (plan)->array.n, &(plan)->array.room, sizeof *(plan)->array.items) \
         ? (memset(&(plan)->array.items[(plan)->array.n], 0, sizeof *(plan)->array.items), \
            &(plan)->array.items[(plan)->array.n++]) \
         : ((plan)->failed = 1, (dummy)))

Entry *add_entry(Plan *plan, EntryKind kind, PyObject *object, const void *what) {
    static Entry nowhere;
    Entry *entry = APPEND(plan, entries, &nowhere);
    entry->kind = kind;
    entry->object = object;
    entry->what = what;
    return entry;
}

void add_late(Plan *plan, Node *node, const Check *check, PyObject *object) {
    static Late nowhere;
    *APPEND(plan, late, &nowhere) = (Late){node, check, object};
}

void keep_object(Plan *plan, int32_t slot, PyObject *object) {
    static Kept nowhere;
    if (slot >= 0) *APPEND(plan, kept, &nowhere) = (Kept){slot, object};
}

/* --- which entry is about what: open addressing --- */

Place *place_of(Plan *plan, const void *pointer, int kind) {
    size_t mask = plan->known_size - 1;
    size_t at = (((uintptr_t)pointer >> 4) * 0x9E3779B97F4A7C15u >> 20) + (size_t)kind;
    for (at &= mask; plan->known[at].pointer != NULL; at = (at + 1) & mask)
        if (plan->known[at].pointer == pointer && plan->known[at].kind == kind) break;
    return &plan->known[at];
}

static int make_room(Plan *plan) {
    if (2 * (plan->n_known + 1) < plan->known_size) return 1;
    size_t old_size = plan->known_size;
    Place *old = plan->known;
    plan->known_size = old_size ? old_size * 4 : 256;
    plan->known = PyMem_Calloc(plan->known_size, sizeof(Place));
    if (plan->known == NULL) {
        plan->known = old;
        plan->known_size = old_size;
        return 0;
    }
    for (size_t i = 0; i < old_size; i++)
        if (old[i].pointer != NULL) *place_of(plan, old[i].pointer, old[i].kind) = old[i];
    PyMem_Free(old);
    return 1;
}

/* The index of the entry about `pointer`, or -1: then the next entry that is added is taken to be the one. */
int known_entry(Plan *plan, const void *pointer, EntryKind kind) {
    if (!make_room(plan)) {
        plan->failed = 1;
        return -1;
    }
    Place *place = place_of(plan, pointer, kind);
    if (place->pointer != NULL) return place->entry;
    *place = (Place){pointer, kind, plan->entries.n};
    plan->n_known++;
    return -1;
}

/* --- dicts --- */

enum { NOT_AGAIN = -1, FACTS_IN_TURN = 64 };

/* The dict keeps its version: returns the index of the entry that says so. An owner's entry may do it on the side. */
int add_dict(Plan *plan, PyObject *dict, uint64_t version) {
    int found = known_entry(plan, dict, DICT);
    if (found >= 0) {
        plan->entries.items[found].version = version;
        return found;
    }
    add_entry(plan, DICT, dict, NULL)->version = version;
    return plan->entries.n - 1;
}

/* What to look at again when the dict's version differs. */
void add_again(Plan *plan, int entry, Node *node, PyObject *value) {
    static Again nowhere;
    if (plan->failed || plan->entries.items[entry].again == NOT_AGAIN) return;
    *APPEND(plan, again, &nowhere) = (Again){node, value, plan->entries.items[entry].again};
    plan->entries.items[entry].again = plan->again.n;
}

void never_again(Plan *plan, int entry) {
    if (!plan->failed) plan->entries.items[entry].again = NOT_AGAIN;
}

/* Whether what was settled about a dict can be looked at again by its names alone. */
int is_simple(const Node *node, PyObject *dict) {
    for (int i = node->n_value_checks; i < node->n_checks; i++)
        if (!check_is_native(&node->checks[i], dict)) return 0;
    for (int i = node->n_live_children; i < node->n_children; i++)
        if (node->children[i].access != ACCESS_ITEM) return 0;
    return 1;
}

/* --- facts about single values --- */

static int32_t small_size(const Check *check) {
    return check->number >= 0 && check->number < INT32_MAX ? (int32_t)check->number : -1;
}

/* Facts equal to those of an earlier tensor are read from the same memory: a model's layers are alike. */
static const TensorFacts *shared_facts(const Plan *plan, const TensorFacts *facts) {
    for (int i = plan->tensors.n - 1, back = 0; i >= 0 && back < FACTS_IN_TURN; i--, back++)
        if (tensor_facts_equal(plan->tensors.items[i].facts, facts)) return plan->tensors.items[i].facts;
    return facts;
}

static void record_tensor(Plan *plan, const Check *check, PyObject *value) {
    static TensorFact nowhere;
    const TensorFacts *facts = shared_facts(plan, check->tensor);
    *APPEND(plan, tensors, &nowhere) = (TensorFact){value, facts, check->guard};
}

void record_check(Plan *plan, const Check *check, PyObject *value) {
    static TypeFact no_type;
    static SizeFact no_size;
    static OtherFact no_fact;
    if (check->op == CHECK_TENSOR && tensor_check_is_native(check->tensor))
        record_tensor(plan, check, value);
    else if (check->op == CHECK_TYPE_IS)
        *APPEND(plan, types, &no_type) = (TypeFact){value, (PyTypeObject *)check->obj, check->guard};
    else if (check->op == CHECK_LENGTH && check_is_native(check, value))
        *APPEND(plan, sizes, &no_size) = (SizeFact){value, small_size(check), check->guard};
    else if (check_is_native(check, value))
        *APPEND(plan, others, &no_fact) = (OtherFact){value, check};
    else
        add_late(plan, NULL, check, value);
}

/* As part of a block of entries, which stands or falls with it. */
void record_check_in_block(Plan *plan, const Check *check, PyObject *value) {
    if (check_is_native(check, value)) add_entry(plan, CHECK, value, check)->guard = check->guard;
    else add_late(plan, NULL, check, value);
}

void plan_free(Plan *plan) {
    if (plan == NULL) return;
    PyMem_Free(plan->entries.items);
    PyMem_Free(plan->again.items);
    PyMem_Free(plan->sizes.items);
    PyMem_Free(plan->types.items);
    PyMem_Free(plan->tensors.items);
    PyMem_Free(plan->others.items);
    PyMem_Free(plan->late.items);
    PyMem_Free(plan->kept.items);
    PyMem_Free(plan->known);
    PyMem_Free(plan->skip);
    PyMem_Free(plan);
}
