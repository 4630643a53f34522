"""The leaderboard: one row a run, like beside like, ties shown as ties; on screen and as files."""

from memharness.report.leaderboard.boards import Board, Entry, asked, boards, options_told, standing
from memharness.report.leaderboard.files import write_csv, write_html, write_markdown, write_parquet
from memharness.report.leaderboard.rows import rows, tokens_used
from memharness.report.leaderboard.screen import show_leaderboard
from memharness.report.leaderboard.ties import Standing, standings

__all__ = [
    "Board",
    "Entry",
    "Standing",
    "asked",
    "boards",
    "options_told",
    "rows",
    "show_leaderboard",
    "standing",
    "standings",
    "tokens_used",
    "write_csv",
    "write_html",
    "write_markdown",
    "write_parquet",
]
