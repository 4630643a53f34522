"""Benchmarks that come with memharness: one file (or folder) each, found through entry points like any outside one."""
