"""What the user chooses, checked in one place."""
