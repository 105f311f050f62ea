// CUDA's threads on one CPU thread, for tests: blocks run one after another, their threads as fibers that switch at
// barriers and shuffles. Every access to shared or device memory is checked: bounds, reads of what was never written,
// and races (two threads, one word, no barrier between them, one writing; or two blocks, one writing).
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <map>
#include <ucontext.h>
#include <vector>

#undef INFINITY
#undef NAN

namespace shim {

enum State { READY, AT_BARRIER, AT_SHUFFLE, IN_GROUP, DONE };

struct Fiber {
    ucontext_t context;
    char *stack;
    State state;
    float given[2][6];
    int turn;
};

constexpr int MOST = 1024, STACK = 1 << 16, WARP = 32, GROUP = 4 * WARP;
static Fiber fibers[MOST];
static ucontext_t scheduler;
static int threads, current, block, epoch, life;
static bool failed;
static char failure[512];
static void (*body)(void *);
static void *arguments;

static void fail(const char *what, const char *name, long long index, int other)
{
    if (!failed)
        snprintf(failure, sizeof failure, "%s: %s[%lld], block %d, thread %d and %d", what, name, index, block, current,
                 other);
    failed = true;
}

// How many words each thread has written in its block, and how many of them it has published.
static long writes[MOST], published[MOST];

// What is known of one word since the launch began. Times are (block, epoch, thread); -1 is never.
struct Shadow {
    int written = 0;
    int write_block = -1, write_epoch = -1, writer = -1;
    int read_block = -1, read_epoch = -1, reader = -1;
    bool many_readers = false, many_blocks = false;
    bool copying = false; // what a thread has begun to copy here has not arrived
    long number = 0; // of the last write, among those of its writer

    void read(const char *name, long long index)
    {
        if (copying)
            fail("read of what is still being copied", name, index, writer);
        if (write_block >= 0 && (write_block != block || (write_epoch == epoch && writer != current)))
            fail("race: read of what another thread writes", name, index, writer);
        if (read_block >= 0 && read_block != block)
            many_blocks = true;
        if (read_block == block && read_epoch == epoch && reader != current)
            many_readers = true;
        if (read_block != block || read_epoch != epoch)
            many_readers = false;
        read_block = block, read_epoch = epoch, reader = current;
    }

    void write(const char *name, long long index)
    {
        if (copying)
            fail("write of what is still being copied", name, index, writer);
        if (write_block >= 0 && (write_block != block || (write_epoch == epoch && writer != current)))
            fail("race: two writes", name, index, writer);
        if (many_blocks || (read_block >= 0 && read_block != block))
            fail("race: write of what another block reads", name, index, reader);
        if (read_block == block && read_epoch == epoch && (many_readers || reader != current))
            fail("race: write of what another thread reads", name, index, reader);
        write_block = block, write_epoch = epoch, writer = current, written = 1;
        number = ++writes[current];
    }
};

// A word of shared memory: nothing in it outlives its block.
struct Word {
    float value = 0;
    Shadow shadow;
    int home = -1;

    void enter()
    {
        if (home != life)
            *this = Word();
        home = life;
    }
};

struct Reference {
    float *value;
    Shadow *shadow;
    const char *name;
    long long index;
    long long left = 1; // in a row of shared memory, from here on

    const Reference &operator&() const { return *this; }
    Reference ahead(int words) const;
    operator float() const
    {
        if (!value)
            return 0;
        if (!shadow->written)
            fail("read of what was never written", name, index, -1);
        shadow->read(name, index);
        return *value;
    }
    const Reference &operator=(float x) const
    {
        if (value) {
            shadow->write(name, index);
            *value = x;
        }
        return *this;
    }
    const Reference &operator=(const Reference &other) const { return *this = (float)other; }
    const Reference &operator+=(float x) const { return *this = (float)*this + x; }
    const Reference &operator*=(float x) const { return *this = (float)*this * x; }
};

// ``words`` further on in the same row of shared memory.
inline Reference Reference::ahead(int words) const
{
    // the value is the first member of its word
    Word &word = ((Word *)value)[words];
    word.enter();
    return {&word.value, &word.shadow, name, index + words, left - words};
}

// Memory with a shadow and bounds; ``words`` of a scratch pointer start at the block's own piece.
struct Pointer {
    float *values;
    Shadow *shadows;
    long long first, count;
    const char *name;

    Reference operator[](long long index) const
    {
        if (first + index < 0 || first + index >= count) {
            fail("out of bounds", name, first + index, -1);
            return {nullptr, nullptr, name, index};
        }
        return {values + first + index, shadows + first + index, name, first + index};
    }
    Pointer operator+(long long offset) const { return {values, shadows, first + offset, count, name}; }
};

static bool begins(const Pointer &pointer, int bytes)
{
    return (uintptr_t)(pointer.values + pointer.first) % bytes == 0;
}

template <int N> static void read_run(float (&to)[N], const Pointer &from)
{
    if (!begins(from, 4 * N))
        fail("misaligned", from.name, from.first, -1);
    for (int n = 0; n < N; n++)
        to[n] = from[n];
}

template <int N> static void write_run(const Pointer &to, const float (&from)[N])
{
    if (!begins(to, 4 * N))
        fail("misaligned", to.name, to.first, -1);
    for (int n = 0; n < N; n++)
        to[n] = from[n];
}

static Pointer memory(float *values, long long count, bool written, const char *name)
{
    Shadow *shadows = new Shadow[count > 0 ? count : 1];
    for (long long n = 0; n < count; n++)
        shadows[n].written = written;
    return {values, shadows, 0, count, name};
}

// A launch begins: what happened before is settled.
static void settle(const Pointer &pointer)
{
    for (long long n = 0; n < pointer.count; n++) {
        const int written = pointer.shadows[n].written;
        pointer.shadows[n] = Shadow();
        pointer.shadows[n].written = written;
    }
}

// Shared arrays of any rank: bounds of each index are checked.
template <int N, int... More> struct Shared {
    Shared<More...> rows[N], overflow;
    Shared<More...> &operator[](long long index)
    {
        if (index < 0 || index >= N) {
            fail("out of bounds", "shared memory", index, -1);
            return overflow;
        }
        return rows[index];
    }
};
template <int N> struct Shared<N> {
    Word words[N], overflow;
    Reference operator[](long long index)
    {
        if (index < 0 || index >= N) {
            fail("out of bounds", "shared memory", index, -1);
            return {&overflow.value, &overflow.shadow, "shared memory", index};
        }
        words[index].enter();
        return {&words[index].value, &words[index].shadow, "shared memory", index, N - index};
    }
};

// A float that a thread has begun to copy. It may arrive at any time until the thread waits; here it does so last.
struct Flight {
    Word *to;
    const float *from;
    int group; // how many times the thread had committed before
};
static std::vector<Flight> flights[MOST];
static int commits[MOST];

template <int N> static void begin(const Reference &to, const Pointer &from, bool exists)
{
    if (!to.value)
        return;
    if (to.left < N || to.index % N || (to.index + to.left) % N)
        fail("misaligned", to.name, to.index, -1);
    if (N > 1 && !begins(from, 4 * N))
        fail("misaligned", from.name, from.first, -1);
    for (int n = 0; n < N && !failed; n++) {
        Word &word = ((Word *)to.value)[n];
        word.enter();
        word.shadow.write(to.name, to.index + n);
        word.shadow.copying = true;
        if (exists)
            (void)(float)from[n];
        flights[current].push_back({&word, exists ? from.values + from.first + n : nullptr, commits[current]});
    }
}

// All of a thread's copies but those of the last ``left`` commits.
static void arrive(int left)
{
    std::vector<Flight> others;
    for (const Flight &flight : flights[current]) {
        if (left && flight.group >= commits[current] - left) {
            others.push_back(flight);
            continue;
        }
        flight.to->shadow.copying = false;
        flight.to->shadow.write("shared memory", -1);
        flight.to->value = flight.from ? *flight.from : 0;
    }
    flights[current] = others;
}

// A product that a thread's group of warps has begun: of its rows r and r + 8, and of all columns two in eight. It may
// be done at any time until it is waited for; here that is last.
struct Product {
    std::vector<float *> sums; // of the columns in eights: upper, next, lower, next
    float left[2][8];
    Reference (*right)(void *rows, int column, int depth);
    void *rows;
    int first, depth, epoch;
    bool add; // to what the sums are
};
static std::vector<Product> products[MOST];
static std::map<float *, float> taken[MOST];
static bool begun[MOST];

// What stands in for a sum that belongs to products under way: a number that no product comes to.
static float poison()
{
    const uint32_t bits = 0x7fabcdef;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static bool poisoned(const float &value)
{
    const float other = poison();
    return memcmp(&value, &other, sizeof value) == 0;
}

static void start()
{
    flights[current].clear();
    products[current].clear();
    taken[current].clear();
    begun[current] = false;
    commits[current] = writes[current] = published[current] = 0;
    body(arguments);
    if (!flights[current].empty())
        fail("a copy that is not waited for", "block", block, -1);
    if (!products[current].empty())
        fail("products that are not waited for", "block", block, -1);
    fibers[current].state = DONE;
    swapcontext(&fibers[current].context, &scheduler);
}

static void wait(State state)
{
    fibers[current].state = state;
    swapcontext(&fibers[current].context, &scheduler);
}

static void release(int from, int to, State state)
{
    for (int t = from; t < to; t++) {
        if (fibers[t].state != state) {
            fail("threads wait for each other in different places", "block", t, from);
            return;
        }
    }
    for (int t = from; t < to; t++)
        fibers[t].state = READY;
}

// Runs the block whose threads are ready: each until it waits, the last thread first where ``backwards``.
static void run_block(bool backwards)
{
    for (int t = 0; t < threads; t++) {
        Fiber &fiber = fibers[t];
        if (!fiber.stack)
            fiber.stack = (char *)malloc(STACK);
        getcontext(&fiber.context);
        fiber.context.uc_stack.ss_sp = fiber.stack;
        fiber.context.uc_stack.ss_size = STACK;
        fiber.context.uc_link = nullptr;
        makecontext(&fiber.context, start, 0);
        fiber.state = READY;
        fiber.turn = 0;
    }
    while (!failed) {
        bool ran = false;
        for (int n = 0; n < threads; n++) {
            current = backwards ? threads - 1 - n : n;
            if (fibers[current].state == READY) {
                ran = true;
                swapcontext(&scheduler, &fibers[current].context);
            }
        }
        if (ran) {
            for (int warp = 0; warp < threads; warp += 32)
                if (fibers[warp].state == AT_SHUFFLE)
                    release(warp, warp + 32 < threads ? warp + 32 : threads, AT_SHUFFLE);
            for (int group = 0; group + GROUP <= threads; group += GROUP) {
                bool all = true;
                for (int t = group; t < group + GROUP; t++)
                    all = all && fibers[t].state == IN_GROUP;
                if (all)
                    release(group, group + GROUP, IN_GROUP);
            }
            continue;
        }
        if (fibers[0].state == DONE) {
            for (int t = 0; t < threads; t++)
                if (fibers[t].state != DONE)
                    fail("threads wait for each other in different places", "block", t, 0);
            return;
        }
        epoch++;
        release(0, threads, AT_BARRIER);
    }
}

// Runs a launch of ``blocks`` blocks.
static void launch(int blocks, int block_threads, bool backwards, void (*what)(void *))
{
    threads = block_threads;
    body = what;
    for (int n = 0; n < blocks && !failed; n++) {
        block = backwards ? blocks - 1 - n : n;
        epoch = 0;
        life++;
        run_block(backwards);
    }
}

// Sums of 16 x 8 elements by one warp, of which each lane gives and gets its own: the layouts of PTX's mma.m16n8k8.
static void multiply(float &upper, float &upper_next, float &lower, float &lower_next, const float (&left)[4],
                     const float (&right)[2])
{
    Fiber &mine = fibers[current];
    const int turn = mine.turn ^= 1;
    for (int n = 0; n < 6; n++) {
        const float x = mine.given[turn][n] = n < 4 ? left[n] : right[n - 4];
        uint32_t bits;
        memcpy(&bits, &x, sizeof bits);
        if (x == x && bits << 19)
            fail("more digits than tensor cores take", "factor", n, current);
    }
    wait(AT_SHUFFLE);
    float *const sums[4] = {&upper, &upper_next, &lower, &lower_next};
    const int first = current / 32 * 32, group = current % 32 / 4, member = current % 4;
    for (int n = 0; n < 4; n++) {
        const int half = n / 2, column = member * 2 + n % 2;
        double sum = *sums[n];
        for (int k = 0; k < 8; k++) {
            const float a = fibers[first + group * 4 + k % 4].given[turn][k / 4 * 2 + half];
            const float b = fibers[first + column * 4 + k % 4].given[turn][4 + k / 4];
            sum += (double)a * b;
        }
        *sums[n] = (float)sum;
    }
}

// Rows of four floats in shared memory, of which each lane names one, to the lanes: PTX's ldmatrix.
static const Reference *rows[MOST];
static void load_matrices(float *const (&to)[4], const Reference &row)
{
    if (row.value && (row.left < 4 || row.index % 4 || (row.index + row.left) % 4))
        fail("misaligned", row.name, row.index, -1);
    rows[current] = __builtin_addressof(row);
    wait(AT_SHUFFLE);
    for (int m = 0; m < 4; m++) {
        const Reference &from = *rows[current / 32 * 32 + m * 8 + current % 32 / 4];
        *to[m] = from.value && from.left >= 4 ? (float)from.ahead(current % 4) : 0.0f;
    }
    // nobody names another row before all have read
    wait(AT_SHUFFLE);
}

// PTX's wgmma.mma_async.m64nNk8: ``sums`` of N columns; whose elements of ``left`` are whose is as in mma.m16n8k8.
template <int N>
static void multiply_together(const std::vector<float *> &sums, const float *const (&left)[4], Shared<N, 32> &right,
                              int first, int depth, bool add)
{
    if (!begun[current])
        fail("products that nothing began", "thread", current, -1);
    Fiber &mine = fibers[current];
    const int turn = mine.turn ^= 1;
    for (int n = 0; n < 4; n++) {
        const float x = mine.given[turn][n] = *left[n];
        uint32_t bits;
        memcpy(&bits, &x, sizeof bits);
        if (x == x && bits << 19)
            fail("more digits than tensor cores take", "factor", n, current);
    }
    wait(IN_GROUP);
    Product made{sums, {}, nullptr, &right, first, depth, epoch, add};
    for (int k = 0; k < 8; k++)
        for (int half = 0; half < 2; half++)
            made.left[half][k] = fibers[current / 4 * 4 + k % 4].given[turn][k / 4 * 2 + half];
    made.right = [](void *rows, int column, int k) -> Reference {
        return (*(Shared<N, 32> *)rows)[column][(k / 4 ^ column % 8) * 4 + k % 4];
    };
    for (float *sum : sums)
        if (!poisoned(*sum))
            taken[current][sum] = *sum, *sum = poison();
    products[current].push_back(made);
}

// An element of a right factor, of which tensor cores leave out what tf32 has not.
static float truncated(const Reference &place, int since)
{
    if (!place.value)
        return 0;
    const Shadow &shadow = *place.shadow;
    if (shadow.writer >= 0 && shadow.number > published[shadow.writer])
        fail("read by tensor cores of what is not published", place.name, place.index, shadow.writer);
    if (shadow.write_epoch > since)
        fail("write of what tensor cores are reading", place.name, place.index, shadow.writer);
    const float x = place;
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits &= ~0u << 13;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void finish_products()
{
    wait(IN_GROUP);
    for (auto &[sum, value] : taken[current]) {
        if (!poisoned(*sum))
            fail("write of a sum while products are under way", "sum", 0, current);
        *sum = value;
    }
    for (const Product &one : products[current]) {
        const int member = current % 4;
        for (size_t n = 0; n < one.sums.size() && !failed; n++) {
            const int column = n / 4 * 8 + member * 2 + n % 2, half = n % 4 / 2;
            double sum = one.add ? *one.sums[n] : 0.0;
            for (int k = 0; k < 8; k++)
                sum += (double)one.left[half][k] * truncated(one.right(one.rows, one.first + column, one.depth + k), one.epoch);
            *one.sums[n] = (float)sum;
        }
    }
    products[current].clear();
    taken[current].clear();
    begun[current] = false;
}

} // namespace shim

static struct { struct { operator int() const { return shim::current; } } x; } threadIdx;
static struct { struct { operator int() const { return shim::block; } } x; } blockIdx;
static struct { int x; } gridDim;

#define __device__ static
#define __forceinline__ inline

static inline void __syncthreads() { shim::wait(shim::AT_BARRIER); }

// What moves runs: the same functions as in ``ilang_eq/cuda/runs.py``.
static inline bool aligned(const shim::Pointer &place) { return shim::begins(place, 16); }
static inline void begin_1(const shim::Reference &to, const shim::Pointer &from, bool exists)
{
    shim::begin<1>(to, from, exists);
}
static inline void begin_2(const shim::Reference &to, const shim::Pointer &from) { shim::begin<2>(to, from, true); }
static inline void begin_4(const shim::Reference &to, const shim::Pointer &from) { shim::begin<4>(to, from, true); }
static inline void arrive() { shim::arrive(0); }
template <int N> static inline void arrive_but() { shim::arrive(N); }
static inline void commit() { shim::commits[shim::current]++; }
static inline void read_2(float (&to)[2], const shim::Pointer &from) { shim::read_run(to, from); }
static inline void read_4(float (&to)[4], const shim::Pointer &from) { shim::read_run(to, from); }
static inline void write_2(const shim::Pointer &to, const float (&from)[2]) { shim::write_run(to, from); }
static inline void write_4(const shim::Pointer &to, const float (&from)[4]) { shim::write_run(to, from); }

static inline float __int_as_float(int bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline float __uint_as_float(unsigned bits) { return __int_as_float((int)bits); }

static inline unsigned __float_as_uint(float value)
{
    unsigned bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

// Two slots in turn: nobody gives a second value before all have taken the first.
static inline float __shfl_xor_sync(unsigned, float value, int lanes)
{
    shim::Fiber &mine = shim::fibers[shim::current];
    const int turn = mine.turn ^= 1;
    mine.given[turn][0] = value;
    shim::wait(shim::AT_SHUFFLE);
    return shim::fibers[shim::current ^ lanes].given[turn][0];
}

// Tensor cores: the same functions as in ``ilang_eq/cuda/tensor_cores.py``, but for those that call these.
static inline float tf32_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (isfinite(x))
        bits += 1 << 12; // to nearest, ties away from zero; the largest become infinite
    bits &= ~0u << 13;
    if (x != x)
        return x;
    memcpy(&x, &bits, sizeof bits);
    return x;
}

static inline void multiply(float &upper, float &upper_next, float &lower, float &lower_next, const float (&left)[4],
                            const float (&right)[2])
{
    shim::multiply(upper, upper_next, lower, lower_next, left, right);
}

static inline void load_matrices(float &first, float &second, float &third, float &fourth, const shim::Reference &row)
{
    float *const to[4] = {&first, &second, &third, &fourth};
    shim::load_matrices(to, row);
}

static inline void publish() { shim::published[shim::current] = shim::writes[shim::current]; }
template <int ROWS, int COLUMNS> static inline void settle(float (&)[ROWS][COLUMNS]) {}
static inline void begin_products() { shim::begun[shim::current] = true; }
static inline void finish_products()
{
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    shim::finish_products();
#endif
}
