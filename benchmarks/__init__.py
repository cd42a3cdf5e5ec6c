"""Measures this package beside the public ones, in one run on one machine; see docs/benchmarks.md."""
