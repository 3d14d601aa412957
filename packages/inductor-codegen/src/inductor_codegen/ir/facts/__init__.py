"""What is known of indices and sizes in a part of a kernel."""
