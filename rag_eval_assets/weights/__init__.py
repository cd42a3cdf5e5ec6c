"""Pinned models: which weights score, where they lie on this machine, and the proof that they are those weights."""
