"""Measure the quality of a RAG system over time."""
