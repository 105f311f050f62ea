// 𝚒: i("ij*ij~ij") >> i("+ij~i")
#ifndef SQUARES_H
#define SQUARES_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SQUARES_ABI_VERSION 1

enum {
    SQUARES_OK = 0,  // done
    SQUARES_BAD_THREADS = 1,  // fewer than one thread
    SQUARES_BAD_EXTENT = 2,  // an extent below zero
    SQUARES_TOO_LARGE = 3,  // extents whose workspace cannot be addressed
    SQUARES_NULL_POINTER = 4,  // an array with elements, or a workspace that is needed, is NULL
    SQUARES_SMALL_WORKSPACE = 5,  // less workspace than squares_workspace_size says
};

// SQUARES_ABI_VERSION of the library that is linked.
int squares_abi_version(void);

// The bytes of workspace that a call needs, at any address of a float (a multiple of 64 is fastest);
// an error code times -1 if there is an error.
int64_t squares_workspace_size(int64_t in0_0, int64_t in0_1, int threads);

// out0[in0_0] from in0[in0_0][in0_1], in1[in0_0][in0_1].
// Arrays are row-major and overlap none that is written. Memory is the caller's; nothing is kept between calls, so
// any number may run at once, each with a workspace of its own. Results do not depend on threads. Returns SQUARES_OK
// or another code.
int squares_run(const float *in0, const float *in1, float *out0, int64_t in0_0, int64_t in0_1, void *workspace,
                int64_t workspace_size, int threads);

#ifdef __cplusplus
}
#endif

#endif  // SQUARES_H
