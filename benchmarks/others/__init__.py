"""The same graphs on other workflow libraries: each script runs in its library's own virtual environment."""
