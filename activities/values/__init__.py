"""What goes out of an attempt: results, errors, and the redaction of secrets in both."""
