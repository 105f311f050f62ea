"""Many components at once: collected, told apart, searched in other processes, kept as they come."""
