"""Measuring a machine for the cost models: C microbenchmarks, and the description made of what they find."""

from ilang_eq.calibrate.calibration import calibrate as calibrate
