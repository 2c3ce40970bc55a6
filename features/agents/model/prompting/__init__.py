"""What an agent's model is sent: the parts of a prompt, the conversation it is made of, and what is left out of it."""
