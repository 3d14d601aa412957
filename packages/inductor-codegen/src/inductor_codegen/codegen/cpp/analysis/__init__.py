"""What is found out about a kernel before its loops are written."""
