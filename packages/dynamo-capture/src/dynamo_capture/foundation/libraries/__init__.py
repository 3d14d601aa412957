"""Classes of libraries that are perhaps never loaded."""
