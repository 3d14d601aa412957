"""Existing objects of the program as values, with the guards that reading them needs."""
