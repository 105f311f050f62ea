"""The C text that shares the tasks of a parallel loop among threads: how many threads, and which does what.

Each thread has its own part of the tasks, the same in every call, and helps others when it is done with it
(papers_notes/affinity_scheduling.md).
"""

from __future__ import annotations

from collections.abc import Sequence

_THREAD = """\
#ifdef _OPENMP
static inline int thread_number(void) { return omp_get_thread_num(); }
static inline int team_size(void) { return omp_get_num_threads(); }
#else
static inline int thread_number(void) { return 0; }
static inline int team_size(void) { return 1; }
#endif
"""

_SHARE = """\
// How many tasks a thread takes at a time: sixteen shares per thread, of whole grains; all of them if it is alone.
// So little is left to wait for at the end, where others slow one core down.
static inline int64_t share_of(int64_t tasks, int threads, int64_t grain)
{
    const int64_t share = threads > 1 ? ceil_div(ceil_div(tasks, (int64_t)threads * 16), grain) * grain : tasks;
    return share > 0 ? share : 1;
}
"""

_QUEUES = """\
// How many of a thread's shares are taken, in a cache line of its own.
struct queue { int64_t taken __attribute__((aligned(64))); };

static inline void none_taken(struct queue *queues, int team)
{
    for (int thread = 0; thread < team; thread++)
        queues[thread].taken = 0;
}

// The next share for this thread: of those that it has in every call, so that what they read and write may still be in
// its core's caches; once they are all taken, of the threads after it; ``shares`` if there is none left.
static int64_t next_share(struct queue *queues, int64_t shares, int64_t *after)
{
    const int64_t thread = thread_number(), team = team_size();
    for (; *after < team; ++*after) {
        const int64_t owner = (thread + *after) % team;
        const int64_t share = shares * owner / team + __atomic_fetch_add(&queues[owner].taken, 1, __ATOMIC_RELAXED);
        if (share < shares * (owner + 1) / team)
            return share;
    }
    return shares;
}
"""

_TEAM = """\
// How many threads to wake for so much work, in units of 0.02 ns: one for every 20 us, and no more than there are.
// Those that sleep take longer than that to wake up, which a product of 64 x 64 x 64 does not.
static inline int team_for(double work, int threads)
{
    const double most = work / 1000000.0;
    return most >= threads ? threads : most > 1.0 ? (int)most : 1;
}
"""

_PART_OF_TEAM = """\
// How many threads to share so much work with, of those that are awake: one for every 2 us, which meeting takes them.
static inline int part_of_team(double work, int awake)
{
    const double most = work / 100000.0;
    return most >= awake ? awake : most > 1.0 ? (int)most : 1;
}
"""


def sharing(body: str) -> Sequence[str]:
    """The definitions of what ``body`` calls; they call ``ceil_div``."""
    queues = "next_share(" in body
    table = (
        (_THREAD, queues or "thread_number(" in body),
        (_SHARE, "share_of(" in body),
        (_QUEUES, queues),
        (_TEAM, "team_for(" in body),
        (_PART_OF_TEAM, "part_of_team(" in body),
    )
    return [text for text, needed in table if needed]
