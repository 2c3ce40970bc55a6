"""What commands share: options, the session with a server, output, signals, questions and errors."""
