"""What the operations of the program mean, for values of every kind."""
