"""How many people it takes, and the privacy that a number of people can afford."""
