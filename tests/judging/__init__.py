"""Judges, their rubrics, and what they are measured on."""
