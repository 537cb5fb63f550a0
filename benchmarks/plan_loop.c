/* A plain C loop over a plan: what the compiled engine is measured against.
 *
 * It reads a problem and a plan from a file (written by c_loop.py) and simulates one replicate: every round each agent
 * chooses by UCB, pulls and draws its reward; then every message of the last ttl rounds is added to the sums of those
 * who hear it in this round. It does the work of the engine's kernel, in the same order of additions, and so its
 * regret is equal to the engine's to the last bit.
 *
 * Compiled with -DNOISE_AHEAD, it draws all rewards before the clock runs: how fast it could be if they cost nothing.
 *
 * Prints, for the fastest of several repeats: CPU seconds, group regret (hexadecimal), transmissions, and a hash of
 * the pull counts.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct {
    int64_t n_agents, n_arms, n_slots, n_learners, ttl, horizon, most_arms, key0, key1, repeats;
} Header;

typedef struct {
    Header head;
    const int64_t *offsets; /* agent v's slots are offsets[v] to offsets[v + 1] */
    const int32_t *arms;    /* a slot's arm */
    const double *gaps;     /* a slot's regret */
    const double *mean, *sigma;
    const double *clock;    /* sqrt(alpha log t), by round */
    const int64_t *base;    /* a slot's learners begin here, */
    const int32_t *end;     /* those of hop h end here: end[slot * ttl + h - 1] */
    const int32_t *sent;    /* transmissions by slot and hop */
    const int32_t *learners;
} Plan;

typedef struct {
    double *counts, *totals, *index, *rewards;
    int32_t *pulls, *slots;
    int64_t *sent_ahead;
    double *noise; /* normal quantiles by round and agent, if they are drawn ahead */
    double regret;
    int64_t transmissions;
} State;

static double uniform(uint32_t k0, uint32_t k1, uint32_t c0, uint32_t c1) {
    uint32_t c2 = 0, c3 = 0;
    for (int i = 0; i < 10; i++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    int64_t bits = ((int64_t)(c0 >> 6) << 26) + (int64_t)(c1 >> 6);
    return ((double)bits + 0.5) * 0x1p-52;
}

/* A ratio of two polynomials of degree seven, highest coefficient first. */
static inline double ratio(const double *num, const double *den, double r, double factor) {
    double p = num[0], q = den[0];
    for (int i = 1; i < 8; i++) {
        p = p * r + num[i];
        q = q * r + den[i];
    }
    return factor * p / q;
}

/* Wichura's algorithm AS 241. */
static double normal_quantile(double u) {
    static const double middle[2][8] = {
        {2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4, 4.5921953931549871457e4,
         1.3731693765509461125e4, 1.9715909503065514427e3, 1.3314166789178437745e2, 3.3871328727963666080e0},
        {5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4, 2.1213794301586595867e4,
         5.3941960214247511077e3, 6.8718700749205790830e2, 4.2313330701600911252e1, 1.0}};
    static const double side[2][8] = {
        {7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258e0,
         3.64784832476320460504e0, 5.76949722146069140550e0, 4.63033784615654529590e0, 1.42343711074968357734e0},
        {1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1,
         6.89767334985100004550e-1, 1.67638483018380384940e0, 2.05319162663775882187e0, 1.0}};
    static const double tail[2][8] = {
        {2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3, 2.65321895265761230930e-2,
         2.96560571828504891230e-1, 1.78482653991729133580e0, 5.46378491116411436990e0, 6.65790464350110377720e0},
        {2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5, 7.86869131145613259100e-4,
         1.48753612908506148525e-2, 1.36929880922735805310e-1, 5.99832206555887937690e-1, 1.0}};
    double q = u - 0.5;
    if (fabs(q) <= 0.425) return ratio(middle[0], middle[1], 0.180625 - q * q, q);
    double r = sqrt(-log(q < 0.0 ? u : 1.0 - u));
    double sign = q < 0.0 ? -1.0 : 1.0;
    return r <= 5.0 ? ratio(side[0], side[1], r - 1.6, sign) : ratio(tail[0], tail[1], r - 5.0, sign);
}

static double draw(const Header *h, int64_t v, int64_t t) {
    return normal_quantile(uniform((uint32_t)h->key0, (uint32_t)h->key1, (uint32_t)v, (uint32_t)t));
}

/* The place of the highest index, the first of equals. */
static int64_t choose(int64_t n, const double *restrict counts, const double *restrict totals, double clock,
                      double *restrict index) {
    for (int64_t j = 0; j < n; j++) index[j] = totals[j] / counts[j] + clock * (1.0 / sqrt(counts[j]));
    int64_t best = 0;
    for (int64_t j = 1; j < n; j++)
        if (index[j] > index[best]) best = j;
    return best;
}

static void pull_all(const Plan *plan, State *state, int64_t t) {
    const Header *h = &plan->head;
    int64_t row = h->ttl ? t % h->ttl : 0;
    double regret = 0.0;
    for (int64_t v = 0; v < h->n_agents; v++) {
        int64_t first = plan->offsets[v], n = plan->offsets[v + 1] - first;
        int64_t place = t <= n ? t - 1
                               : choose(n, state->counts + first, state->totals + first, plan->clock[t - 1],
                                        state->index);
        int64_t slot = first + place;
        int32_t arm = plan->arms[slot];
#ifdef NOISE_AHEAD
        double normal = state->noise[(t - 1) * h->n_agents + v];
#else
        double normal = draw(h, v, t);
#endif
        double reward = plan->mean[arm] + plan->sigma[arm] * normal;
        state->counts[slot] += 1.0;
        state->totals[slot] += reward;
        state->pulls[slot]++;
        regret += plan->gaps[slot];
        if (h->ttl) {
            state->slots[v * h->ttl + row] = (int32_t)slot;
            state->rewards[v * h->ttl + row] = reward;
            for (int64_t hop = 0; hop < h->ttl; hop++)
                state->sent_ahead[(row + hop) % h->ttl] += plan->sent[slot * h->ttl + hop];
        }
    }
    state->regret += regret;
}

static void deliver_all(const Plan *plan, State *state, int64_t t) {
    int64_t ttl = plan->head.ttl, most_hops = t < ttl ? t : ttl;
    double *restrict counts = state->counts, *restrict totals = state->totals;
    for (int64_t v = 0; v < plan->head.n_agents; v++) {
        for (int64_t hop = most_hops; hop > 0; hop--) {
            int64_t row = (t - hop + 1) % ttl, slot = state->slots[v * ttl + row];
            double reward = state->rewards[v * ttl + row];
            const int32_t *learners = plan->learners + plan->base[slot], *end = plan->end + slot * ttl;
            for (int32_t i = hop > 1 ? end[hop - 2] : 0; i < end[hop - 1]; i++) {
                counts[learners[i]] += 1.0;
                totals[learners[i]] += reward;
            }
        }
    }
}

static void *zeros(size_t n, size_t size) {
    void *place = calloc(n ? n : 1, size);
    if (!place) exit(1);
    return place;
}

static State new_state(const Header *h) {
    int64_t width = h->ttl ? h->ttl : 1;
    State state = {zeros(h->n_slots, 8),          zeros(h->n_slots, 8), zeros(h->most_arms, 8),
                   zeros(h->n_agents * width, 8), zeros(h->n_slots, 4), zeros(h->n_agents * width, 4),
                   zeros(width, 8),               NULL,                 0.0, 0};
#ifdef NOISE_AHEAD
    state.noise = zeros(h->horizon * h->n_agents, 8);
    for (int64_t t = 1; t <= h->horizon; t++)
        for (int64_t v = 0; v < h->n_agents; v++) state.noise[(t - 1) * h->n_agents + v] = draw(h, v, t);
#endif
    return state;
}

static void free_state(State *state) {
    free(state->counts), free(state->totals), free(state->index), free(state->rewards);
    free(state->pulls), free(state->slots), free(state->sent_ahead), free(state->noise);
}

static void run(const Plan *plan, State *state) {
    for (int64_t t = 1; t <= plan->head.horizon; t++) {
        pull_all(plan, state, t);
        if (!plan->head.ttl) continue;
        int64_t row = t % plan->head.ttl;
        state->transmissions += state->sent_ahead[row];
        state->sent_ahead[row] = 0;
        deliver_all(plan, state, t);
    }
}

static const void *take(const char **cursor, int64_t n, size_t size) {
    const void *here = *cursor;
    *cursor += ((size_t)n * size + 7) / 8 * 8; /* every array begins at a multiple of eight bytes */
    return here;
}

static Plan read_plan(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END)) exit(1);
    long n_bytes = ftell(file);
    char *bytes = zeros((size_t)n_bytes, 1);
    rewind(file);
    if (fread(bytes, 1, (size_t)n_bytes, file) != (size_t)n_bytes) exit(1);
    fclose(file);
    Plan plan;
    memcpy(&plan.head, bytes, sizeof plan.head);
    const Header *h = &plan.head;
    const char *cursor = bytes + sizeof plan.head;
    plan.offsets = take(&cursor, h->n_agents + 1, 8);
    plan.arms = take(&cursor, h->n_slots, 4);
    plan.gaps = take(&cursor, h->n_slots, 8);
    plan.mean = take(&cursor, h->n_arms, 8);
    plan.sigma = take(&cursor, h->n_arms, 8);
    plan.clock = take(&cursor, h->horizon, 8);
    plan.base = take(&cursor, h->n_slots, 8);
    plan.end = take(&cursor, h->n_slots * h->ttl, 4);
    plan.sent = take(&cursor, h->n_slots * h->ttl, 4);
    plan.learners = take(&cursor, h->n_learners, 4);
    if (cursor != bytes + n_bytes) exit(1);
    return plan;
}

static double cpu_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    Plan plan = read_plan(argv[1]);
    State state;
    double fastest = INFINITY;
    for (int64_t repeat = 0; repeat < plan.head.repeats; repeat++) {
        if (repeat) free_state(&state);
        state = new_state(&plan.head);
        double began = cpu_seconds();
        run(&plan, &state);
        double seconds = cpu_seconds() - began;
        if (seconds < fastest) fastest = seconds;
    }
    uint64_t hash = 0;
    for (int64_t i = 0; i < plan.head.n_slots; i++) hash = hash * 31 + (uint64_t)state.pulls[i];
    printf("%.9f %a %lld %llu\n", fastest, state.regret, (long long)state.transmissions, (unsigned long long)hash);
    return 0;
}
