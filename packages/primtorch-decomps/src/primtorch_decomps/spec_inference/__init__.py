"""Specs of results: by rule, by running a decomposition on specs, by a trial run, by a fake kernel."""
