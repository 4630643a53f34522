"""Readers and embedders that come with memharness: one back end, one file, found through entry points."""
