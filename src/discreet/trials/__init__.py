"""Behind the wall, live: protocol, outcomes, noise, the public record, and `Trial`."""
