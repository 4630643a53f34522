"""memharness: any agent-memory method, on any memory benchmark, with any frozen reader, with numbers people can trust."""

__version__ = "0.1.0"
