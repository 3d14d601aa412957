"""Looking at compilations: what the packages say while they compile, as log messages or as a record to keep."""
