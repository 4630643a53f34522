"""The generators of the small original samples: one module a benchmark, its facts in plain tables."""
