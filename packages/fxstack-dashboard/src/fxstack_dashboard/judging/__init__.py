"""What results say: summaries, speed-ups over a suite, noise, regressions, and what differs between two runs."""
