/* A stand-in for libnvidia-ml.so.1, so that the real Python binding can be driven on a machine without a GPU.
 *
 * The state is a text file named by OARLOCK_NVML_STATE and read anew at each call: a test changes a running "GPU" by
 * replacing the file. A line is `KEY VALUE`; the key of a GPU's field is `N.field`, of its slice M `N/M.field`.
 *   gpus 2                          how many the driver lists
 *   0.uuid GPU-aaaa                 also: name, total, reserved, used, busy (percent), celsius, milliwatts, ecc, xid
 *   0.process.0 4242 1048576        process id and bytes ("-" for the driver's "not available")
 *   0.slices 2                      partitioned into slices 0/0 and 0/1
 *   0.fail.nvmlDeviceGetPowerUsage 3   that call answers with this code; `0.fail 15` fails all calls on the device
 * Compile with -DOLD_DRIVER to leave out the functions that drivers before R510 lack.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, UNINITIALIZED = 1, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, TOO_SMALL = 7, TIMED_OUT = 10 };
enum { MAX_GPUS = 16, MAX_SLICES = 7, STRIDE = MAX_SLICES + 1 };

static char places[MAX_GPUS * STRIDE]; /* a handle is the address of its place: slice 0 is the GPU itself */
static int started;

static int lookup(const char *key, char *value, size_t room) {
    const char *path = getenv("OARLOCK_NVML_STATE");
    FILE *file = path ? fopen(path, "r") : NULL;
    char line[512];
    int found = 0;
    if (!file) return 0;
    while (!found && fgets(line, sizeof line, file)) {
        char *space = strchr(line, ' ');
        if (!space) continue;
        *space = 0;
        if (strcmp(line, key)) continue;
        snprintf(value, room, "%s", space + 1);
        value[strcspn(value, "\n")] = 0;
        found = 1;
    }
    fclose(file);
    return found;
}

static void key_of(void *handle, const char *field, char *key, size_t room) {
    long place = (char *)handle - places;
    if (place % STRIDE) snprintf(key, room, "%ld/%ld.%s", place / STRIDE, place % STRIDE - 1, field);
    else snprintf(key, room, "%ld.%s", place / STRIDE, field);
}

static int field(void *handle, const char *name, char *value, size_t room) {
    char key[128];
    key_of(handle, name, key, sizeof key);
    return lookup(key, value, room);
}

static unsigned long long number(void *handle, const char *name, unsigned long long fallback) {
    char value[64];
    return field(handle, name, value, sizeof value) ? strtoull(value, NULL, 10) : fallback;
}

static unsigned gpus(void) {
    char value[32];
    return lookup("gpus", value, sizeof value) ? (unsigned)atoi(value) : 0;
}

/* What the call should answer before doing anything: the state may make one call, or all calls of a device, fail. */
static int verdict(void *handle, const char *call) {
    char name[128];
    long place = (char *)handle - places;
    if (!started) return UNINITIALIZED;
    if (place < 0 || place >= (long)sizeof places) return INVALID;
    snprintf(name, sizeof name, "fail.%s", call);
    return (int)number(handle, name, number(handle, "fail", SUCCESS));
}
#define BEGIN(handle) do { int v = verdict(handle, __func__); if (v) return v; } while (0)

int nvmlInitWithFlags(unsigned flags) { (void)flags; started = 1; return SUCCESS; }
int nvmlShutdown(void) { started = 0; return SUCCESS; }

const char *nvmlErrorString(int code) {
    switch (code) {
    case NOT_SUPPORTED: return "Not Supported";
    case NOT_FOUND: return "Not Found";
    case TIMED_OUT: return "Timeout";
    case 15: return "GPU is lost";
    default: return "Unknown Error";
    }
}

int nvmlSystemGetDriverVersion(char *out, unsigned room) { snprintf(out, room, "570.10.01"); return SUCCESS; }
int nvmlDeviceGetCount_v2(unsigned *out) { *out = gpus(); return started ? SUCCESS : UNINITIALIZED; }

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **out) {
    char hidden[64];
    if (index >= gpus()) return INVALID;
    *out = places + index * STRIDE;
    snprintf(hidden, sizeof hidden, "%u.fail.%s", index, __func__);
    char value[16];
    return lookup(hidden, value, sizeof value) ? atoi(value) : SUCCESS;
}

static int copy(void *handle, const char *name, char *out, unsigned room) {
    char value[128];
    if (!field(handle, name, value, sizeof value)) return NOT_FOUND;
    if (strlen(value) >= room) return TOO_SMALL;
    strcpy(out, value);
    return SUCCESS;
}
int nvmlDeviceGetUUID(void *handle, char *out, unsigned room) { BEGIN(handle); return copy(handle, "uuid", out, room); }
int nvmlDeviceGetName(void *handle, char *out, unsigned room) { BEGIN(handle); return copy(handle, "name", out, room); }

int nvmlDeviceGetMinorNumber(void *handle, unsigned *out) {
    BEGIN(handle);
    *out = (unsigned)(((char *)handle - places) / STRIDE);
    return SUCCESS;
}

struct memory { unsigned long long total, free, used; };
int nvmlDeviceGetMemoryInfo(void *handle, struct memory *out) {
    BEGIN(handle);
    out->total = number(handle, "total", 0);
    out->used = number(handle, "used", 0) + number(handle, "reserved", 0);
    out->free = out->total - out->used;
    return SUCCESS;
}

#ifndef OLD_DRIVER
struct memory_v2 { unsigned version; unsigned long long total, reserved, free, used; };
int nvmlDeviceGetMemoryInfo_v2(void *handle, struct memory_v2 *out) {
    BEGIN(handle);
    out->total = number(handle, "total", 0);
    out->reserved = number(handle, "reserved", 0);
    out->used = number(handle, "used", 0);
    out->free = out->total - out->reserved - out->used;
    return SUCCESS;
}

static int watched, reported[MAX_GPUS];
int nvmlEventSetCreate(void **out) { *out = &watched; return SUCCESS; }
int nvmlEventSetFree(void *set) { (void)set; return SUCCESS; }
int nvmlDeviceRegisterEvents(void *handle, unsigned long long kinds, void *set) {
    (void)set;
    BEGIN(handle);
    if (kinds & 8) watched |= 1 << (((char *)handle - places) / STRIDE);
    return SUCCESS;
}
struct event { void *device; unsigned long long type, data; unsigned gpu_instance, compute_instance; };
int nvmlEventSetWait_v2(void *set, struct event *out, unsigned milliseconds) {
    (void)set; (void)milliseconds;
    for (unsigned i = 0; i < gpus() && i < MAX_GPUS; i++) {
        int xid = (int)number(places + i * STRIDE, "xid", 0);
        if (!(watched >> i & 1) || xid == reported[i]) continue;
        reported[i] = xid;
        memset(out, 0, sizeof *out);
        out->device = places + i * STRIDE;
        out->type = 8;
        out->data = (unsigned long long)xid;
        return SUCCESS;
    }
    return TIMED_OUT;
}
#endif

struct utilization { unsigned gpu, memory; };
int nvmlDeviceGetUtilizationRates(void *handle, struct utilization *out) {
    BEGIN(handle);
    if ((((char *)handle) - places) % STRIDE) return NOT_SUPPORTED; /* as drivers answer for slices */
    out->gpu = (unsigned)number(handle, "busy", 0);
    out->memory = 0;
    return SUCCESS;
}
int nvmlDeviceGetTemperature(void *handle, int sensor, unsigned *out) {
    (void)sensor;
    BEGIN(handle);
    *out = (unsigned)number(handle, "celsius", 30);
    return SUCCESS;
}
int nvmlDeviceGetPowerUsage(void *handle, unsigned *out) {
    BEGIN(handle);
    *out = (unsigned)number(handle, "milliwatts", 60000);
    return SUCCESS;
}
int nvmlDeviceGetTotalEccErrors(void *handle, int type, int counter, unsigned long long *out) {
    (void)type; (void)counter;
    BEGIN(handle);
    *out = number(handle, "ecc", 0);
    return SUCCESS;
}

struct pci { char legacy[16]; unsigned domain, bus, device, id, subsystem; char bus_id[32]; };
int nvmlDeviceGetPciInfo_v3(void *handle, struct pci *out) {
    BEGIN(handle);
    memset(out, 0, sizeof *out);
    snprintf(out->bus_id, sizeof out->bus_id, "00000000:%02X:00.0", (unsigned)(((char *)handle - places) / STRIDE + 0x17));
    return SUCCESS;
}

struct process { unsigned pid; unsigned long long bytes; unsigned gpu_instance, compute_instance; };
static int processes(void *handle, unsigned *count, struct process *out) {
    char name[32], value[64];
    unsigned n = 0, room = out ? *count : 0;
    for (;; n++) {
        snprintf(name, sizeof name, "process.%u", n);
        if (!field(handle, name, value, sizeof value)) break;
        if (n >= room) continue;
        char *bytes = strchr(value, ' ');
        out[n].pid = (unsigned)atoi(value);
        out[n].bytes = bytes && bytes[1] != '-' ? strtoull(bytes, NULL, 10) : ~0ULL;
        out[n].gpu_instance = out[n].compute_instance = ~0U;
    }
    *count = n;
    return n > room ? TOO_SMALL : SUCCESS;
}
int nvmlDeviceGetComputeRunningProcesses_v2(void *handle, unsigned *count, struct process *out) {
    BEGIN(handle);
    return processes(handle, count, out);
}
#ifndef OLD_DRIVER
int nvmlDeviceGetComputeRunningProcesses_v3(void *handle, unsigned *count, struct process *out) {
    BEGIN(handle);
    return processes(handle, count, out);
}
#endif

int nvmlDeviceGetMigMode(void *handle, unsigned *current, unsigned *pending) {
    char value[16];
    BEGIN(handle);
    *current = *pending = (unsigned)field(handle, "slices", value, sizeof value);
    return SUCCESS;
}
int nvmlDeviceGetMaxMigDeviceCount(void *handle, unsigned *out) { BEGIN(handle); *out = MAX_SLICES; return SUCCESS; }
int nvmlDeviceGetMigDeviceHandleByIndex(void *handle, unsigned index, void **out) {
    BEGIN(handle);
    if (index >= number(handle, "slices", 0)) return NOT_FOUND;
    *out = (char *)handle + 1 + index;
    return SUCCESS;
}
