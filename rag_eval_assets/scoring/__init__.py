"""Scorers: each compares candidate texts with reference texts and says of every pair what became of it."""
