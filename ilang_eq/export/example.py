"""``main.c``: the smallest program that calls an exported library."""

from __future__ import annotations

from collections.abc import Mapping

from ilang_eq.export.interface import WEIGHTS, Array, Interface

DEFAULT_EXTENT = 64

_MAIN = """\
// Calls {name} once on made-up numbers, and prints the sum of each output. Build it and run it:
//     {build}
//     ./{name}{usage}
#include "{name}.h"

#include <stdio.h>
#include <stdlib.h>

static float *made_up(int64_t floats, int which)
{{
    float *array = malloc((size_t)(floats > 0 ? floats : 1) * sizeof(float));
    for (int64_t n = 0; array != NULL && n < floats; n++)
        array[n] = (float)((n * 7 + which * 3) % 13) / 16.0f - 0.375f;
    return array;
}}

{loading}static void print_sum(const char *name, const float *array, int64_t floats)
{{
    double sum = 0.0;
    for (int64_t n = 0; n < floats; n++)
        sum += array[n];
    printf("%s %.9g\\n", name, sum);
}}

int main({parameters})
{{
{body}
    return code;
}}
"""


_LOADED = """\
static float *loaded(const char *path, int64_t floats)
{
    float *array = malloc((size_t)floats * sizeof(float));
    FILE *file = fopen(path, "rb");
    if (array == NULL || file == NULL || fread(array, sizeof(float), (size_t)floats, file) != (size_t)floats) {
        fprintf(stderr, "%s cannot be read\\n", path);
        exit(EXIT_FAILURE);
    }
    fclose(file);
    return array;
}

"""


def example(interface: Interface, build: str, sizes: Mapping[str, int]) -> str:
    """The text of ``main.c``.

    Args:
        interface: what is called.
        build: the command that builds it.
        sizes: of extents, by name; ``DEFAULT_EXTENT`` for those not given.
    """
    arrays = [*interface.inputs, *interface.outputs]
    lines = _extents(interface, sizes)
    lines += [f"float *{array.name} = {_filled(interface, array, n)};" for n, array in enumerate(arrays)]
    lines += [
        "const int threads = 1;",
        f"const int64_t size = {interface.called('workspace_size', (), ('threads',))};",
        "void *workspace = malloc(size > 0 ? (size_t)size : 1);",
        f"const int code = {interface.called('run', [a.name for a in arrays], ('workspace', 'size', 'threads'))};",
        "if (code != 0)",
        f'    fprintf(stderr, "{interface.name}_run returned %d\\n", code);',
    ]
    lines += [line for array in interface.outputs for line in ("if (code == 0)", "    " + _printed(array))]
    lines += [f"free({name});" for name in (*(array.name for array in arrays), "workspace")]
    return _MAIN.format(
        name=interface.name,
        build=build,
        loading=_LOADED if any(array.name == WEIGHTS for array in arrays) else "",
        usage="".join(f" {name}" for name in interface.extents),
        parameters="int argc, char **argv" if interface.extents else "void",
        body="\n".join("    " + line for line in lines),
    )


def _filled(interface: Interface, array: Array, which: int) -> str:
    if array.name == WEIGHTS:
        return f'loaded("{interface.name}.weights", {array.floats})'
    return f"made_up({array.floats}, {which})"


def _extents(interface: Interface, sizes: Mapping[str, int]) -> list[str]:
    """The extents: as the command line gives them, or else as in ``sizes``."""
    if not interface.extents:
        return []
    values = [str(sizes.get(name, DEFAULT_EXTENT)) for name in interface.extents]
    lines = [
        f"int64_t extents[] = {{{', '.join(values)}}};",
        f"for (int k = 0; k < {len(values)} && k + 1 < argc; k++)",
        "    extents[k] = strtoll(argv[k + 1], NULL, 10);",
    ]
    return lines + [f"const int64_t {name} = extents[{k}];" for k, name in enumerate(interface.extents)]


def _printed(array: Array) -> str:
    return f'print_sum("{array.name}", {array.name}, {array.floats});'
