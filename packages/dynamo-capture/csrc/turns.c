/* The order in which entries ran: the last calls, and the place among them that the present ones repeat. */
#include "turns.h"

#include "python_internals.h"

enum {
    FEWEST = 16, /* calls that are remembered; more where one was longer ago, in powers of two */
    MOST = 1024,
    ALIKE = 16, /* so many equal calls before tell as much as more would */
};

struct FXSTurns {
    unsigned long count;    /* calls so far */
    unsigned long place;    /* the call that the next one should repeat; `count` if none is known */
    unsigned long capacity; /* a power of two */
    struct FXSEntry **ran;  /* call i is at i % capacity; borrowed */
};

static struct FXSEntry **at(FXSTurns *turns, unsigned long call)
{
    return &turns->ran[call & (turns->capacity - 1)];
}

FXSTurns *fxs_turns_new(void)
{
    FXSTurns *turns = PyMem_Calloc(1, sizeof(FXSTurns));
    struct FXSEntry **ran = turns == NULL ? NULL : PyMem_Calloc(FEWEST, sizeof(*ran));
    if (ran == NULL) {
        PyMem_Free(turns);
        return NULL;
    }
    turns->capacity = FEWEST;
    turns->ran = ran;
    return turns;
}

void fxs_turns_free(FXSTurns *turns)
{
    if (turns != NULL) {
        PyMem_Free(turns->ran);
        PyMem_Free(turns);
    }
}

struct FXSEntry *fxs_turns_next(FXSTurns *turns)
{
    return turns->place == turns->count ? NULL : *at(turns, turns->place);
}

static void remember_more(FXSTurns *turns)
{
    unsigned long capacity = turns->capacity;
    struct FXSEntry **ran = capacity >= MOST ? NULL : PyMem_Calloc(2 * capacity, sizeof(*ran));
    if (ran == NULL) {
        return;
    }
    for (unsigned long call = turns->count - capacity; call < turns->count; call++) {
        ran[call & (2 * capacity - 1)] = *at(turns, call);
    }
    PyMem_Free(turns->ran);
    turns->ran = ran;
    turns->capacity = 2 * capacity;
}

/* The call behind the last one that had the most equal calls up to it; the number of calls if none is remembered. */
static unsigned long repeated(FXSTurns *turns)
{
    unsigned long last = turns->count - 1;
    unsigned long oldest = turns->count > turns->capacity ? turns->count - turns->capacity : 0;
    unsigned long most = 0, found = turns->count;
    for (unsigned long call = last; call-- > oldest && most < ALIKE;) {
        unsigned long alike = 0;
        while (alike <= call - oldest && alike < ALIKE && *at(turns, call - alike) == *at(turns, last - alike)) {
            alike++;
        }
        if (alike > most) {
            most = alike;
            found = call + 1;
        }
    }
    return found;
}

void fxs_turns_note(FXSTurns *turns, struct FXSEntry *entry)
{
    int is_next = fxs_turns_next(turns) == entry;
    *at(turns, turns->count++) = entry;
    if (is_next) {
        turns->place++;
        return;
    }
    turns->place = repeated(turns);
    if (turns->place == turns->count && turns->count >= turns->capacity) {
        remember_more(turns);
    }
}
