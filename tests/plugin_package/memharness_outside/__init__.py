"""An outside package: what it brings is found by memharness through entry points alone."""
