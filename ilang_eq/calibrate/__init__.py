"""Measuring a machine for the cost models: microbenchmarks, and the description made of what they find."""

from ilang_eq.calibrate.calibration import calibrate as calibrate
from ilang_eq.calibrate.gpu import calibrate_gpu as calibrate_gpu
