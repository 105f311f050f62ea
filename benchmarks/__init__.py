"""What ilang_eq is measured on: run the modules as ``python -m benchmarks.<name>``."""
