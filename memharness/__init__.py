"""memharness: any agent-memory method, any memory benchmark, any frozen reader, and numbers people can trust."""

__version__ = "0.1.0"
