"""What people look at: tables of runs, cards of plug-ins, the leaderboard."""
