/* What each check asks of a value, or of several. A check returns 1, or 0 perhaps with an exception set. */
#include "native.h"

/* --- constants: the same rules as fx_guards/kinds/constants.py --- */

static int floats_equal(double a, double b) {
    if (a != a || b != b) return a != a && b != b;
    return memcmp(&a, &b, sizeof a) == 0;
}

static int tuples_equal(PyObject *expected, PyObject *value) {
    Py_ssize_t size = PyTuple_GET_SIZE(expected);
    if (PyTuple_GET_SIZE(value) != size) return 0;
    for (Py_ssize_t i = 0; i < size; i++)
        if (!constants_equal(PyTuple_GET_ITEM(expected, i), PyTuple_GET_ITEM(value, i))) return 0;
    return 1;
}

static int slices_equal(PySliceObject *a, PySliceObject *b) {
    return constants_equal(a->start, b->start) && constants_equal(a->stop, b->stop) && constants_equal(a->step, b->step);
}

static int truly_equal(PyObject *expected, PyObject *value) {
    int result = PyObject_RichCompareBool(expected, value, Py_EQ);
    if (result < 0) PyErr_Clear();
    return result == 1;
}

int constants_equal(PyObject *expected, PyObject *value) {
    PyTypeObject *type = Py_TYPE(expected);
    if (Py_TYPE(value) != type) return 0;
    if (expected == value) return 1;
    if (type == &PyBool_Type || expected == Py_None || expected == Py_Ellipsis || expected == Py_NotImplemented) return 0;
    if (type == &PyFloat_Type) return floats_equal(PyFloat_AS_DOUBLE(expected), PyFloat_AS_DOUBLE(value));
    if (type == &PyComplex_Type) {
        Py_complex a = PyComplex_AsCComplex(expected), b = PyComplex_AsCComplex(value);
        return floats_equal(a.real, b.real) && floats_equal(a.imag, b.imag);
    }
    if (type == &PyTuple_Type) return tuples_equal(expected, value);
    if (type == &PySlice_Type) return slices_equal((PySliceObject *)expected, (PySliceObject *)value);
    return truly_equal(expected, value);
}

/* --- containers --- */

static int length_is(PyObject *value, int64_t expected) {
    Py_ssize_t length;
    if (PyTuple_CheckExact(value)) length = PyTuple_GET_SIZE(value);
    else if (PyList_CheckExact(value)) length = PyList_GET_SIZE(value);
    else if (PyDict_CheckExact(value) || PyODict_CheckExact(value)) length = PyDict_GET_SIZE(value);
    else length = PyObject_Size(value);
    return length == (Py_ssize_t)expected;
}

/* An OrderedDict's own order, which is that of its dict where it has one key. */
static int ordered_keys_are(PyObject *keys, PyObject *value) {
    PyObject *iterator = PyODict_Type.tp_iter(value), *key;
    Py_ssize_t i = 0;
    int same = iterator != NULL;
    while (same && (key = PyIter_Next(iterator)) != NULL) {
        same = i < PyTuple_GET_SIZE(keys) && constants_equal(PyTuple_GET_ITEM(keys, i), key);
        Py_DECREF(key);
        i++;
    }
    Py_XDECREF(iterator);
    if (PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    return same && i == PyTuple_GET_SIZE(keys);
}

/* `check->obj` is (keys, holds): a dict and an OrderedDict are walked here, any other goes to the record. */
static int dict_keys_are(const Check *check, PyObject *value) {
    PyObject *keys = PyTuple_GET_ITEM(check->obj, 0), *found;
    if (!PyDict_CheckExact(value) && !PyODict_CheckExact(value)) {
        PyObject *answer = PyObject_CallOneArg(PyTuple_GET_ITEM(check->obj, 1), value);
        int holds = answer == Py_True;
        Py_XDECREF(answer);
        return holds;
    }
    Py_ssize_t position = 0, i = 0;
    if (PyDict_GET_SIZE(value) != PyTuple_GET_SIZE(keys)) return 0;
    if (PyODict_CheckExact(value) && PyTuple_GET_SIZE(keys) > 1) return ordered_keys_are(keys, value);
    while (PyDict_Next(value, &position, &found, NULL)) {
        if (i >= PyTuple_GET_SIZE(keys)) return 0;
        PyObject *key = Py_NewRef(found);
        int same = constants_equal(PyTuple_GET_ITEM(keys, i++), key);
        Py_DECREF(key);
        if (!same) return 0;
    }
    return i == PyTuple_GET_SIZE(keys);
}

static int has_key(PyObject *value, PyObject *key, int wanted) {
    return PyDict_Check(value) && PyDict_Contains(value, key) == wanted;
}

/* `expected`: a tuple of (name, object). */
static int entries_are(PyObject *expected, PyObject *value) {
    if (!PyDict_Check(value)) return 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(expected); i++) {
        PyObject *pair = PyTuple_GET_ITEM(expected, i);
        if (PyDict_GetItemWithError(value, PyTuple_GET_ITEM(pair, 0)) != PyTuple_GET_ITEM(pair, 1)) return 0;
    }
    return 1;
}

static int has_attribute(PyObject *value, PyObject *name, int wanted) {
    PyObject *found = PyObject_GetAttr(value, name);
    if (found != NULL) {
        Py_DECREF(found);
        return wanted;
    }
    int absent = PyErr_ExceptionMatches(PyExc_AttributeError);
    PyErr_Clear();
    return !wanted && absent;
}

/* --- classes and functions: the same rules as fx_guards/kinds/definitions.py --- */

enum { ANY_OF_ITS_TYPE = 1, NOTHING = 2 };

/* `check->obj` is (name, expected): that object, one of that type (number 1), or nothing at all (2). */
static int class_has(const Check *check, PyObject *value) {
    if (!PyType_Check(value)) return 0;
    PyObject *expected = PyTuple_GET_ITEM(check->obj, 1);
    PyObject *found = _PyType_Lookup((PyTypeObject *)value, PyTuple_GET_ITEM(check->obj, 0));
    if (found == NULL || check->number == NOTHING) return found == NULL && check->number == NOTHING;
    return check->number == ANY_OF_ITS_TYPE ? (PyObject *)Py_TYPE(found) == expected : found == expected;
}

/* `check->obj` is the method resolution order. */
static int bases_are(const Check *check, PyObject *value) {
    PyObject *actual = PyType_Check(value) ? ((PyTypeObject *)value)->tp_mro : NULL;
    if (actual == check->obj || actual == NULL) return actual != NULL;
    if (PyTuple_GET_SIZE(actual) != PyTuple_GET_SIZE(check->obj)) return 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(actual); i++)
        if (PyTuple_GET_ITEM(actual, i) != PyTuple_GET_ITEM(check->obj, i)) return 0;
    return 1;
}

static int default_is(PyObject *expected, PyObject *value, PyObject *open) {
    return expected == open || (value != NULL && constants_equal(expected, value));
}

static int defaults_are(PyObject *expected, PyObject *actual, PyObject *open) {
    if (actual == NULL || expected == Py_None) return actual == NULL && expected == Py_None;
    if (PyTuple_GET_SIZE(expected) != PyTuple_GET_SIZE(actual)) return 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(expected); i++)
        if (!default_is(PyTuple_GET_ITEM(expected, i), PyTuple_GET_ITEM(actual, i), open)) return 0;
    return 1;
}

/* `expected`: a tuple of (name, value). */
static int keywords_are(PyObject *expected, PyObject *actual, PyObject *open) {
    if (actual == NULL) return PyTuple_GET_SIZE(expected) == 0;
    if (PyDict_GET_SIZE(actual) != PyTuple_GET_SIZE(expected)) return 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(expected); i++) {
        PyObject *pair = PyTuple_GET_ITEM(expected, i);
        PyObject *found = PyDict_GetItemWithError(actual, PyTuple_GET_ITEM(pair, 0));
        if (found == NULL || !default_is(PyTuple_GET_ITEM(pair, 1), found, open)) return 0;
    }
    return 1;
}

/* `check->obj` is (code, defaults, keyword defaults, what stands for any value). */
static int function_is(const Check *check, PyObject *value) {
    if (!PyFunction_Check(value)) return 0;
    PyFunctionObject *function = (PyFunctionObject *)value;
    PyObject *open = PyTuple_GET_ITEM(check->obj, 3);
    return function->func_code == PyTuple_GET_ITEM(check->obj, 0) &&
           defaults_are(PyTuple_GET_ITEM(check->obj, 1), function->func_defaults, open) &&
           keywords_are(PyTuple_GET_ITEM(check->obj, 2), function->func_kwdefaults, open);
}

static int referent_is(PyObject *reference, PyObject *value) {
#if PY_VERSION_HEX >= 0x030D0000
    PyObject *target;
    if (PyWeakref_GetRef(reference, &target) <= 0) return 0;
    Py_DECREF(target); /* only compared; `value` is held by the caller */
    return target == value;
#else
    PyObject *target = PyWeakref_GET_OBJECT(reference);
    return target == value && target != Py_None;
#endif
}

/* Whether a weak reference is one that stock's compiler has to every module (`is_of_program` in values.py). */
static int is_of_stock(const PyWeakReference *reference) {
    static const char stock[] = "torch._dynamo.";
    PyObject *callback = reference->wr_callback;
    PyObject *module = callback != NULL && PyFunction_Check(callback) ? PyFunction_GetModule(callback) : NULL;
    const char *name = module != NULL && PyUnicode_Check(module) ? PyUnicode_AsUTF8(module) : NULL;
    if (name == NULL) PyErr_Clear();
    return name != NULL && strncmp(name, stock, sizeof stock - 1) == 0;
}

/* No weak reference but those of the class `check->obj`, and stock's; if there is a number, no plain one. */
static int is_unreferenced(const Check *check, PyObject *value) {
    Py_ssize_t place = Py_TYPE(value)->tp_weaklistoffset;
    if (place == 0 || (PyType_Check(value) && !(((PyTypeObject *)value)->tp_flags & Py_TPFLAGS_HEAPTYPE))) return 1;
    const PyWeakReference *one = *(PyWeakReference **)((char *)value + place);
    for (; one != NULL; one = one->wr_next) {
        PyTypeObject *type = Py_TYPE(one);
        if ((check->number ? type == &_PyWeakref_RefType : (PyObject *)type != check->obj) && !is_of_stock(one)) return 0;
    }
    return 1;
}

static int python_holds(PyObject *holds, PyObject *value) {
    PyObject *answer = PyObject_CallOneArg(holds, value);
    int result = answer == NULL ? 0 : PyObject_IsTrue(answer) == 1;
    Py_XDECREF(answer);
    return result;
}

int check_value(const Check *check, PyObject *value) {
    switch ((CheckOp)check->op) {
    case CHECK_TYPE_IS: return (PyObject *)Py_TYPE(value) == check->obj;
    case CHECK_IS_OBJECT: return value == check->obj;
    case CHECK_IS_REFERENT: return referent_is(check->obj, value);
    case CHECK_UNREFERENCED: return is_unreferenced(check, value);
    case CHECK_EQUALS: return constants_equal(check->obj, value);
    case CHECK_LENGTH: return length_is(value, check->number);
    case CHECK_DICT_KEYS: return dict_keys_are(check, value);
    case CHECK_KEY_PRESENT: return has_key(value, check->obj, 1);
    case CHECK_KEY_ABSENT: return has_key(value, check->obj, 0);
    case CHECK_DICT_ENTRIES: return entries_are(check->obj, value);
    case CHECK_ATTR_PRESENT: return has_attribute(value, check->obj, 1);
    case CHECK_ATTR_ABSENT: return has_attribute(value, check->obj, 0);
    case CHECK_CLASS_LOOKUP: return class_has(check, value);
    case CHECK_CLASS_BASES: return bases_are(check, value);
    case CHECK_FUNCTION_STATE: return function_is(check, value);
    case CHECK_TENSOR: return tensor_holds(check->tensor, value);
    case CHECK_STATE: return state_holds(check->program, check->program_length);
    case CHECK_PYTHON: return python_holds(check->obj, value);
    default: return 0;
    }
}

/* Whether the check cannot run user code: for this value, or (NULL) for any. */
int check_is_native(const Check *check, PyObject *value) {
    switch ((CheckOp)check->op) {
    case CHECK_TYPE_IS:
    case CHECK_IS_OBJECT:
    case CHECK_IS_REFERENT:
    case CHECK_UNREFERENCED:
    case CHECK_CLASS_LOOKUP:
    case CHECK_CLASS_BASES:
    case CHECK_FUNCTION_STATE:
    case CHECK_STATE: return 1;
    case CHECK_KEY_ABSENT:
    case CHECK_KEY_PRESENT: return PyUnicode_CheckExact(check->obj) && value != NULL && PyDict_CheckExact(value);
    case CHECK_DICT_ENTRIES: return value != NULL && PyDict_CheckExact(value);
    case CHECK_EQUALS: return check->lasting == LASTS_WITH_VALUE;
    case CHECK_LENGTH:
        return value != NULL && (PyTuple_CheckExact(value) || PyList_CheckExact(value) || PyDict_CheckExact(value) ||
                                 PyODict_CheckExact(value));
    default: return 0;
    }
}

/* --- several values --- */

enum { STACK = 64, BROKEN = 0, HOLDS = 1, UNDECIDED = 2 /* not decidable here: the record must say */ };

static int64_t floor_divide(int64_t a, int64_t b) {
    int64_t quotient = a / b;
    return quotient - (a % b != 0 && (a < 0) != (b < 0));
}

/* One binary operation on the two topmost numbers: HOLDS with *a the result, else BROKEN or UNDECIDED. */
static int apply(int op, int64_t *a, int64_t b) {
    switch (op) {
    case OP_ADD: return __builtin_add_overflow(*a, b, a) ? UNDECIDED : HOLDS;
    case OP_MUL: return __builtin_mul_overflow(*a, b, a) ? UNDECIDED : HOLDS;
    case OP_FLOORDIV:
    case OP_MOD:
        if (b == 0) return BROKEN;
        if (b == -1 && *a == INT64_MIN) return UNDECIDED;
        int64_t quotient = floor_divide(*a, b);
        *a = op == OP_MOD ? *a - quotient * b : quotient;
        return HOLDS;
    case OP_MIN: *a = *a < b ? *a : b; return HOLDS;
    case OP_MAX: *a = *a > b ? *a : b; return HOLDS;
    case OP_EQ: return *a == b;
    case OP_NE: return *a != b;
    case OP_LT: return *a < b;
    case OP_LE: return *a <= b;
    default: return BROKEN;
    }
}

/* A slot's value as a number: an exact int that fits. */
static int slot_number(Slot *slot, int64_t *number) {
    if (!slot->has_number) {
        if (slot->obj == NULL || !PyLong_CheckExact(slot->obj)) return BROKEN;
        int overflow;
        slot->number = PyLong_AsLongLongAndOverflow(slot->obj, &overflow);
        if (overflow) return UNDECIDED;
        slot->has_number = 1;
    }
    *number = slot->number;
    return HOLDS;
}

/* After the slots, the program is (opcode, operand) pairs of a stack machine; a comparison ends a relation. */
static int shapes_hold(const Check *check, Slot *slots) {
    int64_t stack[STACK];
    int top = 0;
    for (Py_ssize_t i = check->number; i + 1 < check->program_length; i += 2) {
        int op = (int)check->program[i], outcome = HOLDS;
        if (op == OP_CONST || op == OP_SLOT) {
            if (top >= STACK) return UNDECIDED;
            if (op == OP_CONST) stack[top] = check->program[i + 1];
            else outcome = slot_number(&slots[check->program[i + 1]], &stack[top]);
            top++;
        } else {
            if (top < 2) return BROKEN;
            outcome = apply(op, &stack[top - 2], stack[top - 1]);
            top -= op >= OP_EQ ? 2 : 1;
        }
        if (outcome != HOLDS) return outcome;
    }
    return HOLDS;
}

static PyObject *slot_object(Slot *slot) {
    if (slot->obj != NULL) return Py_NewRef(slot->obj);
    if (slot->has_number) return PyLong_FromLongLong(slot->number);
    PyErr_SetString(PyExc_SystemError, "fx_guards: an empty slot");
    return NULL;
}

/* Asks the record itself, with the values in the given slots. */
static int python_holds_many(const Check *check, const int64_t *which, Py_ssize_t count, Slot *slots) {
    PyObject *values = PyTuple_New(count);
    if (values == NULL) return 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *value = slot_object(&slots[which[i]]);
        if (value == NULL) {
            Py_DECREF(values);
            return 0;
        }
        PyTuple_SET_ITEM(values, i, value);
    }
    int result = python_holds(check->obj, values);
    Py_DECREF(values);
    return result;
}

/* A set of pointers, each with a number: open addressing in a table of at least twice as many places. */
enum { SMALL_TABLE = 64 };

typedef struct {
    struct {
        const void *pointer;
        int64_t group;
    } small[SMALL_TABLE], *items;
    size_t size;
} Table;

static int table_init(Table *table, size_t n) {
    table->size = SMALL_TABLE;
    while (table->size < 2 * n) table->size *= 2;
    int is_small = table->size == SMALL_TABLE;
    table->items = is_small ? table->small : PyMem_Malloc(table->size * sizeof *table->items);
    if (table->items == NULL) return 0;
    memset(table->items, 0, table->size * sizeof *table->items);
    return 1;
}

static void table_free(Table *table) {
    if (table->items != table->small) PyMem_Free(table->items);
}

/* The number first given with the pointer; a new pointer gets `group`, and `*is_new` is set. */
static int64_t table_group(Table *table, const void *pointer, int64_t group, int *is_new) {
    size_t at = (size_t)(((uintptr_t)pointer >> 4) * 0x9E3779B97F4A7C15u >> 32) & (table->size - 1);
    while (table->items[at].pointer != NULL && table->items[at].pointer != pointer) at = (at + 1) & (table->size - 1);
    *is_new = table->items[at].pointer == NULL;
    if (*is_new) {
        table->items[at].pointer = pointer;
        table->items[at].group = group;
    }
    return table->items[at].group;
}

static int all_distinct(const Check *check, Slot *slots) {
    Table table;
    int distinct = 1;
    if (!table_init(&table, (size_t)check->program_length)) return 0;
    for (Py_ssize_t i = 0; i < check->program_length && distinct; i++)
        table_group(&table, slots[check->program[i]].obj, 0, &distinct);
    table_free(&table);
    return distinct;
}

/* program: slots, then each one's group; groups are numbered 0, 1, ... by first use. */
static int storages_grouped(const Check *check, Slot *slots) {
    Table table;
    int64_t n = check->number, n_groups = 0;
    int outcome = HOLDS;
    if (!table_init(&table, (size_t)n)) return BROKEN;
    for (int64_t i = 0; i < n && outcome == HOLDS; i++) {
        PyObject *tensor = slots[check->program[i]].obj;
        const void *storage = tensor == NULL ? NULL : tensor_storage(tensor);
        int is_new;
        if (storage == NULL) outcome = UNDECIDED;
        else if (table_group(&table, storage, n_groups, &is_new) != check->program[n + i]) outcome = BROKEN;
        else n_groups += is_new;
    }
    table_free(&table);
    return outcome;
}

static int python_decides(const Check *check, Slot *slots, int outcome) {
    return outcome == UNDECIDED ? python_holds_many(check, check->program, check->number, slots) : outcome == HOLDS;
}

int check_many(const Check *check, Slot *slots) {
    switch ((CheckOp)check->op) {
    case CHECK_SAME: return slots[check->program[0]].obj == slots[check->program[1]].obj;
    case CHECK_DISTINCT: return all_distinct(check, slots);
    case CHECK_PYTHON_MANY: return python_holds_many(check, check->program, check->program_length, slots);
    case CHECK_STORAGES: return python_decides(check, slots, storages_grouped(check, slots));
    case CHECK_SHAPES: return python_decides(check, slots, shapes_hold(check, slots));
    default: return 0;
    }
}
