//! How many bytes must be granted before a copy is made.
