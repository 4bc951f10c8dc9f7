"""Every random draw, and the stream of tokens that training sees."""
