"""The guard kinds: frozen records, one fact each."""
