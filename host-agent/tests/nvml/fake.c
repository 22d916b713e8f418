/* A management library that is not NVIDIA's: the calls that feira-host makes, answered as told at build time.
 *   -DNO_DRIVER  the library is there and the driver is not loaded
 *   -DHANGS      the first call does not come back
 *   -DLOST_ONE   the second GPU fell off the bus
 *   -DOLD        a driver without the calls that are not needed
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { OK = 0, DRIVER_NOT_LOADED = 9, GPU_IS_LOST = 15 };

typedef struct { unsigned version; unsigned long long total, reserved, free, used; } memory;

static int gpus[2] = {0, 1};
static int lost(void *gpu) {
#ifdef LOST_ONE
    return gpu == &gpus[1];
#else
    (void)gpu;
    return 0;
#endif
}

int nvmlInit_v2(void) {
#ifdef HANGS
    sleep(3600);
#endif
#ifdef NO_DRIVER
    return DRIVER_NOT_LOADED;
#endif
    return OK;
}
int nvmlShutdown(void) { return OK; }
const char *nvmlErrorString(int error) { (void)error; return "fake"; }
int nvmlSystemGetDriverVersion(char *text, unsigned size) { snprintf(text, size, "570.124.06"); return OK; }
int nvmlSystemGetCudaDriverVersion_v2(int *version) { *version = 12080; return OK; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return OK; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **gpu) { *gpu = &gpus[index]; return OK; }
int nvmlDeviceGetName(void *gpu, char *text, unsigned size) {
    (void)gpu;
    snprintf(text, size, "NVIDIA GeForce RTX 4090");
    return OK;
}
int nvmlDeviceGetUUID(void *gpu, char *text, unsigned size) {
    if (lost(gpu)) return GPU_IS_LOST;
    snprintf(text, size, "GPU-fake-%d", *(int *)gpu);
    return OK;
}
int nvmlDeviceGetMemoryInfo_v2(void *gpu, memory *info) {
    (void)gpu;
    info->total = 25757220864ULL;
    info->reserved = info->used = 0;
    info->free = info->total;
    return OK;
}
#ifndef OLD
int nvmlDeviceGetCudaComputeCapability(void *gpu, int *major, int *minor) {
    (void)gpu;
    *major = 8;
    *minor = 9;
    return OK;
}
int nvmlDeviceGetMaxPcieLinkGeneration(void *gpu, unsigned *generation) { (void)gpu; *generation = 4; return OK; }
int nvmlDeviceGetMaxPcieLinkWidth(void *gpu, unsigned *width) { (void)gpu; *width = 16; return OK; }
int nvmlDeviceGetEnforcedPowerLimit(void *gpu, unsigned *limit) { (void)gpu; *limit = 450000; return OK; }
#endif
