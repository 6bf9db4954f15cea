"""Measurements: never timed tests, never figures of a normal run."""
