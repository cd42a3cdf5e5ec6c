"""Whether the retriever found the ground truth: matching of passages to contexts, and rank metrics."""
