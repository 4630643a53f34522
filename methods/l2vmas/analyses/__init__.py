"""The paper's analyses as one command, `memharness vmas-analyse`: runs planned or given, rows as CSV, and a plot."""
