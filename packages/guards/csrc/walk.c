/* The walk over the tree: reads each value once, checks it, and remembers what only a changed dict could change. */
#include "native.h"

#include "dict_version.h"

static int passes(Node *node, PyObject *value, int unchanged, Run *run);

static int checks_pass(const Node *node, int from, int to, PyObject *value, Run *run) {
    for (int i = from; i < to; i++)
        if (!check_value(&node->checks[i], value)) return fails(run, node->checks[i].guard);
    return 1;
}

/* A size or stride wanted as a number only. 0: not readable this way. */
int number_child(Node *child, PyObject *tensor, Run *run) {
    Slot *slot = &run->slots[child->slot];
    return slot->has_number =
               tensor_extent(tensor, child->access == ACCESS_STRIDE, child->index, &slot->number);
}

/* Remember a value for which everything that lasts with it has been checked. */
static inline void commit(Node *node, const Seen *pending, Run *run) {
    if (pending->value == NULL || pending->n <= 0 || pending->n > SEEN_DICTS) return;
    node->seen = *pending;
    run->changed = 1;
}

int child_passes(Node *child, PyObject *parent, Run *run) {
    if (child->number_only && number_child(child, parent, run)) return 1;
    int unchanged = 0;
    Seen pending;
    pending.value = NULL;
    PyObject *value = fetch_child(child, parent, &unchanged, &pending);
    if (value == NULL) return 0;
    int result = passes(child, value, unchanged, run);
    if (result && !unchanged) commit(child, &pending, run);
    Py_DECREF(value);
    return result;
}

static int passes(Node *node, PyObject *value, int unchanged, Run *run) {
    if (!checks_pass(node, 0, node->n_live_checks, value, run)) return 0;
    if (!unchanged && !checks_pass(node, node->n_live_checks, node->n_value_checks, value, run)) return 0;
    uint64_t version = PyDict_CheckExact(value) ? dict_version(value) : 0;
    int settled = version != 0 && node->ok_dict == value && node->ok_version == version;
    if (!settled && !checks_pass(node, node->n_value_checks, node->n_checks, value, run)) return 0;
    int count = settled ? node->n_live_children : node->n_children;
    for (int i = 0; i < count; i++)
        if (!child_passes(&node->children[i], value, run)) return 0;
    if (version != 0 && !settled) {
        node->ok_dict = value;
        node->ok_version = version;
        run->changed = 1;
    }
    if (node->slot >= 0) Py_XSETREF(run->slots[node->slot].obj, Py_NewRef(value));
    return 1;
}

int root_passes(Node *root, const Roots *roots, Run *run) {
    int unchanged = 0;
    Seen pending;
    pending.value = NULL;
    PyObject *value = fetch_root(root, roots, &unchanged, &pending);
    if (value == NULL) return 0;
    int changed = run->changed;
    int result = passes(root, value, unchanged, run);
    if (!root_is_lasting(root, value)) run->changed = changed; /* walked at every call, plan or no plan: **kwargs is new */
    if (result && !unchanged && pending.value != NULL && pending.n == 1) root->seen = pending;
    Py_DECREF(value);
    return result;
}
