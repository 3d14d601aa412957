/* Making a plan: the same walk as walk.c, noting what it relies on instead of checking it. See plan.h. */
#include "plan_making.h"

#include "dict_version.h"

static void record_child(Plan *plan, Node *child, PyObject *value, int fresh);
static void record_known(Plan *plan, Node *node);

/* The object still has its type, its type's version and its dict. 0: not expressible. */
static int record_owner(Plan *plan, const Node *child, PyObject *value, PyObject **dict) {
    PyObject **place = instance_dict_place(value);
    if (place == NULL || *place == NULL || !PyDict_CheckExact(*place)) return 0;
    if (Py_TYPE(value) != child->type || type_version(child->type) != child->type_version) return 0;
    *dict = *place;
    if (known_entry(plan, child->type, CLASS) < 0)
        add_entry(plan, CLASS, (PyObject *)child->type, NULL)->version = child->type_version;
    if (known_entry(plan, value, OWNER) >= 0) return 1;
    known_entry(plan, *dict, DICT);
    Entry *entry = add_entry(plan, OWNER, value, child->type);
    entry->place = place;
    entry->dict = *dict;
    return 1;
}

/* Whether the plan takes a tuple's content over as long as the tuple is sure to be the same: the same address is not
 * enough, a new tuple may have it. */
static int is_pinned(const Node *node, PyObject *value) {
    return PyTuple_CheckExact(value) && (node->n_children > 0 || node->n_checks > node->n_value_checks);
}

/* The child's value is what it read before through dicts, the first of which is `first`. */
static int record_seen(Plan *plan, Node *child, PyObject *first) {
    const Seen *seen = &child->seen;
    if (seen->value == NULL || seen->n == 0 || seen->dict[0] != first) return 0;
    for (int i = 0; i < seen->n; i++)
        if (dict_version(seen->dict[i]) != seen->version[i]) return 0;
    int again = seen->n == 1 && child->access != ACCESS_DICT_KEY && !is_pinned(child, seen->value);
    for (int i = 0; i < seen->n; i++) {
        int entry = add_dict(plan, seen->dict[i], seen->version[i]);
        if (again) add_again(plan, entry, child, seen->value);
        else never_again(plan, entry);
    }
    record_value(plan, child, seen->value, 0);
    return 1;
}

/* A class attribute, found on the class itself or through an instance that does not hide it. */
static int record_class_value(Plan *plan, Node *child, PyObject *value) {
    PyObject *dict;
    if (child->attr_mode == ATTR_OF_CLASS) {
        if ((PyObject *)child->type != value || type_version(child->type) != child->type_version) return 0;
        if (known_entry(plan, value, CLASS) < 0) add_entry(plan, CLASS, value, NULL)->version = child->type_version;
    } else {
        if (!record_owner(plan, child, value, &dict)) return 0;
        if (!PyUnicode_CheckExact(child->key) || _PyDict_GetItem_KnownHash(dict, child->key, child->hash) != NULL) return 0;
        uint64_t version = dict_version(dict);
        if (version == 0) return 0;
        never_again(plan, add_dict(plan, dict, version));
    }
    record_value(plan, child, child->class_value, 1);
    return 1;
}

/* --- namespaces: only the names that matter must stay as they are --- */

void names_begin(Plan *plan, Names *names, PyObject *dict) {
    names->dict = dict;
    names->n = 0;
    names->block = plan->entries.n;
    add_entry(plan, NAMES, dict, NULL)->version = dict_version(dict);
}

/* What hangs below the names comes after the block, since it is looked at every time. */
void names_end(Plan *plan, Names *names) {
    if (plan->failed) return;
    int size = plan->entries.n - names->block - 1;
    if (size == 0) plan->entries.n--;
    else plan->entries.items[names->block].guard = size;
    for (int i = 0; i < names->n; i++) record_value(plan, names->nodes[i], names->nodes[i]->seen.value, 0);
}

/* The node's value is what its dict held under its name when it was checked. 0: that is not known. */
int names_add(Plan *plan, Names *names, Node *node) {
    const Seen *seen = &node->seen;
    if (seen->value == NULL || seen->n != 1 || seen->dict[0] != names->dict) return 0;
    if (seen->version[0] != dict_version(names->dict) || is_pinned(node, seen->value)) return 0;
    if (names->n == (int)(sizeof names->nodes / sizeof *names->nodes)) {
        names_end(plan, names);
        names_begin(plan, names, names->dict);
    }
    add_entry(plan, ITEM_IS, seen->value, node)->dict = names->dict;
    for (int i = node->n_live_checks; i < node->n_value_checks; i++)
        record_check_in_block(plan, &node->checks[i], seen->value);
    names->nodes[names->n++] = node;
    return 1;
}

static int is_about_a_key(const Check *check) {
    return check->op == CHECK_KEY_ABSENT || check->op == CHECK_KEY_PRESENT || check->op == CHECK_DICT_ENTRIES;
}

int is_about_names(const Node *node, PyObject *dict) {
    if (node->slot >= 0 || !PyDict_CheckExact(dict)) return 0;
    for (int i = 0; i < node->n_checks; i++)
        if (!is_about_a_key(&node->checks[i]) || !check_is_native(&node->checks[i], dict)) return 0;
    for (int i = 0; i < node->n_children; i++)
        if (node->children[i].access != ACCESS_ITEM) return 0;
    return 1;
}

/* A node whose value is a namespace's dict: its checks and children join the block. */
void names_add_all(Plan *plan, Names *names, Node *node) {
    for (int i = 0; i < node->n_checks; i++) record_check_in_block(plan, &node->checks[i], names->dict);
    for (int i = 0; i < node->n_children; i++)
        if (!names_add(plan, names, &node->children[i])) add_late(plan, &node->children[i], NULL, names->dict);
}

/* What hangs below a Python module. */
static void record_module_children(Plan *plan, Node *node, PyObject *module) {
    Names names;
    PyObject *dict = PyModule_GetDict(module);
    add_entry(plan, MODULE_HAS, module, NULL)->dict = dict;
    names_begin(plan, &names, dict);
    for (int i = 0; i < node->n_children; i++) {
        Node *child = &node->children[i];
        if (child->access == ACCESS_KNOWN) continue;
        if (child->access == ACCESS_INSTANCE_DICT && is_about_names(child, dict)) names_add_all(plan, &names, child);
        else if (child->access != ACCESS_ATTR || !names_add(plan, &names, child)) add_late(plan, child, NULL, module);
    }
    names_end(plan, &names);
    for (int i = 0; i < node->n_children; i++)
        if (node->children[i].access == ACCESS_KNOWN) record_known(plan, &node->children[i]);
}

static int is_about_a_class(const Check *check) {
    return check->op == CHECK_CLASS_LOOKUP || check->op == CHECK_CLASS_BASES;
}

/* An object that the node holds. What is looked up in a class stays while the class and its bases do. */
static void record_known(Plan *plan, Node *node) {
    PyObject *value = node->key;
    if (PyDict_CheckExact(value) && is_about_names(node, value)) {
        Names names;
        names_begin(plan, &names, value);
        names_add_all(plan, &names, node);
        names_end(plan, &names);
        return;
    }
    int block = plan->entries.n, size = 0;
    unsigned int version = PyType_Check(value) ? type_version((PyTypeObject *)value) : 0;
    if (version != 0) add_entry(plan, LOOKUPS, value, NULL)->version = version;
    for (int i = 0; i < node->n_checks && version != 0; i++)
        if (is_about_a_class(&node->checks[i])) record_check_in_block(plan, &node->checks[i], value), size++;
    if (plan->failed) return;
    if (version != 0 && size == 0) plan->entries.n--;
    if (size > 0) plan->entries.items[block].guard = size;
    for (int i = 0; i < node->n_checks; i++)
        if (version == 0 || !is_about_a_class(&node->checks[i])) record_check(plan, &node->checks[i], value);
    if (PyModule_CheckExact(value)) record_module_children(plan, node, value);
    else
        for (int i = 0; i < node->n_children; i++) record_child(plan, &node->children[i], value, 0);
    keep_object(plan, node->slot, value);
}

/* An item of a tuple stays with it; one of a list is looked at. 0: neither. */
static int record_item(Plan *plan, Node *child, PyObject *value, int fresh) {
    Py_ssize_t index = child->index;
    if (index == INT32_MIN || !(PyTuple_CheckExact(value) || PyList_CheckExact(value))) return 0;
    if (index < 0) index += Py_SIZE(value);
    if (index < 0 || index >= Py_SIZE(value)) return 0;
    if (PyTuple_CheckExact(value)) {
        if (!fresh) record_value(plan, child, PyTuple_GET_ITEM(value, index), 0);
        return !fresh;
    }
    PyObject *item = PyList_GET_ITEM(value, index);
    add_entry(plan, ITEM_AT, item, value)->guard = child->index;
    record_value(plan, child, item, 1);
    return 1;
}

static void record_child(Plan *plan, Node *child, PyObject *value, int fresh) {
    PyObject *dict;
    int64_t number;
    switch ((Access)child->access) {
    case ACCESS_KNOWN: record_known(plan, child); return;
    case ACCESS_ITEM:
        if (record_item(plan, child, value, fresh)) return;
        /* fall through */
    case ACCESS_DICT_KEY:
        if (reads_as_dict(value) && record_seen(plan, child, value)) return;
        break;
    case ACCESS_INSTANCE_DICT:
        if (child->attr_mode != ATTR_INSTANCE || child->type == NULL || !record_owner(plan, child, value, &dict)) break;
        record_value(plan, child, dict, 0);
        return;
    case ACCESS_ATTR:
        if (child->attr_mode <= ATTR_SLOW || child->type == NULL) break;
        if (child->attr_mode >= ATTR_CLASS && child->seen.value == NULL) {
            if (record_class_value(plan, child, value)) return;
            break;
        }
        if (child->attr_mode == ATTR_OF_CLASS) break;
        if (!record_owner(plan, child, value, &dict) || !record_seen(plan, child, dict)) break;
        return;
    case ACCESS_TYPE:
        add_entry(plan, HAS_TYPE, value, Py_TYPE(value));
        record_value(plan, child, (PyObject *)Py_TYPE(value), 1);
        return;
    case ACCESS_SIZE:
    case ACCESS_STRIDE:
        if (!child->number_only || !tensor_extent(value, 0, 0, &number)) break;
        add_entry(plan, NUMBER, value, child);
        return;
    default: break;
    }
    add_late(plan, child, NULL, value);
}

/* A tuple's length and what it holds last with it, as a constant's value does. */
static int lasts(const Check *check, PyObject *value) {
    return check->lasting == LASTS_WITH_VALUE || (check->op == CHECK_LENGTH && PyTuple_CheckExact(value));
}

/* `fresh`: the value is not known to have been alive since it was last checked, so nothing about it is taken over. */
void record_value(Plan *plan, Node *node, PyObject *value, int fresh) {
    int is_dict = PyDict_CheckExact(value), settled = is_dict && node->ok_dict == value;
    if (is_dict) settled = settled && node->ok_version == dict_version(value);
    if (settled && (node->n_children > node->n_live_children || node->n_checks > node->n_value_checks)) {
        int entry = add_dict(plan, value, node->ok_version);
        if (is_simple(node, value)) add_again(plan, entry, node, NULL);
        else never_again(plan, entry);
    }
    int until = settled ? node->n_value_checks : node->n_checks;
    for (int i = 0; i < until; i++)
        if (fresh || !lasts(&node->checks[i], value)) record_check(plan, &node->checks[i], value);
    int count = settled ? node->n_live_children : node->n_children;
    if (PyModule_CheckExact(value)) record_module_children(plan, node, value);
    else
        for (int i = 0; i < count; i++) record_child(plan, &node->children[i], value, fresh);
    keep_object(plan, node->slot, value);
}
