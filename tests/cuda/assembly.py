"""What NVRTC makes of CUDA C, as PTX."""

from __future__ import annotations

import ctypes

from ilang_eq.cuda.build import nvrtc, target_of


def assembly(source: str, arch: int) -> str:
    """The PTX of ``source`` for ``arch``, such as 90 for sm_90."""
    compiler, program = nvrtc(), ctypes.c_void_p()
    option = (ctypes.c_char_p * 1)(f"--gpu-architecture={target_of(arch).replace('sm', 'compute')}".encode())
    assert compiler.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"k.cu", 0, None, None) == 0
    try:
        assert compiler.nvrtcCompileProgram(program, 1, option) == 0
        size = ctypes.c_size_t()
        compiler.nvrtcGetPTXSize(program, ctypes.byref(size))
        text = ctypes.create_string_buffer(size.value)
        compiler.nvrtcGetPTX(program, text)
        return text.value.decode()
    finally:
        compiler.nvrtcDestroyProgram(ctypes.byref(program))


def busiest_block(text: str, instruction: str) -> str:
    """The basic block with most of an instruction."""
    blocks = text.split("\n$L")
    return max(blocks, key=lambda block: block.count(instruction))
