/* What torch.compiler.set_stance has set, looked up where stock's compiler is loaded. */
#include "stock_stance.h"
#include "watched_name.h"

static PyObject *modules;      /* sys.modules; owned, as a finalizer may still call compiled functions */
static Py_ssize_t looked_into; /* its size when stock's module was looked for: loading a module changes it */
static FXSWatchedName current; /* a variable of stock's module; its dict, owned, is NULL while that is not loaded */
static PyObject *attribute;
static PyObject *known_stance; /* owned, so that no other object has its address */
enum { STANCE_OTHER, STANCE_FORCES_EAGER, STANCE_FAILS };
static int known_answer;

int fxs_init_stock_stance(void)
{
    modules = Py_XNewRef(PyImport_GetModuleDict());
    current.name = PyUnicode_InternFromString("_stance");
    attribute = PyUnicode_InternFromString("stance");
    return modules == NULL || current.name == NULL || attribute == NULL ? -1 : 0;
}

static void look(void)
{
    looked_into = PyDict_GET_SIZE(modules);
    PyObject *module = PyDict_GetItemString(modules, "torch._dynamo.eval_frame");
    PyObject *found = module != NULL && PyModule_Check(module) ? PyModule_GetDict(module) : NULL;
    Py_XSETREF(current.dict, Py_XNewRef(found));
    current.version = 0;
}

static int answer_of(PyObject *stance)
{
    PyObject *text = PyObject_GetAttr(stance, attribute);
    if (text == NULL) {
        PyErr_Clear();
        return STANCE_OTHER;
    }
    int answer = STANCE_OTHER;
    if (PyUnicode_Check(text) && PyUnicode_CompareWithASCIIString(text, "force_eager") == 0) {
        answer = STANCE_FORCES_EAGER;
    }
    else if (PyUnicode_Check(text) && PyUnicode_CompareWithASCIIString(text, "fail_on_recompile") == 0) {
        answer = STANCE_FAILS;
    }
    Py_DECREF(text);
    return answer;
}

static int stance_now(void)
{
    if (FXS_UNLIKELY(PyDict_GET_SIZE(modules) != looked_into)) {
        look();
    }
    if (FXS_LIKELY(current.dict == NULL)) {
        return STANCE_OTHER;
    }
    PyObject *stance = fxs_named(&current);
    if (FXS_UNLIKELY(stance != known_stance)) {
        Py_XSETREF(known_stance, Py_XNewRef(stance));
        known_answer = stance == NULL ? STANCE_OTHER : answer_of(stance);
    }
    return known_answer;
}

int fxs_stock_forces_eager(void)
{
    return stance_now() == STANCE_FORCES_EAGER;
}

int fxs_stock_fails_on_recompile(void)
{
    return stance_now() == STANCE_FAILS;
}
