"""Behind the wall, simulated: laws, draws, compiled loops, and `simulate`."""
