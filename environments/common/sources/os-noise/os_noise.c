/*
 * os_noise [SECONDS]: interruptions of a fixed amount of work on each core of a node.
 *
 * One OpenMP thread for each place repeats the same work, of about 20 us, for SECONDS (default 10).
 * Without an interruption it always takes the same time. A repetition that takes at least 5 us
 * longer than the shortest one of its core was interrupted. The difference is lost time (fixed work
 * quantum: Sottile and Minnich, "Analysis of Microbenchmarks for Performance Tuning of Clusters",
 * IEEE Cluster 2004).
 *
 * The source of the lost time of a core is found by what the kernel counted there meanwhile: the
 * time of other tasks (/proc/PID/task/TID/schedstat), of the hypervisor (steal in /proc/stat), and
 * interrupts (/proc/interrupts). Tasks that ended or moved show only as switches of the thread.
 *
 * Build: cc -std=c11 -O2 -fopenmp os_noise.c -o os_noise
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <omp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define WORK_US 20.0
#define THRESHOLD_US 5.0
#define INTERRUPT_US 50.0 /* an interrupt takes at most this time */
enum { BINS = 12, MAX_CORES = 2048, MAX_LINES = 4096, MAX_TASKS = 65536, NAME = 32 };

typedef unsigned long long count;

typedef struct {
    _Alignas(128) int cpu;
    double shortest_us, lost_us, longest_us, longest_at_s, seconds, tasks_us, steal_us;
    count interruptions, bins[BINS], interrupts;
    long switches;
    char source[NAME + 16];
} core;

typedef struct {
    char name[NAME];
    count of_core[MAX_CORES];
} interrupt; /* one line of /proc/interrupts */

typedef struct {
    long id;
    int cpu; /* where it ran last */
    count ns;
    char name[NAME];
} task;

/* Of each pair, the first is before the measurement, and the second is after it. */
static core cores[MAX_CORES];
static interrupt lines[2][MAX_LINES];
static task tasks[2][MAX_TASKS];
static size_t tasks_found[2];

static double now_us(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec * 1e-3;
}

static void work(count rounds) {
    count value = rounds;
    for (; rounds > 0; rounds--) value = value * 6364136223846793005U + 1442695040888963407U;
    volatile count kept = value; /* the compiler must not leave out the work */
    (void)kept;
}

static double shortest_us(count rounds) {
    double shortest = 1e300;
    for (int each = 0; each < 100; each++) {
        double start = now_us();
        work(rounds);
        double took = now_us() - start;
        if (took < shortest) shortest = took;
    }
    return shortest;
}

static void read_interrupts(interrupt *to, int number) {
    static int cpu_of_column[MAX_CORES];
    char *text = NULL, *rest, *word;
    size_t size = 0;
    int columns = 0;
    FILE *file = fopen("/proc/interrupts", "r");
    if (file == NULL || getline(&text, &size, file) < 0) return;
    for (word = strtok_r(text, " \n", &rest); word; word = strtok_r(NULL, " \n", &rest))
        if (columns < MAX_CORES) cpu_of_column[columns++] = atoi(word + strlen("CPU"));
    for (int line = 0; line < MAX_LINES && getline(&text, &size, file) > 0; line++) {
        char *label = strtok_r(text, " :\n", &rest);
        snprintf(to[line].name, NAME, "%s", label ? label : "");
        for (int at = 0; at < columns && (word = strtok_r(NULL, " \n", &rest)); at++)
            for (int each = 0; each < number; each++)
                if (cores[each].cpu == cpu_of_column[at])
                    to[line].of_core[each] = strtoull(word, NULL, 10);
        /* The last word of a numbered interrupt is the name of its device. */
        while (label && isdigit((unsigned char)*label) && (word = strtok_r(NULL, " \n", &rest)))
            snprintf(to[line].name, NAME, "%s", word);
    }
    free(text);
    fclose(file);
}

static int read_line(const char *path, char *text, int size) {
    FILE *file = fopen(path, "r");
    int found = file != NULL && fgets(text, size, file) != NULL;
    if (file != NULL) fclose(file);
    return found;
}

static int read_task(const char *pid, const char *tid, task *to) {
    char path[600], text[1024], *rest, *end, *word;
    snprintf(path, sizeof path, "/proc/%s/task/%s/schedstat", pid, tid);
    if (!read_line(path, text, sizeof text)) return 0;
    to->id = atol(tid), to->ns = strtoull(text, NULL, 10);
    snprintf(path, sizeof path, "/proc/%s/task/%s/stat", pid, tid);
    if (!read_line(path, text, sizeof text) || (end = strrchr(text, ')')) == NULL) return 0;
    *end = '\0';
    snprintf(to->name, NAME, "%s", strchr(text, '(') + 1);
    for (char *at = to->name; *at; at++)
        if (!isgraph((unsigned char)*at)) *at = '_';
    word = strtok_r(end + 1, " ", &rest); /* field 3 of proc(5); field 39 is the CPU */
    for (int field = 3; field < 39 && word; field++) word = strtok_r(NULL, " ", &rest);
    to->cpu = word ? atoi(word) : -1;
    return 1;
}

static int by_id(const void *one, const void *other) {
    long left = ((const task *)one)->id, right = ((const task *)other)->id;
    return (left > right) - (left < right);
}

/* Reads the tasks of all processes but this one, sorted by id; returns their number. */
static size_t read_tasks(task *to) {
    char path[300];
    size_t found = 0;
    DIR *folder, *proc = opendir("/proc");
    for (struct dirent *pid, *tid; proc && (pid = readdir(proc));) {
        if (!isdigit((unsigned char)*pid->d_name) || atol(pid->d_name) == getpid()) continue;
        snprintf(path, sizeof path, "/proc/%s/task", pid->d_name);
        if ((folder = opendir(path)) == NULL) continue; /* it has ended */
        while (found < MAX_TASKS && (tid = readdir(folder)))
            if (isdigit((unsigned char)*tid->d_name) && read_task(pid->d_name, tid->d_name, &to[found])) found++;
        closedir(folder);
    }
    if (proc) closedir(proc);
    qsort(to, found, sizeof *to, by_id);
    return found;
}

/* Replaces the time of each task by the time that it has used meanwhile; 0 if it has moved. */
static void subtract_time_before(void) {
    for (size_t each = 0; each < tasks_found[1]; each++) {
        task *after = &tasks[1][each];
        const task *before = bsearch(after, tasks[0], tasks_found[0], sizeof *after, by_id);
        if (before) after->ns = before->cpu == after->cpu ? after->ns - before->ns : 0;
    }
}

/* Returns the time of all tasks with a name whose last CPU is `cpu`, in nanoseconds. */
static count used_by(const char *name, int cpu) {
    count used = 0;
    for (size_t each = 0; each < tasks_found[1]; each++)
        if (tasks[1][each].cpu == cpu && strcmp(tasks[1][each].name, name) == 0) used += tasks[1][each].ns;
    return used;
}

static void add_steal(int number, double sign) {
    char text[512];
    FILE *file = fopen("/proc/stat", "r");
    count ticks;
    for (int cpu; file && fgets(text, sizeof text, file);)
        if (sscanf(text, "cpu%d %*u %*u %*u %*u %*u %*u %*u %llu", &cpu, &ticks) == 2)
            for (int each = 0; each < number; each++)
                if (cores[each].cpu == cpu)
                    cores[each].steal_us += sign * (double)ticks * 1e6 / (double)sysconf(_SC_CLK_TCK);
    if (file) fclose(file);
}

/* Names the source that explains at least half of the lost time of core number `at`. */
static void find_source(core *of, int at) {
    const char *device = "", *name = "";
    count most = 0, longest = 0;
    for (int line = 0; line < MAX_LINES && *lines[1][line].name; line++) {
        count more = lines[1][line].of_core[at] - lines[0][line].of_core[at];
        of->interrupts += more;
        if (more > most) most = more, device = lines[1][line].name;
    }
    for (size_t each = 0; each < tasks_found[1]; each++) {
        if (tasks[1][each].cpu != of->cpu || tasks[1][each].ns == 0) continue;
        count together = used_by(tasks[1][each].name, of->cpu);
        of->tasks_us += (double)tasks[1][each].ns * 1e-3;
        if (together > longest) longest = together, name = tasks[1][each].name;
    }
    double half = of->lost_us / 2;
    const char *source = "unknown", *of_what = "";
    if (of->interruptions == 0) source = "none";
    else if (of->tasks_us >= half) source = "task:", of_what = name;
    else if (of->steal_us >= half) source = "hypervisor";
    else if ((double)of->interrupts * INTERRUPT_US >= half) source = "interrupt:", of_what = device;
    else if (of->switches > 0) source = "other-tasks";
    snprintf(of->source, sizeof of->source, "%s%s", source, of_what);
}

/* Repeats the work for `seconds` on the CPU of this thread. */
static void measure(core *own, count rounds, double seconds) {
    struct rusage before, after;
    own->shortest_us = shortest_us(rounds);
#pragma omp barrier
    getrusage(RUSAGE_THREAD, &before);
    double begin = now_us(), start = begin;
    while (start < begin + seconds * 1e6) {
        work(rounds);
        double stop = now_us(), lost = stop - start - own->shortest_us;
        if (lost < 0) own->shortest_us += lost;
        if (lost >= THRESHOLD_US) {
            int bin = 0;
            while (bin < BINS - 1 && lost >= THRESHOLD_US * (2 << bin)) bin++;
            own->bins[bin]++;
            own->interruptions++;
            own->lost_us += lost;
            if (lost > own->longest_us) own->longest_us = lost, own->longest_at_s = (start - begin) * 1e-6;
        }
        start = stop;
    }
    getrusage(RUSAGE_THREAD, &after);
    own->seconds = (start - begin) * 1e-6;
    own->switches = after.ru_nivcsw - before.ru_nivcsw;
}

static double available(const core *of) { return 100 * (1 - of->lost_us / (of->seconds * 1e6)); }

static int by_available(const void *one, const void *other) {
    double left = available(one), right = available(other);
    return (left > right) - (left < right);
}

int main(int argc, char **argv) {
    double seconds = argc > 1 ? atof(argv[1]) : 10, took = 0, longest = 0;
    int number = omp_get_max_threads();
    count rounds = 1000, bins[BINS] = {0}, interruptions = 0;
    if (argc > 2 || seconds <= 0 || seconds > 86400 || number > MAX_CORES) {
        fprintf(stderr, "usage: os_noise [SECONDS], at most 86400, on at most %d cores\n", MAX_CORES);
        return 2;
    }
#pragma omp parallel num_threads(number)
    cores[omp_get_thread_num()].cpu = sched_getcpu();
    for (; took < WORK_US; rounds += rounds / 8) took = shortest_us(rounds); /* the same for all cores */
    read_interrupts(lines[0], number);
    tasks_found[0] = read_tasks(tasks[0]);
    add_steal(number, -1);
#pragma omp parallel num_threads(number)
    measure(&cores[omp_get_thread_num()], rounds, seconds);
    add_steal(number, 1);
    read_interrupts(lines[1], number);
    tasks_found[1] = read_tasks(tasks[1]);
    subtract_time_before();

    printf("os_noise version 1.0\ncores: %d\nseconds: %g\nthreshold: %g us\n\n", number, seconds, THRESHOLD_US);
    puts(" cpu  work(us)  interruptions  lost(us)  available(%)  longest(us)  at(s)  switches  interrupts"
         "  tasks(us)  steal(us)  source");
    for (int each = 0; each < number; each++) {
        core *of = &cores[each];
        find_source(of, each);
        printf("%4d  %8.2f  %13llu  %8.0f  %12.4f  %11.1f  %5.2f  %8ld  %10llu  %9.0f  %9.0f  %s\n", of->cpu,
               of->shortest_us, of->interruptions, of->lost_us, available(of), of->longest_us, of->longest_at_s,
               of->switches, of->interrupts, of->tasks_us, of->steal_us, of->source);
        for (int bin = 0; bin < BINS; bin++) bins[bin] += of->bins[bin];
        if (of->longest_us > longest) longest = of->longest_us;
        interruptions += of->interruptions;
    }
    puts("\nat least(us)  interruptions");
    for (int bin = 0; bin < BINS; bin++) printf("%12.0f  %13llu\n", THRESHOLD_US * (1 << bin), bins[bin]);
    qsort(cores, (size_t)number, sizeof *cores, by_available);
    printf("\nworst core: cpu %d, source %s\n", cores[0].cpu, cores[0].source);
    printf("available worst: %.4f %%\navailable median: %.4f %%\n", available(cores), available(&cores[number / 2]));
    printf("longest: %.1f us\nrate: %.3f 1/s\nend of os_noise\n", longest, (double)interruptions / seconds / number);
    return 0;
}
