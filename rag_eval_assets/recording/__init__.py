"""Keeping what calls returned: the journal of an unfinished partition."""
