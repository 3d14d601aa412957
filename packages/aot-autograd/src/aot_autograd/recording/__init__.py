"""The program as it is traced: values, the list of calls, the graphs made of it, and what is known of the values."""
