"""Loop IR as CUDA C: bound to blocks and threads, printed, built by NVRTC, called through CuPy (``BINDING.md``)."""
