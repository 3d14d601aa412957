"""What is known of the content of tensors."""
