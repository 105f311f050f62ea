// Calls squares once on made-up numbers, and prints the sum of each output. Build it and run it:
//     ./squares in0_0 in0_1
#include "squares.h"

#include <stdio.h>
#include <stdlib.h>

static float *made_up(int64_t floats, int which)
{
    float *array = malloc((size_t)(floats > 0 ? floats : 1) * sizeof(float));
    for (int64_t n = 0; array != NULL && n < floats; n++)
        array[n] = (float)((n * 7 + which * 3) % 13) / 16.0f - 0.375f;
    return array;
}

static void print_sum(const char *name, const float *array, int64_t floats)
{
    double sum = 0.0;
    for (int64_t n = 0; n < floats; n++)
        sum += array[n];
    printf("%s %.9g\n", name, sum);
}

int main(int argc, char **argv)
{
    int64_t extents[] = {64, 64};
    for (int k = 0; k < 2 && k + 1 < argc; k++)
        extents[k] = strtoll(argv[k + 1], NULL, 10);
    const int64_t in0_0 = extents[0];
    const int64_t in0_1 = extents[1];
    float *in0 = made_up(in0_0 * in0_1, 0);
    float *in1 = made_up(in0_0 * in0_1, 1);
    float *out0 = made_up(in0_0, 2);
    const int threads = 1;
    const int64_t size = squares_workspace_size(in0_0, in0_1, threads);
    void *workspace = malloc(size > 0 ? (size_t)size : 1);
    const int code = squares_run(in0, in1, out0, in0_0, in0_1, workspace, size, threads);
    if (code != 0)
        fprintf(stderr, "squares_run returned %d\n", code);
    if (code == 0)
        print_sum("out0", out0, in0_0);
    free(in0);
    free(in1);
    free(out0);
    free(workspace);
    return code;
}
