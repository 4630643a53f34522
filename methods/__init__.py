"""Memory methods that come with memharness: one folder each, found through entry points like any outside one."""
