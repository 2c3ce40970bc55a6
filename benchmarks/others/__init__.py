"""What people would use instead, on the same graphs: each library in an environment of its own."""
