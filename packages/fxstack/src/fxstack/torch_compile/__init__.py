"""What ``torch.compile`` takes, and what each of it is here: tables, and the translation of arguments."""
