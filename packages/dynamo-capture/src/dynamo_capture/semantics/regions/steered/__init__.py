"""What data steer or repeat: branches, loops and scans."""
