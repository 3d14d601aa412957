"""What all captures under one ``optimize`` share: options, marks, sizes that vary, reports."""
