"""The runner: from a run's spec to a folder of records, scores and a summary."""
