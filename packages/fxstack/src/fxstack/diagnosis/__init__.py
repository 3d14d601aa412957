"""What helps to find a defect of the compiler."""
