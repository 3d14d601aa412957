"""The joint trace: forward and backward in one recording, and how it is split into two graphs."""
