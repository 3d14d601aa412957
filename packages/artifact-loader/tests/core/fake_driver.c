/* libcuda.so.1 for tests without a GPU: prints what it is asked. FAKE_DRIVER_FAILS names a function that fails. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fails(const char *name) {
    const char *wanted = getenv("FAKE_DRIVER_FAILS");
    return wanted && !strcmp(wanted, name) ? 209 : 0;
}
int cuCtxGetCurrent(void **context) { return *context = NULL, fails("current"); }
int cuDevicePrimaryCtxRetain(void **context, int device) { return *context = (void *)5, printf("retain %d\n", device), 0; }
int cuCtxSetCurrent(void *context) { return printf("context %d\n", (int)(intptr_t)context), 0; }
int cuModuleLoadData(void **module, const void *content) { return *module = (void *)content, fails("load"); }
int cuModuleGetFunction(void **function, void *module, const char *name) {
    printf("function %s of %s\n", name, (const char *)module);
    return *function = module, 0;
}
int cuFuncSetAttribute(void *function, int attribute, int value) {
    return printf("attribute %d of %s is %d\n", attribute, (char *)function, value), 0;
}
int cuGetErrorString(int error, const char **text) { return *text = error == 209 ? "no kernel image" : NULL, 0; }
int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned a, unsigned b, unsigned c, unsigned shared,
                   void *stream, void **arguments, void **extra) {
    printf("launch %s grid %u %u %u block %u %u %u shared %u stream %lx first %lx extra %d\n", (char *)function, x, y, z, a, b, c,
           shared, (unsigned long)stream, *(unsigned long *)arguments[0], extra != NULL);
    if (!strncmp(function, "t", 1) && shared == 50000) printf("last %lld\n", *(long long *)arguments[4]);
    return fails("launch");
}
