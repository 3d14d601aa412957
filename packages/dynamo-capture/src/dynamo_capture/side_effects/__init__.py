"""What the program did to objects that existed before it ran."""
