"""`rag-eval`, the command line: results go to stdout, all else to stderr, and the exit code says how it went."""
