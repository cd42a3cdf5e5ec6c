"""What triggers a run and whom it tells, without Dagster: fingerprints of a corpus, when a change counts, messages."""
