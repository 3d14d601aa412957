"""Views, copies, and elements moved to other places; tensors from nothing."""
